# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stacks of block devices in scenario files, and how they are made over model disks in a guest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rig import scheduler, stack
from rig.modeldisk import ModelDisk
from rig.stack import Stack

from bench.read import Has, Name, NotEmpty, OneOf, Table, known, unique

KINDS = ("hdd", "ssd", "nvme")
# A layer of this kind writes the layer below over.
FILL = "fill"


class Model:
    """The table of a model disk: its kind, and any number of the model."""

    def check(self, table: Mapping[str, object]) -> None:
        """Raise ValueError for a kind that there is not."""
        try:
            OneOf(*KINDS).check(table.get("kind"))
        except ValueError as error:
            raise ValueError(f"kind: {error}") from error


@dataclass(frozen=True, kw_only=True)
class StackSpec:
    """Model disks, and the layers above them; devices in `fill` are written over once."""

    name: Name
    disk: Annotated[tuple[Annotated[Table, Has("names"), Model()], ...], NotEmpty()]
    layer: tuple[Table, ...] = ()
    fill: tuple[str, ...] = ()

    def check(self) -> None:
        """Every name is used once, and names an existing layer."""
        for disk in self.disk:
            if not isinstance(disk["names"], list) or not disk["names"]:
                raise ValueError("disk: names: must be a list of names")
        unique(standing(self.disks(), self.layer))
        known("fill", self.fill, self.devices())

    def disks(self) -> list[str]:
        """Names of the disks."""
        return [str(name) for table in self.disk for name in table["names"]]

    def devices(self) -> list[str]:
        """Names of all block devices, which a unit may use."""
        layers = [layer for layer in self.layer if layer["kind"] not in ("ext4", "group")]
        return [*self.disks(), *(str(layer["name"]) for layer in layers)]

    @property
    def top(self) -> str:
        """The device of units that name none."""
        return self.devices()[-1]


def standing(leaves: Sequence[str], layers: Sequence[Table], *more_kinds: str) -> list[str]:
    """Names of the leaves and of all layers; ValueError for a layer on a device that is missing."""
    there = list(leaves)
    for layer in layers:
        what = f"layer {layer.get('name', '')}".rstrip()
        kind, over = layer.get("kind"), layer.get("over")
        if kind not in (*more_kinds, *stack.KINDS):
            kinds = ", ".join((*more_kinds, *stack.KINDS))
            raise ValueError(f"{what}: kind: {kind!r} is none of {kinds}")
        if not isinstance(over, list) or (kind != FILL and not layer.get("name")):
            raise ValueError(f"{what}: needs name, and over, a list of what it lies on")
        known(f"{what}: over", over, there)
        there += [str(layer["name"])] if "name" in layer else []
    return there


def build(made: Stack, layers: Sequence[Table], fill: Callable[[str], object]) -> None:
    """Make layers; one of the kind FILL fills the device that it lies on."""
    for layer in layers:
        if layer["kind"] == FILL:
            fill(made.nodes[str(layer["over"][0])])
        else:
            made.add(**layer)


@contextmanager
def built(
    disks: Sequence[Table], layers: Sequence[Table], prepare: Callable[[Stack], None]
) -> Iterator[tuple[list[ModelDisk], Stack]]:
    """Model disks and the stack on them; while it is made and prepared the disks are fast."""
    with ExitStack() as undo:
        made = [undo.enter_context(disk) for disk in _disks(disks)]
        for table in disks:
            for name in table["names"]:
                for key, value in table.get("queue", {}).items():
                    (scheduler.queue(name) / key).write_text(str(value))
        stood = undo.enter_context(stack.standing(made, layers, prepare))
        yield made, stood


def _disks(tables: Sequence[Table]) -> Iterator[ModelDisk]:
    for table in tables:
        keys = dict(table)
        kind, names, seed = keys.pop("kind"), keys.pop("names"), keys.pop("seed", 1)
        keys.pop("queue", None)
        for number, name in enumerate(names):
            yield ModelDisk(name, kind, {**keys, "seed": seed + number})


@contextmanager
def sysctl(settings: Mapping[str, object]) -> Iterator[None]:
    """Kernel settings, and afterwards those of before."""
    files = {key: Path("/proc/sys") / key.replace(".", "/") for key in settings}
    # Of a pair such as dirty_bytes and dirty_ratio the one in force is not 0: it undoes the other.
    before = {file: file.read_text() for file in files.values()}
    pairs = [Path(str(file).replace("_bytes", "_ratio")) for file in files.values()]
    before.update({file: file.read_text() for file in pairs})
    try:
        for key, file in files.items():
            file.write_text(str(settings[key]))
        yield
    finally:
        for file, text in before.items():
            if text.strip() != "0":
                file.write_text(text)
