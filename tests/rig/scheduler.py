# SPDX-License-Identifier: LGPL-2.1-or-later
"""The elevator of a leaf: select one, set it up for a comparison, undo that.

`nr_requests` is stated always: left alone it follows the device's queue depth, and with few
request slots weights mean nothing, whichever elevator runs. BFQ gets `low_latency=0`, because its
interactivity heuristics override weights.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rig import bus
from rig.shell import run

NR_REQUESTS = 256
SETTINGS = {"bfq": {"low_latency": "0"}}


def queue(leaf: str) -> Path:
    """The sysfs queue folder of a leaf named as in /sys/block."""
    return Path("/sys/block") / leaf / "queue"


def current(leaf: str) -> str:
    """The elevator in use."""
    text = (queue(leaf) / "scheduler").read_text()
    return text[text.index("[") + 1 : text.index("]")]


def slots(leaf: str) -> int:
    """The request slots of the elevator that are taken, of the first hardware queue."""
    text = (Path("/sys/kernel/debug/block") / leaf / "hctx0/sched_tags").read_text()
    return int(text.split("busy=")[1].split()[0])


def select(leaf: str, name: str, nr_requests: int | None = NR_REQUESTS) -> None:
    """Switch a leaf to an elevator (the kernel loads its module); state the request slots."""
    try:
        (queue(leaf) / "scheduler").write_text(name)
    except OSError as error:
        raise OSError(error.errno, f"{leaf}: no elevator {name}: {error.strerror}") from error
    tune(leaf, name, nr_requests)


def tune(leaf: str, name: str, nr_requests: int | None = NR_REQUESTS) -> None:
    """Set what a comparison needs, on a leaf that already has the elevator."""
    if current(leaf) != name:
        raise RuntimeError(f"{leaf}: elevator is {current(leaf)}, should be {name}")
    for key, value in SETTINGS.get(name, {}).items():
        (queue(leaf) / "iosched" / key).write_text(value)
    # Without an elevator the slots are the device's own tags and cannot grow beyond them.
    if nr_requests and name != "none":
        (queue(leaf) / "nr_requests").write_text(str(nr_requests))


@contextmanager
def chosen(name: str, leaves: Sequence[str], *devices: str) -> Iterator[None]:
    """Run the leaves under an elevator for a while.

    `sutro` is chosen as a user chooses it: sutrod runs, and switches the leaves under these devices
    as `sutroctl use DEVICE...` requests it. For all others sutrod is stopped: systemd is alone.
    """
    before = {leaf: current(leaf) for leaf in leaves}
    with ExitStack() as undo:
        for leaf, old in before.items():
            undo.callback(_restore, leaf, old)
        if name == "sutro":
            run("systemctl", "start", "sutrod.service")
            undo.callback(run, "systemctl", "stop", "sutrod.service")
            bus.use(*devices)
            undo.callback(bus.release, *devices)
            for leaf in leaves:
                tune(leaf, name)
        else:
            stop_daemon()
            for leaf in leaves:
                select(leaf, name)
        yield


def stop_daemon() -> None:
    """Stop sutrod where it is installed, so that systemd is alone."""
    if "not-found" not in run("systemctl", "show", "--property=LoadState", "sutrod.service"):
        run("systemctl", "stop", "sutrod.service")


def _restore(leaf: str, name: str) -> None:
    # A leaf that was unplugged meanwhile has no scheduler to restore.
    if queue(leaf).exists() and current(leaf) != name:
        (queue(leaf) / "scheduler").write_text(name)
