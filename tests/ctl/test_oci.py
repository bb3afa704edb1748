# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-oci: policies of containers by annotations, from their creation to their end."""

import asyncio
import io
import json
import subprocess
import sys
import threading

import pytest
from conftest import NOWHERE, POLICIES, environment, process
from fakemachine import wait_until
from hypothesis import given
from hypothesis import strategies as st
from sutro import oci, values
from sutro.errors import BusUnavailable, NotRunning, SutroError
from test_recording import ANY

ID = "4f5e"
SCOPE = f"libpod-{ID}.scope"
CGROUP = f"machine.slice:libpod:{ID}"
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/var/lib/db", "type": "bind", "source": "/srv/volumes/data/_data"},
    {"destination": "/logs", "type": "bind", "source": "/srv/db"},
    {"destination": "/state", "type": "bind", "source": "/proc/state"},
]


@pytest.fixture(autouse=True)
def records(monkeypatch, tmp_path):
    """The folder of records."""
    monkeypatch.setattr(oci, "RECORDS", tmp_path / "records")
    return tmp_path / "records"


@pytest.fixture
def init_of():
    """Starts the first process of a container, and ends it with the test."""
    started = []

    def start():
        started.append(subprocess.Popen(["sleep", "infinity"]))
        return started[-1]

    yield start
    for one in started:
        end(one)


@pytest.fixture
def init(init_of):
    """The first process of the container."""
    return init_of()


@pytest.fixture
def container(machine, tmp_path, init):
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
        return {"id": ID, "status": "created", "pid": init.pid, "bundle": str(tmp_path)}

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


def watch(records, *, until=lambda: True):
    """Run the service from now to its end, which has to come after until()."""

    async def run():
        program = oci.Watch(records)
        service = asyncio.ensure_future(program.run())
        await asyncio.to_thread(wait_until, until)
        await service

    asyncio.run(run())
    assert list(records.iterdir()) == []


def end(init):
    """End a container as a power cut ends it: its runtime runs no hook."""
    init.kill()
    init.wait()


def test_container_that_ends_without_its_hook(
    sutrod, container, hook, records, init, init_of, monkeypatch
):
    """The service resets the policy, but not that of another container, which runs."""
    monkeypatch.setattr(oci, "LOOK_S", 0.1)
    state = container({"read-min.data": "60M"})
    assert hook(state) == (0, "")
    other, place = init_of(), f"/libpod_parent/libpod-{2 * ID}"
    runs = container({"weight": "300"}, place) | {"id": 2 * ID, "pid": other.pid}
    assert hook(runs) == (0, "")
    assert sorted(file.name for file in records.iterdir()) == [ID, 2 * ID]
    end(init)

    def is_reset():
        if in_force(sutrod):
            return False
        assert in_force(sutrod, place) == ["Weight=300"]
        end(other)
        return True

    watch(records, until=is_reset)
    assert in_force(sutrod, place) == []


def test_container_that_ends_while_sutrod_is_away(sutrod, container, hook, records, init):
    """The hook fails, the service waits for sutrod."""
    state = container({"read-min.data": "60M"})
    assert hook(state) == (0, "")
    sutrod.stop()
    end(init)
    status, printed = hook(state | {"status": "stopped", "pid": 0})
    assert (status, "sutrod" in printed) == (0, True)
    assert [file.name for file in records.iterdir()] == [ID]

    def start():
        sutrod.start()
        assert in_force(sutrod) == ["ReadBandwidthMin=/srv/volumes/data/_data 60M"]
        return True

    watch(records, until=start)
    assert in_force(sutrod) == []


def test_number_of_the_process_is_taken_again(sutrod, container, hook, records, init):
    """Another process with the number of the first one of the container is not the container."""
    assert hook(container({"read-min.data": "60M"})) == (0, "")
    (record,) = records.iterdir()
    unit, process = record.read_text().splitlines()
    number, start = process.split()
    assert (unit, number) == (SCOPE, str(init.pid))
    record.write_text(f"{unit}\n{number} {int(start) - 1}\n")
    watch(records)
    assert in_force(sutrod) == []


def test_container_that_starts_again(sutrod, container, hook, records, init, init_of, monkeypatch):
    """Its hook waits while the service resets the policy of its last run."""
    state = container({"read-min.data": "60M"})
    assert hook(state) == (0, "")
    end(init)
    reset, again = oci.Client.reset_policy, init_of()
    start = threading.Thread(target=lambda: asyncio.run(oci.apply(state | {"pid": again.pid})))

    async def while_the_hook_runs(client, who, lifetime):
        start.start()
        await asyncio.to_thread(start.join, 0.5)
        assert start.is_alive()
        await reset(client, who, lifetime)

    monkeypatch.setattr(oci.Client, "reset_policy", while_the_hook_runs)

    async def step():
        program = oci.Watch(records)
        async with oci.Client() as program.client:
            await program.step()

    asyncio.run(step())
    start.join()
    assert in_force(sutrod) == ["ReadBandwidthMin=/srv/volumes/data/_data 60M"]
    assert (records / ID).read_text().split()[:2] == [SCOPE, str(again.pid)]


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff\n", b"/a*\n1 1\n", b"libpod-1.scope", b"/a\0\n", b"x\n" + 5000 * b"1" + b" 1\n"],
)
def test_record_that_is_not_whole(sutrod, container, hook, records, init, text):
    """The service removes it, and goes on with the others."""
    assert hook(container({"read-min.data": "60M"})) == (0, "")
    end(init)
    (records / "0").write_bytes(text)
    watch(records)
    assert in_force(sutrod) == []


def test_identifier_that_is_a_path(sutrod, container, hook, records):
    """No record is made outside of the folder."""
    state = container({"read-min.data": "60M"}) | {"id": "../4f5e"}
    with pytest.raises(SutroError, match="'../4f5e' is no ID of a container"):
        asyncio.run(oci.apply(state))
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
        ({"read-min.data": "60M\n5"}, ["read-min.data: '60M\\n5' is no value"]),
        ({"class": "idle\n"}, ["annotation io.sutro/class: 'idle\\n' is no class"]),
        ({"read-min.da\nta": "6M"}, ["no named volume 'da\\nta'", "add --volume da\\nta:PATH"]),
        ({"we\night": "6"}, ["annotation io.sutro/we\\night is unknown"]),
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


GOOD = {"id": ID, "status": "created", "pid": 1, "bundle": "/"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "this is not JSON"),
        ("{}", "'id' is missing or not a string"),
        ("[]", "this is not a JSON object"),
        ('{"status": "created", "bundle": 3}', "'id' is missing"),
        ('{"status": "created", "bundle": "/"}', "'id' is missing"),
        (json.dumps(GOOD | {"bundle": "/a\0b"}), "'bundle' is missing or not a string of UTF-8"),
        (json.dumps(GOOD | {"bundle": "/\ud800"}), "'bundle' is missing or not a string of UTF-8"),
        (json.dumps(GOOD | {"id": "\0"}), "'id' is missing or not a string"),
        (json.dumps(GOOD | {"status": 3}), "'status' is missing or not a string"),
        (json.dumps(GOOD | {"pid": "1"}), "'pid' is missing or not the number of a process"),
        (json.dumps(GOOD | {"pid": 2**31}), "'pid' is missing or not the number of a process"),
        ("[" * 100000, "this is not JSON, or nests too deep"),
    ],
)
def test_input_that_is_no_state(text, expected):
    run = process("sutro-oci", stdin=text)
    assert run.status == 2
    first, remedy = run.err.splitlines()
    assert first.startswith("sutro-oci: standard input is no state of an OCI runtime: " + expected)
    assert remedy == "           Podman runs it, see sutro-oci(8)"


@pytest.mark.parametrize("stream", ["<&-", "<<<$'\\xff'"])
def test_input_that_is_no_text(stream):
    """A closed stream, and bytes that are not UTF-8."""
    command = f'"$0" "$1" {stream}'
    program = [sys.executable, POLICIES / "sutro-oci"]
    run = subprocess.run(
        ["bash", "-c", command, *program], env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert run.returncode == 2
    first, _ = run.stderr.splitlines()
    assert first.startswith("sutro-oci: standard input is no state of an OCI runtime: ")


LINUX = {"linux": {"cgroupsPath": CGROUP}}
STRING = "is missing or not a string of UTF-8 without NUL"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "this is not JSON: "),
        ("{" * 100000, "this is not JSON: "),
        ("[" * 100000, "this is not JSON, or nests too deep"),
        ("[]", "this is not a JSON object"),
        ('"x"', "this is not a JSON object"),
        (b"{\xff}", "this is not UTF-8"),
        (LINUX | {"annotations": [3]}, "'annotations' is missing or not a JSON object"),
        (LINUX | {"annotations": {"a.b/c": 3}}, f"'annotations.a.b/c' {STRING}"),
        (
            LINUX | {"annotations": {"io.sutro/\0": "1"}},
            "'annotations' is missing or not an object",
        ),
        (LINUX | {"annotations": {"io.sutro/weight": "\ud800"}}, "'annotations.io.sutro/weight' "),
        (LINUX | {"mounts": {}}, "'mounts' is missing or not a list"),
        (LINUX | {"mounts": [*MOUNTS, "/srv"]}, "'mounts[4]' is missing or not a JSON object"),
        (LINUX | {"mounts": [{"source": 3}]}, f"'mounts[0].source' {STRING}"),
        (LINUX | {"mounts": [{"source": "/\0/_data"}]}, f"'mounts[0].source' {STRING}"),
        (LINUX | {"mounts": [{"destination": []}]}, f"'mounts[0].destination' {STRING}"),
        ({"linux": "x"}, "'linux' is missing or not a JSON object"),
        ({"linux": {"cgroupsPath": 3}}, f"'linux.cgroupsPath' {STRING}"),
        ({"linux": {"cgroupsPath": "/a\0"}}, f"'linux.cgroupsPath' {STRING}"),
    ],
)
def test_configuration_with_a_mistake(container, hook, tmp_path, text, expected):
    """The error names the file and the field; a container that has stopped is gone."""
    state, file = container({"weight": "300"}), tmp_path / "config.json"
    text = json.dumps(text) if isinstance(text, dict) else text
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    for status, expected_status in ("created", 1), ("stopped", 0):
        status, printed = hook(state | {"status": status})
        assert status == expected_status
        first, remedy = printed.splitlines()
        assert first.startswith(f"sutro-oci: {file}: {expected}"), printed
        assert "make the container anew" in remedy


@given(st.sampled_from(["annotations", "mounts", "linux", "io.sutro/weight", *MOUNTS[1]]), ANY)
def test_any_value_in_the_configuration(tmp_path_factory, name, value):
    """It is accepted, or refused with the name of the file, the annotation or the field."""
    folder = tmp_path_factory.mktemp("any")
    mount, annotations = dict(MOUNTS[1]), {"io.sutro/weight": "300"}
    found = LINUX | {"annotations": annotations, "mounts": [mount]}
    place = next((one for one in (annotations, mount) if name in one), found)
    place[name] = value
    (folder / "config.json").write_text(json.dumps(found))
    try:
        asyncio.run(oci.apply(GOOD | {"bundle": str(folder), "status": "created"}))
    except (BusUnavailable, NotRunning):
        pass  # it is accepted: for root, the policy is next
    except SutroError as error:
        known = (str(folder), "annotation io.sutro/weight", "cgroupsPath", "without root")
        assert any(part in error.message for part in known), error.message


def test_state_without_a_process(sutrod, container, hook):
    """A policy without a process of its container would be reset at once."""
    status, printed = hook(container({"weight": "300"}) | {"pid": None})
    assert status == 1 and "the state of the container has no 'pid'" in printed
    assert in_force(sutrod) == []


@pytest.mark.parametrize("name", ["annotations", "mounts"])
def test_fields_that_are_null(sutrod, container, hook, tmp_path, name):
    """As the encoder of Go writes empty ones."""
    state, file = container({"weight": "300"}), tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: None}))
    assert hook(state) == (0, "")
    assert in_force(sutrod) == ([] if name == "annotations" else ["Weight=300"])


def test_hook_file():
    """Podman reads it; its pattern matches the prefix of the annotations, at the two stages."""
    found = json.loads((POLICIES / "sutro-oci.json").read_text())
    assert found["stages"] == ["createRuntime", "poststop"]
    assert list(found["when"]["annotations"]) == [r"^io\.sutro/"]
    assert oci.PREFIX == "io.sutro/"
    assert set(oci.KEYS.values()) == set(values.KINDS)
