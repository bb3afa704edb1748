# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fixtures of the guest tests: a real kernel, systemd as PID 1, model disks.

Run as root in the lab's guest, PYTHONPATH=/mnt/src/tests: `python3 -m pytest /mnt/src/tests/vm`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from rig import bus, modeldisk, scheduler
from rig.cgroup import Group, Subtree
from rig.kernel_log import KernelLog, kernel_complaint
from rig.modeldisk import ModelDisk
from rig.shell import run
from rig.stack import Stack, standing
from rig.unit import Unit
from rig.unit import stop as stop_units

MakeDisk = Callable[..., ModelDisk]


@pytest.fixture(scope="session", autouse=True)
def modules() -> None:
    """Everything a test may need is loaded before the first one watches the kernel log."""
    modeldisk.load_module()
    for name in ("bfq", "kyber-iosched", "sutro"):
        run("modprobe", name)


@pytest.fixture(scope="session")
def kernel_log(modules: None) -> KernelLog:
    """The kernel log from the first test on."""
    return KernelLog()


@pytest.fixture(autouse=True)
def quiet_kernel(kernel_log: KernelLog) -> Iterator[None]:
    """No test passes if the kernel complained while it ran."""
    kernel_log.news()
    yield
    news = kernel_log.news()
    if (complaint := kernel_complaint(news)) or "Call Trace" in news:
        pytest.fail(f"the kernel logged: {complaint or news}", pytrace=False)


@pytest.fixture
def disk() -> Iterator[MakeDisk]:
    """Make model disks: `disk("ssd", "ssd0", "sutro", bus_kbps=60000)`; they go when the test ends.

    A disk for which no elevator is named has that of the system.
    """
    with ExitStack() as made:

        def make(
            kind: str = "ssd", name: str = "disk0", elevator: str = "", **numbers: object
        ) -> ModelDisk:
            one = made.enter_context(ModelDisk(name, kind, {"size_mb": 256, **numbers}))
            if elevator:
                scheduler.select(name, elevator)
            return one

        yield make


@pytest.fixture
def stack(disk: MakeDisk) -> Iterator[Callable[..., Stack]]:
    """Make a stack over model disks: `stack(disks, *layers)`."""
    with ExitStack() as made:

        def make(disks: list[ModelDisk], *layers: dict[str, object]) -> Stack:
            return made.enter_context(standing(disks, layers))

        yield make


@pytest.fixture
def units() -> Iterator[Callable[..., Unit]]:
    """Start transient services: `units("name", "command", weight=200)`; stopped at the end."""
    started: list[Unit] = []

    def start(name: str, command: str = "exec sleep infinity", **keys: object) -> Unit:
        unit = Unit(name, command, **keys)
        started.append(unit)
        unit.start()
        return unit

    yield start
    if started:
        stop_units(started)


@pytest.fixture(scope="module")
def subtree() -> Iterator[Subtree]:
    """A delegated cgroup subtree for the tests of a file; no daemon interferes."""
    scheduler.stop_daemon()
    with Subtree() as made:
        yield made


@pytest.fixture
def tree(subtree: Subtree) -> Iterator[Subtree]:
    """The delegated subtree, empty before and after."""
    yield subtree
    subtree.clear()


@pytest.fixture
def group(tree: Subtree) -> Group:
    """A cgroup with the io controller."""
    return tree.child("a")


@pytest.fixture(scope="module")
def steady_disk(subtree: Subtree) -> Iterator[ModelDisk]:
    """An ssd model for the tests of a file."""
    with ModelDisk("steady", "ssd", {"size_mb": 256, "bus_kbps": 60000}) as made:
        yield made


@pytest.fixture
def sutro_disk(steady_disk: ModelDisk) -> ModelDisk:
    """An ssd model under a fresh sutro elevator."""
    scheduler.select(steady_disk.name, "none")
    scheduler.select(steady_disk.name, "sutro")
    steady_disk.reset()
    return steady_disk


@pytest.fixture
def daemon() -> Iterator[None]:
    """sutrod runs; afterwards no leaf is in its care."""
    run("systemctl", "reset-failed", "sutrod.service")
    run("systemctl", "start", "sutrod.service")
    yield
    run("systemctl", "reset-failed", "sutrod.service")
    run("systemctl", "start", "sutrod.service")
    bus.release()
    run("systemctl", "stop", "sutrod.service")


@pytest.fixture
def leaf(disk: MakeDisk, daemon: None) -> ModelDisk:
    """A disk in use by sutro."""
    one = disk("ssd", "ssd0", bus_kbps=20000)
    bus.use(one.node)
    assert scheduler.current("ssd0") == "sutro"
    return one


def pytest_configure(config: pytest.Config) -> None:
    """Tests of the first tier have a mark, which ./lab test selects."""
    config.addinivalue_line("markers", "first: runs in the first tier of ./lab test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The judge comes first, the test that purges the packages comes last."""

    def place(item: pytest.Item) -> int:
        name = item.path.stem
        return 2 * name.endswith("purge") + (not name.startswith("test_modeldisk"))

    items.sort(key=place)
