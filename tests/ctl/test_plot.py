# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pictures of `plot`: from the daemon's memory, and from a recording."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from conftest import NOWHERE, POLICIES, process, sutroctl
from hypothesis import given
from hypothesis import strategies as st
from shapes import PLOT, fits
from sutro import chart
from sutro.errors import SutroError
from test_recording import ANY


def picture(file):
    """The titles and the SVG trees of a page, which refers to nothing outside of itself."""
    page = file.read_text()
    assert not re.search(r"https?:|//|src=|href=|@import|<script", page)
    titles = re.findall(r"<h2>(.*)</h2>", page)
    return titles, [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]


def curve(svg, name):
    """The points of a curve, in runs without a gap."""
    (path,) = (path for path in svg.iter("path") if path.get("class") == name)
    runs = re.split("M", path.get("d"))[1:]
    return [[tuple(map(float, point.split())) for point in run.split("L")] for run in runs]


def test_remembered(promised, tmp_path):
    file = tmp_path / "plot.html"
    data = sutroctl("plot", "-o", str(file), "--json").json()
    fits(data, PLOT)
    # Of a ceiling, and of a path that leads nowhere, nothing is remembered.
    assert len(data["panels"]) == 7 and all(one["samples"] > 30 for one in data["panels"])
    titles, svgs = picture(file)
    assert len(svgs) == 7
    assert "web.service  ReadBandwidthMin=/srv" in titles
    web = svgs[titles.index("web.service  ReadBandwidthMin=/srv")]
    (got,), (granted,), (stated,) = (curve(web, name) for name in ("got", "granted", "stated"))
    # All is granted at first, and in the end less than it gets; y grows downwards.
    assert got[0][1] > granted[0][1] == stated[0][1]
    assert granted[-1][1] > got[-1][1] > stated[-1][1]
    assert got[0][0] < got[-1][0]


def test_default_file(promised, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = sutroctl("plot", "db")
    assert (run.status, run.err) == (0, "")
    assert run.out.startswith("sutro.html: 3 promises\n  db.service WriteBandwidthMin=/dev/vg0/db,")
    assert len(picture(tmp_path / "sutro.html")[1]) == 3


def sample(time, got, unit="db.service", path="/srv", **more):
    return {
        "time": time,
        "unit": unit,
        "key": "ReadBandwidthMin",
        "path": path,
        "value": 1000,
        "got": got,
        "granted": 0.5,
    } | more


def record(tmp_path, *samples):
    file = tmp_path / "record.json"
    file.write_text("".join(json.dumps(one) + "\n" for one in samples))
    return str(file)


def test_recorded(tmp_path):
    """With a file no daemon and no bus are called; a gap in it is one in the curve."""
    source = record(tmp_path, *(sample(10**9 + t, t) for t in (0, 1, 2, 30, 31)))
    file = tmp_path / "plot.html"
    run = sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE)
    assert (run.status, run.err) == (0, "")
    (svg,) = picture(file)[1]
    assert [len(run) - 1 for run in curve(svg, "got")] == [3, 2]


def test_granted_time_of_a_target(tmp_path):
    """With half of the time, the target is not half as long."""
    key, file = "LatencyTarget", tmp_path / "plot.html"
    source = record(tmp_path, *(sample(10**9 + t, 1500 + t, key=key) for t in (0, 1)))
    assert sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE).status == 0
    (svg,) = picture(file)[1]
    assert curve(svg, "granted") == curve(svg, "stated")


def test_recorded_cgroups(tmp_path):
    """Promises of two cgroups by their paths are two panels, named by the cgroup."""
    jobs = [sample(1.0, 5, unit="", cgroup=f"/jobs/{number}") for number in (1, 2)]
    source, file = record(tmp_path, *jobs), tmp_path / "plot.html"
    command = ("plot", "--from", source, "-o", str(file), "--json")
    data = sutroctl(*command, **NOWHERE).json()
    assert [panel["unit"] for panel in data["panels"]] == ["/jobs/1", "/jobs/2"]
    assert picture(file)[0][1] == "/jobs/2  ReadBandwidthMin=/srv"
    (panel,) = sutroctl(*command, "/jobs/2", **NOWHERE).json()["panels"]
    assert panel["samples"] == 1


def test_names_cannot_break_the_page(tmp_path):
    evil = "/srv/<script>alert('x')</script>&amp;"
    source = record(tmp_path, sample(1.0, 5, path=evil))
    file = tmp_path / "plot.html"
    assert sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE).status == 0
    page = file.read_text()
    assert "<script" not in page and "&lt;script&gt;" in page and "&amp;amp;" in page


def test_recording_that_was_cut(tmp_path):
    source = record(tmp_path, sample(1.0, 5), sample(2.0, 6))
    with open(source, "a") as stream:
        stream.write('{"time": 3.0, "un')
    file = tmp_path / "plot.html"
    run = sutroctl("plot", "--from", source, "-o", str(file), "--json", **NOWHERE)
    assert run.json()["panels"][0]["samples"] == 2


def test_recorded_ceiling_of_infinity(tmp_path):
    """It has no curve."""
    limit = sample(1.0, 0, key="ReadBandwidthMax", value=None)
    source, file = record(tmp_path, limit, sample(1.0, 5)), tmp_path / "plot.html"
    run = sutroctl("plot", "--from", source, "-o", str(file), "--json", **NOWHERE)
    assert [panel["key"] for panel in run.json()["panels"]] == ["ReadBandwidthMin"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nonsense", "'nonsense' is not JSON; expected the output of sutroctl watch --json"),
        ("[]", "this line is not a JSON object"),
        ("{}", "'unit' is missing or not a string"),
        (json.dumps(sample(1.0, 5, path=3)), "'path' is missing or not a string"),
        (json.dumps(sample(1.0, "5")), "'got' is missing or not a number"),
        (json.dumps(sample(1.0, -5)), "'got' is missing or not a number"),
        (json.dumps(sample(float("nan"), 5)), "'time' is missing or not a number"),
        (json.dumps(sample(1.0, float("inf"))), "'got' is missing or not a number"),
        (json.dumps(sample(10**400, 5)), "'time' is missing or not a number"),
        ("[" * 100000, "is not JSON"),
        (json.dumps(sample(1.0, 5, unit="\ud800")), "'unit' is missing or not a string of UTF-8"),
        (json.dumps(sample(1.0, 5, path="/\0")), "'path' is missing or not a string of UTF-8"),
        (json.dumps(sample(1.0, True)), "'got' is missing or not a number"),
        (
            json.dumps(sample(1.0, 5, value="x")),
            "'value' is missing or not a number from 0 to 2^64",
        ),
    ],
)
def test_recording_with_a_mistake(tmp_path, line, expected):
    source = record(tmp_path, sample(1.0, 5))
    with open(source, "a") as stream:
        stream.write(line + "\n")
    file = tmp_path / "plot.html"
    run = sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE)
    assert (run.status, run.out) == (1, "")
    assert run.err.startswith(f"sutroctl: {source}:2: ") and expected in run.err
    assert not file.exists()


@pytest.mark.parametrize("suffix", ["html", "png"])
def test_output_of_a_failure(tmp_path, monkeypatch, suffix):
    """The file keeps its text, and there is no other one beside it."""
    file, whole = tmp_path / f"plot.{suffix}", record(tmp_path, sample(1.0, 5))
    file.write_text("before")
    monkeypatch.setattr(chart, "need_matplotlib", lambda: None)

    def failing(*_):
        raise SutroError("there is no ink")

    for drawing in ("html", "png"):
        monkeypatch.setattr(chart, drawing, failing)
    run = sutroctl("plot", "--from", whole, "-o", str(file), **NOWHERE)
    assert (run.status, run.err) == (1, "sutroctl: there is no ink\n")
    source = record(tmp_path, sample(1.0, 5), sample(1.0, 5, path="/\ud800"))
    run = sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE)
    assert run.status == 1 and run.err.startswith(f"sutroctl: {source}:2: 'path' is missing or not")
    assert file.read_text() == "before"
    assert sorted(one.name for one in tmp_path.iterdir()) == [file.name, "record.json"]


@pytest.mark.parametrize(("count", "status"), [(64, 0), (65, 1)])
def test_panels_of_a_png(tmp_path, monkeypatch, count, status):
    file, paths = tmp_path / "plot.png", [f"/srv{number}" for number in range(count)]
    monkeypatch.setattr(chart, "need_matplotlib", lambda: None)
    monkeypatch.setattr(chart, "png", lambda panels: b"%d panels" % len(panels))
    source = record(tmp_path, *[sample(1.0, 5, path=path) for path in paths])
    run = sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE)
    assert (run.status, file.exists()) == (status, not status)
    if status:
        assert run.err == (
            "sutroctl: a PNG has room for 64 promises, and there are 65\n"
            "          name some units, or a file that ends in .html\n"
        )
    # HTML has no such limit.
    run = sutroctl("plot", "--from", source, "-o", str(tmp_path / "plot.html"), **NOWHERE)
    assert run.status == 0


def test_output_is_replaced_as_a_whole(tmp_path):
    """A program that reads the former picture has all of it."""
    source, file = record(tmp_path, sample(1.0, 5)), tmp_path / "plot.html"
    file.write_text("before")
    with file.open() as before:
        assert sutroctl("plot", "--from", source, "-o", str(file), **NOWHERE).status == 0
        assert before.read() == "before"
    assert len(picture(file)[1]) == 1


@given(st.sampled_from(sorted(sample(1.0, 5, cgroup=""))), ANY)
def test_any_value_in_a_recording(tmp_path_factory, field, value):
    """It is drawn, or refused in one line with the file, the line and the field."""
    folder = tmp_path_factory.mktemp("any")
    source = record(folder, sample(1.0, 5), sample(1.0, 5) | {field: value})
    run = sutroctl("plot", "--from", source, "-o", str(folder / "plot.html"), **NOWHERE)
    if run.status != 0:
        (line,) = run.err.splitlines()
        assert line.startswith(f"sutroctl: {source}:2: '{field}' is missing or not"), run.err


def test_binary_recording(tmp_path):
    source = tmp_path / "record"
    source.write_bytes(b"\xff\xfe\x00")
    run = sutroctl("plot", "--from", str(source), **NOWHERE)
    assert run.err == (
        f"sutroctl: {source}: this is not UTF-8 text\n"
        "          make one: sutroctl watch --json >FILE\n"
    )


@pytest.mark.parametrize(
    ("args", "status", "expected"),
    [
        (
            ["-o", "plot.jpg"],
            2,
            "'plot.jpg' is no name for a plot: allowed is one in .html or .png",
        ),
        (["-o", "/nonexistent/plot.html"], 1, "/nonexistent/plot.html: No such file or directory"),
        (["bd"], 1, "there is no promise for 'bd.service'\n          did you mean db.service?"),
        (["--from", "/nonexistent"], 1, "/nonexistent: No such file or directory"),
        (["--from", "/dev/null"], 1, "there is nothing to draw: no promise has a sample yet"),
    ],
)
def test_what_cannot_be_drawn(promised, tmp_path, monkeypatch, args, status, expected):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run = sutroctl("plot", *args)
    assert (run.status, run.out) == (status, "")
    assert run.err.startswith("sutroctl: " + expected)
    assert list((tmp_path / "here").iterdir()) == []


def test_png_without_matplotlib(tmp_path):
    """Reported before any call."""
    (tmp_path / "matplotlib.py").write_text("raise ImportError('not here')\n")
    run = process("sutroctl", "plot", "-o", "x.png", PYTHONPATH=f"{tmp_path}:{POLICIES}", **NOWHERE)
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        "sutroctl: PNG needs matplotlib, which is not installed\n"
        "          install it: apt install python3-matplotlib; or write HTML: -o FILE.html\n"
    )


# The pure parts


@given(st.floats(1e-3, 1e18))
def test_ticks(largest):
    ticks = chart.ticks(largest)
    assert 3 <= len(ticks) <= 6 and ticks[0] == 0
    assert ticks[-1] <= largest * (1 + 1e-6)
    steps = {round((b - a) / ticks[1], 6) for a, b in zip(ticks, ticks[1:], strict=False)}
    assert steps == {1.0}
    assert float(f"{ticks[1]:.1e}") == pytest.approx(ticks[1]), "two digits at most"


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=3000), st.integers(10, 200))
def test_thinned_keeps_the_extremes(numbers, limit):
    kept = chart.thinned(numbers, limit)
    assert kept == sorted(set(kept)) and len(kept) <= limit + 2
    assert kept[0] == 0 and kept[-1] == len(numbers) - 1
    values = [numbers[index] for index in kept]
    assert (min(values), max(values)) == (min(numbers), max(numbers))


@given(st.lists(st.floats(0.01, 10), max_size=50))
def test_runs_cut_at_gaps_only(steps):
    seconds = [sum(steps[:count]) for count in range(len(steps) + 1)]
    parts = [seconds[part] for part in chart.runs(seconds)]
    assert sum(parts, []) == seconds
    for before, after in zip(parts, parts[1:], strict=False):
        assert after[0] - before[-1] > chart.GAP_S
    for part in parts:
        assert all(b - a <= chart.GAP_S for a, b in zip(part, part[1:], strict=False))
