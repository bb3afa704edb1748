# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-oci: policies of containers by annotations, as a hook of the OCI runtime.

    podman run --annotation io.sutro/read-min.data=100M --volume data:/var/lib/db ...
    createRuntime   sutro-oci < state   ReadBandwidthMin= of the unit of the container is set
    poststop        sutro-oci < state   its policy is reset
    sutro-oci.path  sutro-oci watch     policies are reset that poststop did not reset

The state of the runtime names the bundle, whose config.json has the annotations, the mounts and the
cgroup. A volume is a named volume of Podman, or a mount that an annotation names by its path in the
container. The annotations are those of sutro-nri; one of the prefix that is unknown or malformed is
an error, because a misspelled promise would be none. The runtime then starts no container, and the
message is in the journal: journalctl --identifier=sutro-oci

/run/sutro-oci has a record for each container with a policy, named after its ID: the unit, and the
first process of the container. The record is there before the policy, and until the policy is
reset. It stays if poststop does not run, or sutrod does not. The service (sutro-oci watch) resets
the policy of each record whose process has ended, and ends with the last record. While a record is
locked, a container that starts again waits for the end of a late reset.
"""

import argparse
import asyncio
import contextlib
import fcntl
import os
import re
import sys
import syslog
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import __version__, objects, reach, values
from .client import Client
from .errors import BadPolicy, NotText, OutOfReach, SutroError, UsageError, of_file
from .objects import STRING, Kind, Map, Optional
from .program import Program, log

Dict = dict[str, Any]

PREFIX = "io.sutro/"
RUNTIME = "runtime"
RECORDS = Path("/run/sutro-oci")
# As the runtimes have it.
ID = re.compile(r"[\w+-][\w+.-]*")
LOOK_S = 5.0
STOPPED = "stopped"
CLASSES = ("rt", "be", "idle")
# Keys of a policy that have a value for a device, by their names in annotations.
KEYS = {
    "read-min": "ReadBandwidthMin",
    "write-min": "WriteBandwidthMin",
    "read-max": "ReadBandwidthMax",
    "write-max": "WriteBandwidthMax",
    "read-iops-min": "ReadIOPSMin",
    "write-iops-min": "WriteIOPSMin",
    "read-iops-max": "ReadIOPSMax",
    "write-iops-max": "WriteIOPSMax",
    "latency": "LatencyTarget",
    "write-latency": "WriteLatencyTarget",
    "fsync-latency": "FsyncLatencyTarget",
    "weight": "Weight",
}
FORM = (
    f"allowed is {PREFIX}KEY.VOLUME with KEY {', '.join(KEYS)}; {PREFIX}path.VOLUME; "
    f"{PREFIX}weight and {PREFIX}class"
)
# Fields of the state of a container, and of its config.json. Runtimes, which are in Go,
# take null for a missing object.
PID = Kind("the number of a process", lambda value: type(value) is int and 0 <= value < 2**31)
STATE = {"id": STRING, "status": STRING, "bundle": STRING, "pid": Optional(PID, 0)}
MOUNT = {"source": Optional(STRING, ""), "destination": Optional(STRING, "")}
LINUX = {"cgroupsPath": Optional(STRING, "")}
CONFIG = {"annotations": Optional(Map(STRING), {}), "mounts": Optional([MOUNT], [])}
CONFIG |= {"linux": Optional(LINUX, {"cgroupsPath": ""})}
PATH_FORM = "allowed is the absolute path of a volume in the container, such as /var/lib/db"


def assignments(annotations: dict[str, str], mounts: list[Dict]) -> list[tuple[str, str]]:
    """Keys and values of the policy; UsageError for a mistake, OutOfReach for such a volume."""
    ours = {n.removeprefix(PREFIX): v for n, v in annotations.items() if n.startswith(PREFIX)}
    places = {
        name.removeprefix("path."): _place(name, text)
        for name, text in ours.items()
        if name.startswith("path.")
    }
    found, used = [], set()
    for name, text in sorted(ours.items()):
        key, _, volume = name.partition(".")
        if key == "path" and volume:
            continue
        if name == "class":
            if text not in CLASSES:
                raise _malformed(name, f"'{text:.40}' is no class: allowed is rt, be or idle")
            found.append(("Class", text))
        elif name == "weight":
            found.append(("Weight", _checked(name, "Weight", text)))
        elif key in KEYS and volume:
            source = _source(name, volume, places.get(volume, ""), mounts)
            value = _checked(name, KEYS[key], text)
            found.append((KEYS[key], f"{values.quoted(source)} {value}"))
            used.add(volume)
        else:
            raise UsageError(f"annotation {PREFIX}{name:.80} is unknown", FORM)
    for volume in places.keys() - used:
        raise UsageError(
            f"annotation {PREFIX}path.{volume}: no annotation has a value for this volume", FORM
        )
    return found


def _malformed(name: str, message: str) -> UsageError:
    return UsageError(f"annotation {PREFIX}{name}: {message}", FORM)


def _checked(name: str, key: str, text: str) -> str:
    """The text if it is a value of the key."""
    try:
        values.check(key, text)
    except UsageError as error:
        raise _malformed(name, error.message) from None
    return text.strip()


def _place(name: str, text: str) -> str:
    """The path of a volume in the container."""
    if not text.startswith("/") or text != os.path.normpath(text):
        raise UsageError(f"annotation {PREFIX}{name}: '{text:.80}' is malformed", PATH_FORM)
    return text


def _source(name: str, volume: str, place: str, mounts: list[Dict]) -> str:
    """The path of a volume on the host."""
    for one in mounts:
        source, folder = one["source"], os.path.split(one["source"])
        is_named = folder[1] == "_data" and os.path.basename(folder[0]) == volume
        if source.startswith("/") and (one["destination"] == place if place else is_named):
            if why := reach.obstacle(source):
                raise OutOfReach(
                    f"annotation {PREFIX}{name}: '{source}' is out of reach of sutrod: {why}",
                    "mount a volume of a block device there",
                )
            return source
    if place:
        raise UsageError(f"annotation {PREFIX}path.{volume}: no volume is at {place}", PATH_FORM)
    raise UsageError(
        f"annotation {PREFIX}{name}: the container has no named volume '{volume}'",
        f"add --volume {volume}:PATH, or --annotation {PREFIX}path.{volume}=PATH for a bind mount",
    )


def subject(cgroup: str) -> str:
    """The unit or the cgroup of a container, of linux.cgroupsPath in its configuration."""
    parts = cgroup.split(":")
    if len(parts) == 3 and all(parts[1:]):
        return f"{parts[1]}-{parts[2]}.scope"
    if cgroup.startswith("/") and cgroup != "/":
        return os.path.normpath(cgroup)
    raise SutroError(
        f"the container has no cgroup of its own (cgroupsPath '{cgroup}')",
        "start it without --cgroups=disabled, or without annotations of Sutro",
    )


def _configuration(state: Dict) -> Dict:
    """config.json of the bundle; SutroError if it cannot be read or has a mistake."""
    file = Path(state["bundle"]) / "config.json"
    remedy = "the runtime writes this file; make the container anew"
    try:
        return objects.read(file.read_text(encoding="utf-8"), CONFIG)
    except OSError as error:
        raise of_file(file, error) from None
    except UnicodeDecodeError:
        raise SutroError(f"{file}: this is not UTF-8", remedy) from None
    except objects.Mistake as error:
        raise SutroError(f"{file}: {error}", remedy) from None


# Records of containers with a policy


def _process(pid: int) -> str:
    """A process as text, with the time of its start: another one may get its number. "": ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if words[0] in "ZX" else f"{pid} {words[19]}"


@contextlib.contextmanager
def _record(file: Path, flags: int = 0) -> Iterator[int]:
    """A record that is opened and locked: its descriptor. OSError if that fails."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another process may have removed it before it released the lock.
            if os.fstat(descriptor).st_nlink:
                yield descriptor
                return
        finally:
            os.close(descriptor)


async def _set(client: Client, file: Path, who: str, pid: int, pairs: list) -> None:
    """Set the policy of a container, with a record of it before."""
    try:
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _record(file, os.O_CREAT) as descriptor:
            os.truncate(descriptor, 0)
            os.write(descriptor, f"{who}\n{_process(pid)}\n".encode())
            await client.set_policy(who, pairs, RUNTIME)
    except OSError as error:
        raise of_file(file, error) from None


async def _reset(client: Client, file: Path, who: str = "") -> bool:
    """Reset the policy of a record, and remove it.

    With @who, the policy of that unit, whatever the record is. Without, nothing happens if the
    process of the container goes on: false then.
    """
    try:
        with _record(file) as descriptor:
            text = os.pread(descriptor, 2**16, 0).decode(errors="replace")
            recorded, process = [*text.split("\n"), "", ""][:2]
            pid = re.match("[0-9]{1,10}(?= )", process)
            if not who and pid and _process(int(pid[0])) == process:
                return False
            # A hook that was killed before it wrote the record has set no policy.
            if who or recorded:
                await client.reset_policy(who or recorded, RUNTIME)
            file.unlink(missing_ok=True)
    except FileNotFoundError:
        if who:
            await client.reset_policy(who, RUNTIME)
    except OSError as error:
        raise of_file(file, error) from None
    return True


class Watch(Program):
    """Resets the policies of containers that have ended without their poststop."""

    name = "sutro-oci"
    ending = "ending"

    def __init__(self, records: Path = RECORDS) -> None:
        super().__init__()
        self._records = records

    async def step(self) -> float:
        """Look at all records; return LOOK_S. Without records the program ends."""
        for file in sorted(self._records.glob("*")):
            try:
                if await _reset(self.client, file):
                    log(f"container {file.name}: it has ended, its policy is reset")
            except (BadPolicy, NotText) as error:
                log(f"{file} names no unit and is removed: {error.message}")
                file.unlink(missing_ok=True)
        if not any(self._records.glob("*")):
            self.stop()
        return LOOK_S


async def apply(state: Dict) -> None:
    """Set the policy of a container that is created, reset that of one that has stopped."""
    found = _configuration(state)
    who = subject(found["linux"]["cgroupsPath"])
    file = _file(state)
    if state["status"] == STOPPED:
        async with Client() as client:
            await _reset(client, file, who)
        return
    pairs = assignments(found["annotations"], found["mounts"])
    if not pairs:
        return
    if not _is_root():
        raise SutroError(
            "annotations of Sutro have no effect for containers without root",
            "set the policy of the user: sutroctl policy set user-UID.slice KEY=VALUE",
        )
    if not state["pid"]:
        raise SutroError(
            f"the state of the container has no 'pid' (status '{state['status']:.40}')",
            "run the hook at the stage createRuntime, see sutro-oci(8)",
        )
    async with Client() as client:
        await _set(client, file, who, state["pid"], pairs)


def _file(state: Dict) -> Path:
    """The record of a container."""
    if not ID.fullmatch(state["id"]):
        raise SutroError(
            f"'{state['id']:.80}' is no ID of a container",
            "allowed are letters, digits and the characters _+-.",
        )
    return RECORDS / state["id"]


def _is_root() -> bool:
    """False in a user namespace, where root is another user of the host."""
    first = Path("/proc/self/uid_map").read_text().split()[:2]
    return os.geteuid() == 0 and first == ["0", "0"]


def _watch() -> int:
    """Run the service; return the exit status."""
    try:
        asyncio.run(Watch().run())
    except SutroError as error:
        log(f"sutro-oci: {error.message}")
        return 1
    return 0


def _line(text: str) -> str:
    """The text in one line: annotations and paths in it may have any characters."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def main(argv: list[str] | None = None) -> int:
    """Read the state of a container from standard input; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="sutro-oci",
        description="Hook of an OCI runtime: policies of containers by annotations.",
        epilog="See sutro-oci(8).",
    )
    parser.add_argument("--version", action="version", version=f"sutro-oci {__version__}")
    parser.add_argument(
        "verb", nargs="?", choices=["watch"], help="the service: policies that no hook has reset"
    )
    if parser.parse_args(argv).verb:
        return _watch()
    try:
        # Python has None for a stream that is closed.
        state = objects.read(sys.stdin.read() if sys.stdin else "", STATE)
    except (OSError, ValueError) as error:  # ValueError: a Mistake, or bytes that are no text
        print(f"sutro-oci: standard input is no state of an OCI runtime: {error}", file=sys.stderr)
        print("           Podman runs it, see sutro-oci(8)", file=sys.stderr)
        return 2
    try:
        asyncio.run(apply(state))
    except SutroError as error:
        message, hint = _line(error.message), _line(error.hint)
        print(f"sutro-oci: {message}", file=sys.stderr)
        if hint:
            print(f"           {hint}", file=sys.stderr)
        # crun shows no output of hooks.
        syslog.openlog("sutro-oci", syslog.LOG_PID, syslog.LOG_DAEMON)
        text = "; ".join(filter(None, (message, hint)))
        syslog.syslog(syslog.LOG_ERR, f"container {state['id']}: {text}")
        # A container that has stopped is gone; its policy has no effect any more.
        return 0 if state["status"] == STOPPED else 1
    return 0
