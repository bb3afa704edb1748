# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ask sutrod over the system bus, through busctl: no library between the test and the daemon."""

from __future__ import annotations

import json
import subprocess
from typing import Any

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


def resolve(path: str) -> tuple[str, list[str], list[dict[str, Any]]]:
    """ResolvePath: device, leaves, steps."""
    device, leaves, steps = call("ResolvePath", "s", path)
    return device, leaves, steps


def explain(unit: str, path: str = "") -> dict[str, Any]:
    """Explain."""
    return call("Explain", "ss", unit, path)
