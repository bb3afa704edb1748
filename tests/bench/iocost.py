# SPDX-License-Identifier: LGPL-2.1-or-later
"""iocost on model disks: its model and quality of service are computed from the disks' numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from rig.modeldisk import ModelDisk, Truth
from rig.unit import CGROUP_ROOT
from uml.plan import DEFAULTS, iocost_model, iocost_qos


@contextmanager
def enabled(
    disks: Sequence[ModelDisk],
    numbers: Mapping[str, Mapping[str, object]],
    truth: Mapping[str, Truth],
) -> Iterator[None]:
    """Enable iocost on disks for a while; numbers and truth by name of the disk.

    truth: of a run that kept the disks busy with random requests.
    """
    with ExitStack() as undo:
        for disk in disks:
            undo.callback(_write, "qos", f"{disk.devno} enable=0")
            iops = random_iops(truth[disk.name], numbers[disk.name])
            for file, line in (("model", iocost_model), ("qos", iocost_qos)):
                _write(file, line(numbers[disk.name], iops).format(devno=disk.devno))
        yield


def random_iops(truth: Truth, numbers: Mapping[str, object]) -> float:
    """Random requests of 4 KiB per second, from the time of larger ones less their transfer.

    Only an hdd's model needs it, and there the medium's rate is the rate of transfer.
    """
    total, numbers = truth.total, {**DEFAULTS[str(numbers["kind"])], **numbers}
    ios = total.rios + total.wios
    if not ios or numbers["kind"] != "hdd":
        return 0.0
    transfer_s = (total.bytes / ios - 4096) / (int(str(numbers["bandwidth_kbps"])) * 1024)
    return 1 / max(1e-5, total.busy_ns / 1e9 / ios - transfer_s)


def _write(file: str, line: str) -> None:
    (CGROUP_ROOT / f"io.cost.{file}").write_text(line)
