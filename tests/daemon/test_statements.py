# SPDX-License-Identifier: LGPL-2.1-or-later
"""Statements of policies: the values that are read, their canonical text, and their mistakes.

Values are set over the bus; ListPromises has them as numbers, GetPolicy as canonical text.
"""

import os
import random
from typing import Any

import dbus
import pytest
from fakemachine import Sutrod, Systemd

UNIT = "db.service"
PATH = 'first an absolute path without ".." and control characters, in quotes if it has blanks, '
INFINITY = "; infinity: no limit"
MAXIMA = {"LatencyTarget": 60_000_000, "Weight": 10_000, "Importance": 1000}
RATES = [
    f"{way}{what}{end}"
    for end in ("Min", "Max")
    for what in ("Bandwidth", "IOPS")
    for way in ("Read", "Write")
]
TARGETS = ["LatencyTarget", "WriteLatencyTarget", "FsyncLatencyTarget"]
KEYS = [*RATES, *TARGETS, "Weight", "Class", "Importance"]
TARGET = (
    "a path and a time from 1us to 1min, then a percentile from P50 to P99.9 (without one: P95), "
    "such as /dev/vg/db 5ms or /dev/vg/db 5ms P99"
)
ALLOWED = {key: ("bytes" if "Band" in key else "requests") + " per second" for key in RATES} | {
    **dict.fromkeys(TARGETS, TARGET),
    "Weight": "1 to 10000, or a path and 1 to 10000, such as /dev/vg/db 300",
    "Class": "rt, be or idle",
    "Importance": "0 to 1000",
}
# The numbers are those of systemd's own test of parse_size() with base 1000.
SIZES = {
    "111": 111,
    "111.4": 111,
    "1112 B": 1112,
    "1112.6 B": 1112,
    "3.5 K": 3500,
    "3.5 M": 3_500_000,
    "4.11118G": 4_111_180_000,
    "1G 500M": 1_500_000_000,
    "1G500M3.25K": 1_500_003_250,
    "5 M 2B": 5_000_002,
    "1P": 10**15,
    "1000T": 10**15,
    "0.001K": 1,
}
NO_SIZES = (
    "3. 11 K|12P|1000T 1|0.0009K|0|0.9|-1|+1|1.|.5M|1,5M|1e3|0x10|1k|1MB|1MiB|1M/s|1M 1G|1M 1M|"
    "1 1|1M -1K|many|18446744073709551615|18446744073709551616|"
    "99999999999999999999999999999999999G|18446744073709551615P"
)
TIMES = {
    "5ms": 5000,
    "5 msec": 5000,
    "1s 500us": 1_000_500,
    "1s500us": 1_000_500,
    "5": 5_000_000,
    "0.25": 250_000,
    "1.5ms": 1500,
    "250usec": 250,
    "250µs": 250,
    "250μs": 250,
    "1min": 60_000_000,
    "1m": 60_000_000,
    "0.5 minutes": 30_000_000,
    "2 seconds": 2_000_000,
    "1us": 1,
}
NO_TIMES = "1 sec 1|0.5us|0|1min 1us|61|1h|500us 1s|-5ms|5 ns|ms|5msms|5MS|infinity"
LONGEST = "/" + 40 * (99 * "x" + "/") + 94 * "x"
PATHS = {
    "/": "/",
    "//": "/",
    "/./": "/",
    "/dev/vg/db": "/dev/vg/db",
    "/dev//vg/./db/": "/dev/vg/db",
    "/a/.../..b/.c": "/a/.../..b/.c",
    '"/srv/my data"': "/srv/my data",
    "'/srv/my data'": "/srv/my data",
    '/srv/my" "data': "/srv/my data",
    "/srv/my\\ data": "/srv/my data",
    '"/a\\"b"': '/a"b',
    "'/a\"b'": '/a"b',
    "/by-label/a\\\\x20b": "/by-label/a\\x20b",
    "/srv/%i": "/srv/%i",
    "/srv/Ü/ö": "/srv/Ü/ö",
    LONGEST: LONGEST,
}
NO_PATHS = (
    'vg/db|./db|..|/..|/a/../b|/a/..|"/../"|/.\\./b|"/srv|\'/srv"|""|"/a\tb"|/a\x01c|'
    '/a\x1b[31m|/a\x7f|/\xc2\x85|"/a\nb"|50M|"\\'
)
TEXTS = {
    ("ReadBandwidthMin", "/dev/vg/db 200M"): "/dev/vg/db 200M",
    ("ReadBandwidthMin", "/dev//vg/1/ 1500M"): "/dev/vg/1 1.5G",
    ("ReadBandwidthMin", "/2 1.25G"): "/2 1250M",
    ("ReadBandwidthMin", "/3 0.5G"): "/3 500M",
    ("ReadBandwidthMin", "/4 1P"): "/4 1000T",
    ("ReadBandwidthMin", "/5 1234567"): "/5 1234567",
    ("WriteBandwidthMax", "/ infinity"): "/ infinity",
    ("ReadIOPSMax", "'/my data' infinity"): '"/my data" infinity',
    ("ReadIOPSMax", "'/a\"b\\c' 1"): '"/a\\"bc" 1',
    ("ReadIOPSMax", "/a\\\\b 1"): '"/a\\\\b" 1',
    ("LatencyTarget", "/1 1min"): "/1 60s",
    ("LatencyTarget", "/2 0.005"): "/2 5ms",
    ("LatencyTarget", "/3 1.5ms"): "/3 1.5ms",
    ("LatencyTarget", "/4 1s 1us"): "/4 1000001us",
    ("LatencyTarget", "/5 1s 1us P99"): "/5 1000001us P99",
    ("LatencyTarget", "any 5ms\tP99.9"): "any 5ms P99.9",
    ("WriteLatencyTarget", "/5 5ms P99.0"): "/5 5ms P99",
    ("WriteLatencyTarget", "/6 0.005 P050"): "/6 5ms P50",
    ("FsyncLatencyTarget", "/5 10ms P95"): "/5 10ms",
    ("FsyncLatencyTarget", "'/my P99' 10ms"): '"/my P99" 10ms',
    ("Weight", "10000"): "10000",
    ("Weight", "/1 1"): "/1 1",
    ("Class", "idle"): "idle",
    ("Importance", "0"): "0",
}
PERCENTILES = {"P50": 50, "P90": 90, "P95": 95, "P99": 99, "P99.5": 99.5, "P99.9": 99.9}
NO_PERCENTILES = (
    "P99|5ms P49|5ms P49.9|5ms P99.91|5ms P99.99|5ms P100|5ms P0|5ms P|5ms P-99|5ms P99.|5ms 99|"
    "5ms p99|5ms P99 P99|P99 5ms|5msP99|5ms P99%|5ms P9 9|0ms P99|2min P99|"
    "5ms P18446744073709551715"
)
NO_TEXTS = {
    "Weight": "0|10001|-1|100 200|1K|/srv|/srv 0|/srv 1 2|srv 100",
    "Class": "RT|best-effort|/srv idle",
    "Importance": "1001|-1|high|18446744073709551716",
    "WriteBandwidthMin": "/ infinity",
    "ReadBandwidthMax": "/ Infinity|/ infinity M",
    # A blank of the path, and nothing is left for the value.
    "ReadIOPSMin": "/srv|/srv\\ 1K|/srv 1K\\",
}


class Statements:
    """The settings of a client for one unit, and their model."""

    def __init__(self, systemd: Systemd, sutrod: Sutrod) -> None:
        self.sutrod = sutrod
        systemd.start(UNIT)
        sutrod.start()

    def set(self, *pairs: tuple[str, str], lifetime: str = "client") -> list[tuple[str, str]]:
        """Set these settings and no others; return all settings, as the daemon writes them."""
        self.sutrod.call("ResetPolicy", UNIT, lifetime)
        return self.add(*pairs, lifetime=lifetime)

    def add(self, *pairs: tuple[str, str], lifetime: str = "client") -> list[tuple[str, str]]:
        """Set these as well."""
        self.sutrod.call("SetPolicy", UNIT, dbus.Array(pairs, signature="(ss)"), lifetime)
        return self.read()

    def read(self) -> list[tuple[str, str]]:
        """All settings."""
        return [(str(e["key"]), str(e["value"])) for e in self.sutrod.call("GetPolicy", UNIT)]

    def promises(self) -> list[dict[str, Any]]:
        """The promises at the moment."""
        self.sutrod.settle()
        return list(self.sutrod.call("ListPromises"))

    def numbers(self) -> dict[tuple[str, str], int]:
        """Floors, ceilings and targets, by key and path."""
        return {(str(p["key"]), str(p["path"])): int(p["value"]) for p in self.promises()}

    def refuse(self, key: str, text: str, allowed: str) -> None:
        """The error has the text and the allowed form."""
        pairs = dbus.Array([("Weight", "9"), (key, text)], signature="(ss)")
        name, message = self.sutrod.error("SetPolicy", UNIT, pairs, "client")
        assert name == "BadPolicy" and message.startswith(f'{UNIT}: "{key}'), message
        assert f'": {allowed}' in message, message


@pytest.fixture
def statements(systemd: Systemd, sutrod: Sutrod) -> Statements:
    """A daemon that has no policy of the unit."""
    return Statements(systemd, sutrod)


def test_keys(statements: Statements) -> None:
    """All keys can be reset, and other names are refused, also in other letters."""
    assert statements.set(*((key, "") for key in KEYS)) == []
    for key in ("readbandwidthmin", "ReadBandwidth", ""):
        statements.refuse(key, "/a 1", "one of " + ", ".join(KEYS))


@pytest.mark.parametrize("key", RATES)
def test_sizes(statements: Statements, key: str) -> None:
    statements.set(*((key, f"/{n} {text}") for n, text in enumerate(SIZES)))
    wanted = {(key, f"/{n}"): number for n, number in enumerate(SIZES.values())}
    assert statements.numbers() == wanted
    for text in NO_SIZES.split("|"):
        statements.refuse(key, f"/dev/sda {text}", "a path and " + ALLOWED[key])


def test_times(statements: Statements) -> None:
    key = "LatencyTarget"
    statements.set(*((key, f"/{n} {text}") for n, text in enumerate(TIMES)))
    wanted = {(key, f"/{n}"): usec for n, usec in enumerate(TIMES.values())}
    assert statements.numbers() == wanted
    for text in NO_TIMES.split("|"):
        statements.refuse(key, f"/srv {text}", ALLOWED[key])


@pytest.mark.parametrize("key", TARGETS)
def test_percentiles(statements: Statements, key: str) -> None:
    """A percentile stands behind the time; one out of range is refused with the range."""
    statements.set(
        *((key, f"/{n} 5ms {text}") for n, text in enumerate(PERCENTILES)), (key, "/x 1")
    )
    wanted = {f"/{n}": percentile for n, percentile in enumerate(PERCENTILES.values())} | {"/x": 95}
    assert {p["path"]: p["percentile"] for p in statements.promises()} == wanted
    for text in NO_PERCENTILES.split("|"):
        statements.refuse(key, f"/srv {text}", ALLOWED[key])
    statements.set(("ReadIOPSMin", "/a 1"))
    assert [p["percentile"] for p in statements.promises()] == [0]


def test_paths(statements: Statements) -> None:
    for text, path in PATHS.items():
        statements.set(("ReadIOPSMin", f"{text} \t 1K"))
        assert statements.numbers() == {("ReadIOPSMin", path): 1000}
    for text in (*NO_PATHS.split("|"), LONGEST + "x"):
        statements.refuse("ReadIOPSMin", f"{text} 1K", PATH)
    statements.refuse("ReadIOPSMin", "/srv\\", PATH)
    statements.refuse("Weight", "/../srv 100", PATH)


def test_texts(statements: Statements) -> None:
    """The text of a value has the largest suffix that needs one digit behind the point."""
    canonical = [(key, text) for (key, _), text in TEXTS.items()]
    assert statements.set(*TEXTS) == canonical
    assert statements.set(*canonical) == canonical
    for value in ("rt", "be"):
        assert statements.set(("Class", value)) == [("Class", value)]
    for key, texts in NO_TEXTS.items():
        for text in texts.split("|"):
            statements.refuse(key, text, "a path and " * (key in RATES) + ALLOWED[key])


def test_later_statements(statements: Statements) -> None:
    """The last statement of a key and a path holds; a reset ends all of its key."""
    statements.set(("ReadIOPSMin", "/a 1"), ("ReadIOPSMin", "/b 2"), ("WriteIOPSMin", "/a 3"))
    assert {p["importance"] for p in statements.promises()} == {100}
    statements.add(("Weight", "4"), ("Weight", "/a 5"), ("Importance", "6"))
    assert {p["importance"] for p in statements.promises()} == {6}
    assignments = statements.add(("ReadIOPSMin", "/a/ 7"), ("Weight", "8"))
    kept = [("WriteIOPSMin", "/a 3"), ("Importance", "6")]
    assert assignments == [
        ("ReadIOPSMin", "/b 2"),
        kept[0],
        ("Weight", "/a 5"),
        kept[1],
        ("ReadIOPSMin", "/a 7"),
        ("Weight", "8"),
    ]
    assert statements.add(("ReadIOPSMin", ""), ("Weight", "")) == kept


def batches() -> range:
    """Of 250 random statements each, at most 256 fit in one file."""
    return range(200 if "SUTRO_LONG" in os.environ else 10)


def test_random_statements(statements: Statements) -> None:
    """Paths and numbers stay the same when they are written and read again, also as a file."""
    draw = random.Random(1)
    letters = "ab. \"'\\%#;=[]-ä"
    for _ in batches():
        assignments, wanted = [], {}
        for n in range(250):
            key = draw.choice([*RATES, "LatencyTarget"])
            path = f"/{n}x" + "".join(draw.choices(letters, k=draw.randrange(30)))
            number = draw.randrange(1, MAXIMA.get(key, 10**15))
            step = draw.choice([1, 10, 100, 1000, 10**6])
            wanted[key, path] = number = number // step * step or number
            quoted = path.replace("\\", "\\\\").replace('"', '\\"')
            assignments.append((key, f'"{quoted}" {number}{"us" * (key == "LatencyTarget")}'))
        text = statements.set(*assignments, lifetime="runtime")
        assert statements.numbers() == wanted
        statements.sutrod.call("ReloadPolicies")
        assert statements.read() == text
        assert statements.numbers() == wanted
        assert statements.set(*text, lifetime="runtime") == text


def test_random_sums(statements: Statements) -> None:
    """A sum of parts is the sum, counted in thousandths of a part."""
    draw = random.Random(2)
    for _ in batches():
        assignments, wanted = [], {}
        for n in range(250):
            total, text = 0, ""
            for power, suffix in ((12, "T"), (9, "G"), (6, "M"), (3, "K"), (0, "B")):
                whole, part = draw.randrange(200), draw.randrange(1000)
                if draw.random() < 1 / 2:
                    blanks = [" " * draw.randrange(2) for _ in range(2)]
                    text += f"{whole}.{part:03}{blanks[0]}{suffix}{blanks[1]}"
                    total += whole * 10**power + part * 10**power // 1000
            if total:
                assignments.append(("ReadBandwidthMax", f"/{n} {text.strip()}"))
                wanted["ReadBandwidthMax", f"/{n}"] = total
            else:
                statements.refuse("ReadBandwidthMax", f"/{n} {text.strip()}", "a path and bytes")
        statements.set(*assignments)
        assert statements.numbers() == wanted
