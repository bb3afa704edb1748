# SPDX-License-Identifier: LGPL-2.1-or-later
"""The graph of devices, with devices that come and go."""

import os

import pytest
from sutro.errors import NoSuchPath
from sutro.topology import Topology, label


def device(name, slaves=(), aliases=(), size=1):
    return {
        "name": name,
        "node": "/dev/" + name,
        "slaves": list(slaves),
        "aliases": list(aliases),
        "kind": "loop" if name.startswith("loop") else "other",
        "leaf": not slaves or name.startswith("loop"),
        "size_bytes": size,
    }


@pytest.fixture
def topology():
    return Topology(
        [
            device("dm-0", ["sda", "sdb"], ["/dev/mapper/vg-lv", "/dev/vg/lv"]),
            device("dm-1", ["dm-0", "sdb", "sdz"]),
            device("sda"),
            device("sdb"),
            device("loop0", size=0),
        ]
    )


def test_loop_device_is_a_leaf_on_leaves():
    topology = Topology([device("loop1", ["sda"]), device("sda")])
    loop, disk = topology.find("loop1"), topology.find("sda")
    assert names(topology.leaves(loop)) == ["loop1", "sda"]
    assert names(topology.slaves(loop)) == ["sda"]
    assert names(topology.stacks_on(disk)) == ["loop1"]
    assert names(topology.stacks_on(loop)) == []


def names(devices):
    return [found["name"] for found in devices]


def test_tops_leave_out_what_is_empty_or_below(topology):
    assert names(topology.tops()) == ["dm-1"]


def test_leaves_once_each_and_without_what_has_gone(topology):
    assert names(topology.leaves(topology.find("dm-1"))) == ["sda", "sdb"]


def test_stacks_on(topology):
    assert names(topology.stacks_on(topology.find("sdb"))) == ["dm-1"]


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("dm-0", "/dev/vg/lv"),
        ("vg-lv", "/dev/vg/lv"),
        ("/dev/vg/lv", "/dev/vg/lv"),
        ("//dev///vg/./lv/", "/dev/vg/lv"),
        ("/srv/../dev/vg/lv", "/dev/vg/lv"),
    ],
)
def test_path(topology, typed, path):
    assert topology.path(typed) == path


def test_relative_path(topology, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert topology.path("file") == topology.path("./file") == os.path.join(tmp_path, "file")
    assert topology.path("..") == str(tmp_path.parent)


@pytest.mark.parametrize(
    ("typed", "path"), [("vg/lv", "/dev/vg/lv"), ("mapper/vg-lv", "/dev/vg/lv")]
)
def test_path_without_dev(topology, tmp_path, monkeypatch, typed, path):
    """Names of volumes as lvs prints them; a file of that name here is meant first."""
    monkeypatch.chdir(tmp_path)
    assert topology.path(typed) == path
    assert topology.path("./" + typed) == str(tmp_path / typed)
    (tmp_path / typed).parent.mkdir()
    (tmp_path / typed).touch()
    assert topology.path(typed) == str(tmp_path / typed)


def test_unknown_path_without_dev(topology, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoSuchPath) as caught:
        topology.path("vg/lw")
    assert caught.value.message == "there is no device and no file named 'vg/lw'"
    assert caught.value.hint == "did you mean vg/lv?"


def test_unknown_short_name(topology):
    with pytest.raises(NoSuchPath) as caught:
        topology.path("dm-9")
    assert "'dm-9'" in caught.value.message and "dm-0" in caught.value.hint


def test_label(topology):
    assert label(topology.find("dm-0")) == "/dev/vg/lv"
    assert label(device("dm-7", ["sda"], ["/dev/mapper/secret"])) == "/dev/mapper/secret"
    assert label(device("sda")) == "/dev/sda"
