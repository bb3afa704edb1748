# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each failure is a sentence that names the input, and a remedy."""

import ast
import os
import re

import dbus
import pytest
from conftest import NOWHERE, POLICIES, process, sutroctl
from fakemachine import NAME, TOP
from privatebus import PrivateBus
from sutro import connection, errors

DENIED = "org.freedesktop.DBus.Error.AccessDenied"
NOT_RUNNING = "sutrod is not running\n          start it: systemctl start sutrod"
INTERACTIVE = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"

VERBS = {
    "status": ["status"],
    "tree": ["tree"],
    "tree DEVICE": ["tree", "/dev/hda"],
    "explain": ["explain", "db"],
    "set": ["set", "db", "100"],
    "set --device": ["set", "db", "100", "--device", "/dev/hda"],
    "use": ["use", "/dev/hda"],
    "release": ["release", "/dev/hda"],
    "release --all": ["release", "--all"],
    "dump": ["dump"],
    "top": ["top", "--once"],
    "watch": ["watch"],
    "plot": ["plot", "-o", "/nonexistent/plot.html"],
    "policy show": ["policy", "show"],
    "policy set": ["policy", "set", "db", "Weight=5"],
    "policy set --client": ["policy", "set", "db", "Weight=5", "--client"],
    "policy reset": ["policy", "reset", "db"],
    "policy reload": ["policy", "reload"],
}


def fails(*args, status=1, **environment):
    """Run a command line that must fail; return its message without the name of the program."""
    run = sutroctl(*args, **environment)
    assert (run.status, run.out) == (status, "")
    assert run.err.startswith("sutroctl: ")
    return run.err.removeprefix("sutroctl: ").strip()


@pytest.mark.parametrize("verb", VERBS)
def test_no_daemon(own_bus, verb):
    complaint = fails(*VERBS[verb])
    assert complaint == NOT_RUNNING


def test_no_daemon_and_nothing_is_set(systemd, called):
    """`set` calls the daemon first: a weight that reaches no disk is not set silently."""
    assert fails("set", "db", "77") == NOT_RUNNING
    assert called("SetUnitProperties") == []


@pytest.mark.parametrize("verb", VERBS)
def test_no_bus(verb):
    complaint = fails(*VERBS[verb], **NOWHERE)
    assert "no system bus at unix:path=/nonexistent/bus" in complaint
    assert "systemctl start dbus" in complaint


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "unix:",
        "tcp:host=",
        "unix:path=/etc/passwd",
        "unix:path=/a%00b",
        "unix:path=/" + 200 * "a",
        f"tcp:host={300 * 'a'},port=1",
    ],
)
def test_bad_bus_address(address):
    complaint = fails("status", DBUS_SYSTEM_BUS_ADDRESS=address)
    assert f"no system bus at {address}" in complaint
    assert "correct DBUS_SYSTEM_BUS_ADDRESS" in complaint


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp:host=localhost,port=x", "port 'x' is no number from 1 to 65535"),
        ("tcp:host=localhost,port=99999", "port '99999' is no number from 1 to 65535"),
        ("tcp:host=localhost,port=-1", "port '-1' is no number from 1 to 65535"),
        ("tcp:port=,host=localhost", "port '' is no number from 1 to 65535"),
        ("unix:path=/nonexistent\udcff", "address contains invalid characters"),
        ("", "address string contained no addresses"),
    ],
)
def test_malformed_bus_address(address, reason):
    """No start of the bus would help."""
    complaint = fails("status", DBUS_SYSTEM_BUS_ADDRESS=address)
    first, remedy = complaint.splitlines()
    assert first.startswith(f"there is no system bus at {address or repr('')} ({reason}")
    assert remedy.strip() == "correct DBUS_SYSTEM_BUS_ADDRESS"


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("value", ["²", "9" * 5000, "-1", "x", "", "0"])
def test_size_of_a_terminal_that_is_no_number(name, value):
    run = sutroctl("slurm-gres", "--node", "n1", "read=/a:5M", **NOWHERE, **{name: value})
    assert (run.status, run.err) == (0, "")
    assert run.out.endswith("NodeName=n1 Gres=sutro_read:a:5\n")


def test_program_that_is_none(tmp_path):
    """sutrod in PATH is a file that the kernel cannot run."""
    program = tmp_path / "sutrod"
    program.write_bytes(b"\0")
    program.chmod(0o755)
    complaint = fails("policy", "check", "/etc/passwd", PATH=str(tmp_path))
    assert complaint.startswith(f"{program}: Exec format error\n")


@pytest.mark.parametrize("name", [DENIED, INTERACTIVE])
@pytest.mark.parametrize(
    ("verb", "member", "action"),
    [
        ("use", "UseDevices", "org.sutro1.manage-devices"),
        ("release", "ReleaseDevices", "org.sutro1.manage-devices"),
        ("policy set", "SetPolicy", "org.sutro1.manage-policies"),
        ("policy reload", "ReloadPolicies", "org.sutro1.manage-policies"),
        ("dump", "Dump", "org.sutro1.dump"),
        ("set", "SetUnitProperties", "org.freedesktop.systemd1.manage-units"),
    ],
)
def test_not_permitted(broken, systemd, name, verb, member, action):
    if verb == "set":
        systemd.control.Fail(member, name, "Permission denied")
    else:
        broken.fail(member, name, "Permission denied")
    complaint = fails(*VERBS[verb])
    service = "systemd" if verb == "set" else "sutrod"
    assert complaint.startswith(f"{service} does not permit this: Permission denied")
    assert complaint.endswith(f"run it as root (sudo), or allow the polkit action {action}")


@pytest.mark.parametrize("verb", ["use", "set"])
def test_not_permitted_without_polkit(broken, systemd, bus, verb):
    """The remedy names polkitd, as no rule of it can help."""
    bus.polkit.terminate()
    bus.polkit.process.wait()
    denied = "org.freedesktop.DBus.Error.AccessDenied"
    if verb == "set":
        systemd.control.Fail("SetUnitProperties", denied, "Permission denied")
    else:
        broken.fail("UseDevices", denied, "Permission denied")
    complaint = fails(*VERBS[verb])
    service = "systemd" if verb == "set" else "sutrod"
    assert complaint == (
        f"{service} does not permit this: Permission denied\n"
        "          run it as root (sudo); for other users, polkitd is missing: "
        "apt install polkitd, or systemctl start polkit"
    )


@pytest.mark.parametrize(
    ("uid", "member", "limit_s"),
    [
        (1000, "SetPolicy", 300),
        (1000, "UseDevices", 300),
        (1000, "SetUnitProperties", 300),
        (1000, "ListPromises", 25),
        (0, "SetPolicy", 25),
    ],
)
def test_time_for_a_password(monkeypatch, uid, member, limit_s):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert connection.answer_timeout_s(member) == limit_s


def test_level_of_the_log_is_set_by_root_alone(monkeypatch):
    """The policy of the bus refuses it, and no action of polkit permits it."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "")
    conf = (TOP / "dist/org.sutro1.conf").read_text()
    (deny,) = re.findall(r'<deny [^>]*send_member="Set"/>', conf)
    own = PrivateBus(f'<policy context="default">{deny}</policy>')
    try:
        daemon = dbus.bus.BusConnection(own.address)
        daemon.request_name(NAME)
        complaint = fails("log-level", "err")
        assert complaint.startswith("sutrod does not permit this: ")
        assert complaint.endswith("\n          run it as root (sudo)")
    finally:
        own.stop()


@pytest.mark.parametrize(
    ("verb", "member"),
    [
        ("top", "ListUsage"),
        ("watch", "ListPromises"),
        ("plot", "ListPromises"),
        ("policy show", "GetPolicy"),
        ("policy set", "SetPolicy"),
        ("policy set --client", "SetPolicy"),
        ("policy reload", "ReloadPolicies"),
    ],
)
def test_daemon_that_is_too_old(broken, verb, member):
    broken.fail(member, "org.freedesktop.DBus.Error.UnknownMethod", "Unknown method")
    complaint = fails(*VERBS[verb])
    assert complaint.startswith(f"the running sutrod has no {member}: it is older than")
    assert "systemctl restart sutrod" in complaint


@pytest.mark.parametrize("verb", ["status", "explain"])
def test_verbs_that_work_with_an_older_daemon(broken, verb):
    broken.fail("ListPromises", "org.freedesktop.DBus.Error.UnknownMethod", "Unknown method")
    assert sutroctl(*VERBS[verb]).status == 0
    assert sutroctl("--json", *VERBS[verb]).json()["promises"] is None


@pytest.mark.parametrize("verb", ["status", "explain"])
def test_verbs_that_work_with_a_daemon_without_resyncs(broken, verb):
    broken.fail("ListResyncs", "org.freedesktop.DBus.Error.UnknownMethod", "Unknown method")
    assert sutroctl("--json", *VERBS[verb]).json()["resyncs"] == []


@pytest.mark.parametrize(
    ("args", "named", "hint"),
    [
        (["explain", "bd"], "'bd.service'", "did you mean db.service?"),
        (["set", "wbe", "5"], "'wbe.service'", "did you mean web.service?"),
        (["set", "user-1000", "5"], "'user-1000.service'", "did you mean user-1000.slice"),
        (["explain", "gone"], "'gone.service'", ""),
        (["set", "gone", "5"], "'gone.service'", ""),
        (["explain", "qqqqqq.scope"], "'qqqqqq.scope'", "systemctl list-units"),
        (["policy", "show", "wbe"], "'wbe.service'", "did you mean web.service?"),
        (["policy", "reset", "bd"], "'bd.service'", "did you mean db.service?"),
    ],
)
def test_unknown_unit(sutrod, called, args, named, hint):
    complaint = fails(*args)
    assert complaint.startswith(f"there is no unit {named}") and hint in complaint
    assert called("SetUnitProperties") == []


@pytest.mark.parametrize(
    ("args", "start", "words"),
    [
        (["set", "a b", "5"], "", ["Unit name a b.service is not valid"]),
        (
            ["explain", "backup"],
            "unit 'backup.service' is not active, so it has no cgroup",
            ["systemctl start backup.service"],
        ),
        (["explain", "/system.slice/nothing"], "there is no cgroup '/system.slice/nothing'", []),
        (["explain", "basic.target"], "unit 'basic.target' has no cgroup", ["service, scope, sl"]),
        (["set", "basic.target", "5"], "unit 'basic.target' has no cgroup", ["service, scope, sl"]),
    ],
)
def test_unit_that_does_not_fit(sutrod, args, start, words):
    complaint = fails(*args)
    assert complaint.startswith(start) and all(word in complaint for word in words)


def test_set_of_a_cgroup(sutrod):
    """It is no unit; a policy can have its weight."""
    run = sutroctl("set", "/payload", "30")
    assert (run.status, run.out) == (1, "")
    assert run.err == (
        "sutroctl: '/payload' is the path of a cgroup, and systemd sets weights of units only\n"
        "          set its weight in a policy: sutroctl policy set /payload Weight=N\n"
    )


def with_path(verb, path):
    return {
        "tree": ["tree", path],
        "explain": ["explain", "db", path],
        "set": ["set", "db", "100", "--device", path],
        "use": ["use", path],
        "release": ["release", path],
    }[verb]


PATH_VERBS = ["tree", "explain", "set", "use", "release"]


@pytest.mark.parametrize("verb", PATH_VERBS)
@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/dev/vg9/lost", 1, ["/dev/vg9/lost"]),
        ("hdx", 1, ["there is no device and no file named 'hdx'", "did you mean", "hda"]),
        ("/proc", 1, ["/proc is not on a block device with a request queue"]),
        ("", 2, ["the path is empty"]),
    ],
)
def test_bad_path(sutrod, called, verb, path, status, words):
    complaint = fails(*with_path(verb, path), status=status)
    assert all(word in complaint for word in words)
    assert called("SetUnitProperties") == []


def test_path_with_space(sutrod, called):
    complaint = fails(*with_path("set", "/srv/a b"), status=2)
    assert "'/srv/a b'" in complaint
    assert called("SetUnitProperties") == []


def test_device_weight_that_is_not_there(sutrod):
    complaint = fails("set", "db", "default", "--device", "/dev/vg0/log")
    assert complaint.startswith("unit 'db.service' has no IODeviceWeight= for /dev/vg0/log")
    assert "/dev/vg0/db" in complaint
    assert fails("set", "web", "default", "--device", "/dev/vg0/log").endswith("for: none")


def test_release_needs_devices_or_all():
    wanted = "release needs either the devices to release, or --all"
    wanted += "\n          sutroctl tree shows the devices"
    assert fails("release", status=2) == wanted
    assert fails("release", "hda", "--all", status=2) == wanted


@pytest.mark.parametrize(
    ("member", "name", "text", "args", "complaint"),
    [
        (
            "ListDevices",
            "org.freedesktop.systemd1.UnitMasked",
            "Unit is masked.",
            ["tree"],
            "sutrod could not be started: Unit is masked.\n          see: systemctl status sutrod",
        ),
        ("Explain", "org.freedesktop.DBus.Error.NoReply", "gone", ["explain", "db"], NOT_RUNNING),
        (
            "UseDevices",
            "org.sutro1.Error.NotSupported",
            "/dev/hda has no scheduler",
            ["use", "hda"],
            "sutrod answered: /dev/hda has no scheduler",
        ),
        (
            "Dump",
            "org.freedesktop.DBus.Error.Failed",
            "No space left",
            ["dump"],
            "sutrod answered: No space left\n          see: journalctl -u sutrod -n 20",
        ),
    ],
)
def test_error_of_the_daemon(broken, member, name, text, args, complaint):
    broken.fail(member, name, text)
    assert fails(*args).startswith(complaint)


def test_unit_that_ends_while_the_tree_is_requested(broken):
    broken.fail("Explain", "org.sutro1.Error.NoSuchUnit", "gone")
    run = sutroctl("tree")
    assert (run.status, run.err) == (0, "") and "/dev/hda" in run.out


def test_unit_that_ends_after_the_weight_was_set(broken, called):
    broken.fail("Explain", "org.sutro1.Error.NoSuchUnit", "gone")
    run = sutroctl("set", "web", "200")
    assert (run.status, run.err) == (0, "") and "IOWeight=200" in run.out
    assert len(called("SetUnitProperties")) == 1


@pytest.mark.parametrize("text", ["Weight", "=5", " =5", ""])
@pytest.mark.parametrize("how_long", [[], ["--client"]])
def test_what_is_no_assignment(text, how_long):
    complaint = fails("policy", "set", "db", "Weight=5", text, *how_long, status=2)
    assert complaint.startswith(f"'{text}' is no assignment: allowed is KEY=VALUE")


def test_policy_that_the_daemon_does_not_take(sutrod):
    complaint = fails("policy", "set", "db", "Weight=5", "ReadBandwithMin=/srv 5M")
    assert complaint.startswith('db.service: "ReadBandwithMin": one of ReadBandwidthMin')
    data = sutroctl("policy", "show", "db", "--json").json()
    assert data["units"][0]["policy"] == [], "nothing of it was taken"


def test_reset_of_what_is_not_set(sutrod):
    assert sutroctl("policy", "set", "db", "Weight=5").status == 0
    complaint = fails("policy", "reset", "db", "Weight", "Class")
    assert complaint.startswith(
        "Class of db.service is not set in /etc/sutro/policy.control/: there"
    )
    assert "there is Weight" in complaint and "sutroctl policy show db.service" in complaint


@pytest.mark.parametrize(
    "args",
    [[], ["fly"], ["set", "db"], ["explain"], ["use"], ["--jsn"], ["watch", "db"], ["policy"]]
    + [["policy", "fly"], ["policy", "check"], ["policy", "set", "db"]]
    + [["policy", "set", "db", "Weight=5", "--runtime", "--client"]],
)
def test_usage(args):
    run = sutroctl(*args)
    assert (run.status, run.out) == (2, "")
    assert "usage: sutroctl" in run.err


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["top", "--record"], "file"),
        (["top", "--from"], "file"),
        (["plot", "-o"], "file"),
        (["plot", "--from"], "file"),
        (["metrics", "-o"], "file"),
        (["test", "/dev/hda", "--yes", "--write"], "file"),
        (["measure", "/dev/hda", "--yes", "--write"], "file"),
        (["test", "--plot"], "file"),
        (["test", "--from"], "file"),
        (["slurm-gres", "--node"], "node"),
        (["log-level"], "level"),
        (["policy", "check"], "file"),
        (["policy", "check", "--fits"], "file"),
        (["policy", "reset", "db"], "key"),
    ],
)
def test_empty_argument(args, what):
    """As of a variable that is not set: it is not the same as no argument."""
    run = sutroctl(*args, "", **NOWHERE)
    assert (run.status, run.out) == (2, "")
    assert f": the name of the {what} is empty\n" in run.err


@pytest.mark.parametrize("name", ["-.slice", "-.mount"])
def test_root_unit(sutrod, name):
    """Its name looks like an option; the hint names the remedy."""
    run = sutroctl("explain", name)
    assert (run.status, run.out) == (2, "")
    assert f"'{name}' begins with '-': write -- before it" in run.err
    assert "write --" not in sutroctl("explain", "--", name).err


def test_reset_of_a_key_that_is_none(sutrod):
    complaint = fails("policy", "reset", "db", "Foo", "Weight")
    assert complaint.startswith("'Foo' is no key of a policy")


@pytest.mark.parametrize("verb", ["explain", "tree", "policy edit", "use /dev/hda", "plot -o"])
def test_argument_that_is_not_utf8(sutrod, verb):
    """The bus carries none, and the text of an answer has none: it is refused before any call."""
    run = process("sutroctl", *verb.split(), "/srv/\udce9")
    assert (run.status, run.out) == (2, "")
    assert run.err.endswith("sutroctl: error: the argument '/srv/\\udce9' is not UTF-8\n")


@pytest.mark.parametrize("words", ["tree ./x", "explain db ./x", "use ./x", "tree {link}"])
def test_path_that_is_not_utf8(sutrod, tmp_path, monkeypatch, words):
    """A relative path, or the target of a link: the error names it, and not the bus."""
    folder = os.fsencode(tmp_path.resolve()) + b"/disk\xe9"
    os.mkdir(folder)
    link = tmp_path / "link"
    link.symlink_to(os.fsdecode(folder))
    monkeypatch.chdir(os.fsdecode(folder))
    complaint = fails(*words.format(link=link).split())
    path = f"{tmp_path.resolve()}/disk\\udce9" + "/x" * ("link" not in words)
    assert complaint == (
        f"'{path}' is not UTF-8, and the bus carries no other text\n"
        "          rename it, or name another path to the same device"
    )


def test_metrics_as_json_in_a_file(tmp_path):
    file = tmp_path / "sutro.prom"
    complaint = fails("metrics", "--json", "-o", str(file), status=2)
    assert complaint == "--json and --output exclude each other\n          omit one of them"
    assert not file.exists()


def test_version():
    run = sutroctl("--version")
    assert (run.status, run.out, run.err) == (0, "sutroctl 0.1.0\n", "")


@pytest.mark.parametrize("words", ["status", "use", "measure", "policy set", "policy", "log-level"])
def test_version_after_a_verb(words):
    run = sutroctl(*words.split(), "--version")
    assert (run.status, run.out, run.err) == (0, "sutroctl 0.1.0\n", "")


@pytest.mark.parametrize("verb", [["tree"], ["explain", "db"], ["use"], ["release"]])
@pytest.mark.parametrize("path", ["/dev/lost", "/proc"])
def test_path_without_a_disk_has_a_remedy(sutrod, verb, path):
    complaint = fails(*verb, path)
    assert complaint.startswith(path) and complaint.endswith("see: sutroctl tree")


# The no of the user, and the one place that adds file and line.
WITHOUT_REMEDY = ("nothing was measured", "nothing was tested", "{what}")
REMEDY = "allowed|must be|expected"
SOURCES = [*POLICIES.glob("sutro/*.py"), *TOP.glob("tests/hardware/*.py")]


def failures(file):
    """Each failure that a source makes: its line, message and hint (None without one)."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        words = [ast.unparse(word) for word in node.args]
        if name in CLASSES and words:
            yield node.lineno, words[0], words[1] if len(words) > 1 else None


CLASSES = {c.__name__ for c in vars(errors).values() if isinstance(c, type)} - {"Path"}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_failures_in_the_source_have_a_remedy(file):
    """A hint, or a message with the allowed values."""
    for line, message, hint in failures(file):
        if hint is None and not any(text in message for text in WITHOUT_REMEDY):
            assert re.search(REMEDY, message), f"{file.name}:{line}: {message}"


def test_failures_are_found_in_the_source():
    assert sum(len(list(failures(file))) for file in SOURCES) > 100
