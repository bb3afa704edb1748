# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls of sutrod over the system bus, by busctl: no library between the test and the daemon."""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from rig.shell import run, wait_for

PLACE = ("org.sutro1", "/org/sutro1", "org.sutro1.Manager")


class BusError(RuntimeError):
    """The daemon (or the bus) answered with an error."""


def plain(value: Any) -> Any:
    """Take the types out of busctl's JSON: {"type": "s", "data": x} is x."""
    if isinstance(value, dict):
        if value.keys() == {"type", "data"}:
            return plain(value["data"])
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _busctl(*words: str) -> Any:
    done = subprocess.run(
        ["busctl", "--system", "--json=short", "--timeout=20", *words],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BusError(done.stderr.strip())
    return plain(json.loads(done.stdout)) if done.stdout.strip() else None


def call(method: str, signature: str = "", *arguments: str) -> Any:
    """Call a method; one result comes bare, several as a list."""
    words = ([signature] if signature else []) + list(arguments)
    got = _busctl("call", *PLACE, method, *words)
    return got[0] if isinstance(got, list) and len(got) == 1 else got


def get(name: str) -> Any:
    """A property of the daemon."""
    return _busctl("get-property", *PLACE, name)


def devices() -> dict[str, dict[str, Any]]:
    """ListDevices, by kernel name."""
    return {device["name"]: device for device in call("ListDevices")}


def units() -> dict[str, dict[str, Any]]:
    """ListUnits, by unit."""
    return {unit["unit"]: unit for unit in call("ListUnits")}


def use(*paths: str) -> None:
    """UseDevices: switch the leaves under the paths to sutro; each of them must switch."""
    _switched(call("UseDevices", "as", str(len(paths)), *paths))


def release(*paths: str) -> None:
    """ReleaseDevices: give the leaves under the paths back, all managed leaves if there is none."""
    _switched(call("ReleaseDevices", "as", str(len(paths)), *paths))


def _switched(results: list[dict[str, Any]]) -> None:
    if failed := [f"{one['leaf']}: {one['error']}" for one in results if one["error"]]:
        raise BusError("; ".join(failed))


def resolve(path: str) -> tuple[str, list[str], list[dict[str, Any]]]:
    """ResolvePath: device, leaves, steps."""
    device, leaves, steps = call("ResolvePath", "s", path)
    return device, leaves, steps


def promises(unit: str = "") -> list[dict[str, Any]]:
    """ListPromises, of one unit or of all."""
    return [one for one in call("ListPromises") if unit in ("", one["unit"])]


def set_policy(unit: str, lifetime: str = "runtime", **assignments: str) -> None:
    """SetPolicy: `set_policy("db.service", ReadBandwidthMin="/dev/vg/lv 30M")`."""
    pairs = [word for pair in assignments.items() for word in pair]
    call("SetPolicy", "sa(ss)s", unit, str(len(assignments)), *pairs, lifetime)


@dataclass(frozen=True)
class Signal:
    """A signal of the daemon, and when it was received (time.monotonic)."""

    at_s: float
    member: str
    arguments: tuple[Any, ...]


class Listener:
    """Record the daemon's signals while the `with` statement lasts, whether it runs or not."""

    # The listener sends this signal until it receives it: from then on no signal is missed.
    CHECK = ("/org/sutro1/rig", "org.sutro1.Rig", "Heard")

    def __init__(self) -> None:
        self.heard: list[Signal] = []
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        wanted = [f"type='signal',interface='{name}'" for name in (PLACE[2], self.CHECK[1])]
        self._monitor = subprocess.Popen(
            ["busctl", "--system", "--json=short", *(f"--match={rule}" for rule in wanted),
             "monitor"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._thread.start()
        try:
            wait_for(self._check, "busctl monitor hears nothing", timeout_s=60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._monitor.kill()
        self._monitor.wait()
        self._thread.join()

    def _check(self) -> bool:
        run("busctl", "--system", "emit", *self.CHECK)
        return self._ready.wait(0.2)

    def _listen(self) -> None:
        for line in self._monitor.stdout or ():
            message = plain(json.loads(line))
            if message.get("interface") == PLACE[2]:
                arguments = tuple(message.get("payload") or ())
                self.heard.append(Signal(time.monotonic(), message["member"], arguments))
            elif message.get("interface") == self.CHECK[1]:
                self._ready.set()

    def of(self, member: str, from_s: float, to_s: float = float("inf")) -> list[Signal]:
        """Signals of one name in a window."""
        return [s for s in self.heard if s.member == member and from_s <= s.at_s <= to_s]


@contextlib.contextmanager
def none_infeasible() -> Iterator[None]:
    """No promise is reported as infeasible meanwhile."""
    with Listener() as heard:
        yield
        changes = [one.arguments for one in heard.of("PromiseChanged", 0)]
    assert not [one for one in changes if one[3] == "infeasible"], changes
