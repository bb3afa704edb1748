# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-oci: policies of containers by annotations, from their creation to their end."""

import io
import json
import sys

import pytest
from conftest import NOWHERE, POLICIES, process
from sutro import oci, values

ID = "4f5e"
SCOPE = f"libpod-{ID}.scope"
CGROUP = f"machine.slice:libpod:{ID}"
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/var/lib/db", "type": "bind", "source": "/srv/volumes/data/_data"},
    {"destination": "/logs", "type": "bind", "source": "/srv/db"},
    {"destination": "/state", "type": "bind", "source": "/proc/state"},
]


@pytest.fixture
def container(machine, tmp_path):
    """Writes the bundle of a container; returns the state of one that is created."""
    machine.write("/srv/volumes/data/_data/file", "")
    machine.write("/proc/state", "")

    def bundle(annotations, cgroup=CGROUP, mounts=MOUNTS):
        keys = {f"io.sutro/{key}": value for key, value in annotations.items()}
        text = {
            "annotations": {"org.example/color": "red"} | keys,
            "mounts": mounts,
            "linux": {"cgroupsPath": cgroup},
        }
        (tmp_path / "config.json").write_text(json.dumps(text))
        return {"id": ID, "status": "created", "pid": 1, "bundle": str(tmp_path)}

    return bundle


@pytest.fixture
def hook(monkeypatch, capsys):
    """Runs the hook as root: its status, and the lines that it prints, as it logs them."""
    logged = []
    monkeypatch.setattr(oci, "_is_root", lambda: True)
    monkeypatch.setattr(oci.syslog, "syslog", lambda _priority, text: logged.append(text))

    def run(state):
        logged.clear()
        monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(state)))
        status = oci.main([])
        printed = capsys.readouterr().err
        lines = [line.removeprefix("sutro-oci:").strip() for line in printed.splitlines()]
        assert logged == ([f"container {ID}: {'; '.join(lines)}"] if lines else [])
        return status, printed

    return run


def in_force(sutrod, subject=SCOPE):
    """KEY=VALUE of the settings in force."""
    return sorted(f"{e['key']}={e['value']}" for e in sutrod.call("GetPolicy", subject))


def test_policy_lasts_as_long_as_the_container(sutrod, container, hook):
    """A named volume, a mount by its path in the container, and keys of the whole container."""
    state = container(
        {
            "read-min.data": "60M",
            "latency.data": "5ms P99",
            "write-max.logs": "1.5G",
            "path.logs": "/logs",
            "weight": "300",
            "class": "rt",
        }
    )
    assert hook(state) == (0, "")
    wanted = [
        "Class=rt",
        "LatencyTarget=/srv/volumes/data/_data 5ms P99",
        "ReadBandwidthMin=/srv/volumes/data/_data 60M",
        "Weight=300",
        "WriteBandwidthMax=/srv/db 1.5G",
    ]
    assert in_force(sutrod) == wanted
    # It does not outlive the next boot, whatever becomes of the container.
    assert all("/run/sutro/" in e["source"] for e in sutrod.call("GetPolicy", SCOPE))
    assert hook(state | {"status": "stopped"}) == (0, "")
    assert in_force(sutrod) == []


@pytest.mark.parametrize(
    "cgroup", [f"/libpod_parent/libpod-{ID}", f"/system.slice/db.service/libpod-payload-{ID}"]
)
def test_container_without_a_unit(sutrod, container, hook, cgroup):
    """With the cgroup manager cgroupfs, and with --cgroups=split, it is a cgroup."""
    state = container({"read-min.data": "60M"}, cgroup)
    assert hook(state) == (0, "")
    assert in_force(sutrod, cgroup) == ["ReadBandwidthMin=/srv/volumes/data/_data 60M"]
    assert hook(state | {"status": "stopped"}) == (0, "")
    assert in_force(sutrod, cgroup) == []


@pytest.mark.parametrize(
    ("annotations", "parts"),
    [
        (
            {"read-min.data": "60Mi"},
            ["annotation io.sutro/read-min.data: '60Mi'", "bytes per second, such as 200M"],
        ),
        ({"weight": "0"}, ["annotation io.sutro/weight: '0'", "a whole number from 1 to 10000"]),
        ({"class": "fast"}, ["annotation io.sutro/class: 'fast'", "rt, be or idle"]),
        ({"read-mn.data": "60M"}, ["annotation io.sutro/read-mn.data is unknown", "KEY.VOLUME"]),
        ({"read-min": "60M"}, ["annotation io.sutro/read-min is unknown", "KEY.VOLUME"]),
        (
            {"read-min.other": "60M"},
            ["io.sutro/read-min.other", "no named volume 'other'", "io.sutro/path.other=PATH"],
        ),
        (
            {"read-min.x": "60M", "path.x": "/nowhere"},
            ["annotation io.sutro/path.x: no volume is at /nowhere", "absolute path"],
        ),
        (
            {"read-min.x": "60M", "path.x": "db:/logs"},
            ["annotation io.sutro/path.x: 'db:/logs' is malformed", "absolute path"],
        ),
        ({"path.x": "/logs"}, ["annotation io.sutro/path.x: no annotation has a value"]),
        (
            {"read-min.x": "60M", "path.x": "/state"},
            ["annotation io.sutro/read-min.x: '/proc/state' is out of reach", "block device"],
        ),
    ],
)
def test_mistakes(sutrod, container, hook, annotations, parts):
    """The runtime starts no container; the error has the annotation and the accepted form."""
    status, printed = hook(container({"read-max.data": "1G"} | annotations))
    assert status == 1
    assert all(part in printed for part in parts), printed
    assert in_force(sutrod) == []


def test_annotations_of_others(sutrod, container, hook):
    assert hook(container({})) == (0, "")
    assert in_force(sutrod) == []


def test_container_without_a_cgroup(sutrod, container, hook):
    status, printed = hook(container({"read-min.data": "60M"}, ""))
    assert (status, "no cgroup of its own" in printed) == (1, True)


def test_container_without_root(sutrod, container, hook, monkeypatch):
    monkeypatch.setattr(oci, "_is_root", lambda: False)
    status, printed = hook(container({"read-min.data": "60M"}))
    assert status == 1
    assert "without root" in printed and "user-UID.slice" in printed
    assert in_force(sutrod) == []


def test_daemon_that_does_not_run(container):
    """A guarantee cannot be made, so there is no container; one that has stopped is gone."""
    state = container({"read-min.data": "60M"}) | {"status": "stopped"}
    run = process("sutro-oci", stdin=json.dumps(state), **NOWHERE)
    assert run.status == 0
    assert run.err.startswith("sutro-oci: there is no system bus")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"status": "created", "bundle": 3}'])
def test_input_that_is_no_state(text):
    run = process("sutro-oci", stdin=text)
    assert run.status == 2
    assert run.err.startswith("sutro-oci: standard input is no state of an OCI runtime")


def test_hook_file():
    """Podman reads it; its pattern matches the prefix of the annotations, at the two stages."""
    found = json.loads((POLICIES / "sutro-oci.json").read_text())
    assert found["stages"] == ["createRuntime", "poststop"]
    assert list(found["when"]["annotations"]) == [r"^io\.sutro/"]
    assert oci.PREFIX == "io.sutro/"
    assert set(oci.KEYS.values()) == set(values.KINDS)
