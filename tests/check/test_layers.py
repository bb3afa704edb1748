# SPDX-License-Identifier: LGPL-2.1-or-later
"""The #include lines of the daemon and the elevator: arrows go one way, without a cycle.

A module is NAME.c with NAME.h. A module of daemon/ includes modules of its own room and of the
rooms below:

    host <- policy <- control <- bus <- the files in daemon/ itself
                   <- exporter

Modules that include each other, directly or through others, are a cycle, inside a room too.
"""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tree import TOP, having

# Of each room, those below it.
ROOMS = {
    "host": (),
    "policy": ("host",),
    "exporter": ("host", "policy"),
    "control": ("host", "policy"),
    "bus": ("host", "policy", "control"),
    "": ("host", "policy", "control", "bus"),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# Headers of the kernel's block layer have the same form of #include as those of the elevator.
FROM_KERNEL = re.compile(r"(blk|elevator|bfq)[\w-]*\.h")

Arrow = tuple[str, str]


def module(name: str) -> str:
    return str(Path(name).with_suffix(""))


def find(top: Path, name: str, included: str) -> list[str]:
    """The files that an #include of `name` may mean: one, or one for each kernel series."""
    near = (top / name).parent
    folders = [near, top / "daemon"] if name.startswith("daemon/") else [near, top / "kernel"]
    for folder in folders:
        if (folder / included).is_file():
            return [str((folder / included).resolve().relative_to(top.resolve()))]
    series = sorted(top.glob(f"kernel/compat/*/{included}"))
    return [str(path.relative_to(top)) for path in series] if name.startswith("kernel/") else []


def read_arrows(top: Path, names: list[str]) -> tuple[set[Arrow], list[str]]:
    """Each module with each other module that it includes, and the #include lines of no file."""
    arrows, unknown = set(), []
    for name in names:
        for included in INCLUDE.findall((top / name).read_text()):
            found = find(top, name, included)
            if not found and not (name.startswith("kernel/") and FROM_KERNEL.fullmatch(included)):
                unknown.append(f'{name}: #include "{included}": no such file')
            arrows |= {(module(name), module(other)) for other in found}
    return {(one, other) for one, other in arrows if one != other}, unknown


def room(name: str) -> str:
    """The room of a module in daemon/."""
    return "/".join(name.split("/")[1:-1])


def is_upward(one: str, other: str) -> bool:
    """Is the other module neither in the same room nor in one below?"""
    return room(other) not in (room(one), *ROOMS[room(one)])


def upward(arrows: set[Arrow]) -> list[str]:
    return sorted(
        f"{one} includes {other}, which is in a higher room"
        for one, other in arrows
        if one.startswith("daemon/") and is_upward(one, other)
    )


def cycles(arrows: set[Arrow]) -> list[str]:
    """The first cycle that is found, as a sentence."""
    graph: dict[str, set[str]] = {}
    for one, other in sorted(arrows):
        graph.setdefault(one, set()).add(other)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["cycle: " + " <- ".join(error.args[1])]
    return []


def problems(top: Path, names: list[str]) -> list[str]:
    arrows, unknown = read_arrows(top, names)
    return unknown + upward(arrows) + cycles(arrows)


def test_layers() -> None:
    names = having(".c", ".h", below=("daemon/", "kernel/"))
    found = problems(TOP, names)
    assert not found, "\n".join(found)


def plant(top: Path, **texts: str) -> list[str]:
    """Write files, each an #include of another one; host__leaf_h is daemon/host/leaf.h."""
    names = []
    for key, included in texts.items():
        path, _, suffix = key.replace("__", "/").rpartition("_")
        name = f"daemon/{path}.{suffix}"
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f'#include "{included}"\n' if included else "")
        names.append(name)
    return names


def test_layers_accepts_a_lower_room(tmp_path: Path) -> None:
    names = plant(
        tmp_path, host__leaf_h="", host__leaf_c="host/leaf.h", bus__bus_c="host/leaf.h", main_c="",
    )  # fmt: skip
    assert problems(tmp_path, names) == []


@pytest.mark.parametrize(
    "higher", ["policy/unit.h", "control/law.h", "bus/bus.h", "manager.h", "exporter/http.h"]
)
def test_layers_finds_an_upward_arrow(tmp_path: Path, higher: str) -> None:
    key = higher.replace("/", "__").replace(".", "_")
    names = plant(tmp_path, host__leaf_c=higher, **{key: ""})
    assert problems(tmp_path, names) == [
        f"daemon/host/leaf includes daemon/{module(higher)}, which is in a higher room"
    ]


def test_layers_finds_an_arrow_between_programs(tmp_path: Path) -> None:
    """The exporter includes no part of the control law and the bus, and nothing includes it."""
    names = plant(tmp_path, exporter__main_c="bus/bus.h", bus__bus_h="")
    names += plant(tmp_path, manager_c="exporter/http.h", exporter__http_h="")
    assert problems(tmp_path, names) == [
        "daemon/exporter/main includes daemon/bus/bus, which is in a higher room",
        "daemon/manager includes daemon/exporter/http, which is in a higher room",
    ]


def test_layers_finds_a_cycle_in_a_room(tmp_path: Path) -> None:
    """The header guards of C allow this: a header that leaf.c includes includes leaf.h."""
    names = plant(tmp_path, host__leaf_h="", host__leaf_c="host/path.h", host__path_h="host/leaf.h")
    (found,) = problems(tmp_path, names)
    assert found.startswith("cycle: ") and "daemon/host/path" in found


def test_layers_finds_an_include_of_no_file(tmp_path: Path) -> None:
    names = plant(tmp_path, host__leaf_c="host/gone.h")
    assert problems(tmp_path, names) == ['daemon/host/leaf.c: #include "host/gone.h": no such file']
