# SPDX-License-Identifier: LGPL-2.1-or-later
"""Unit names as people type them."""

import re
import shlex

import pytest
from conftest import sutroctl
from sutro import units
from sutro.errors import SutroError, UsageError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("db", "db.service"),
        ("db.service", "db.service"),
        ("user-1000.slice", "user-1000.slice"),
        ("run-u5.scope", "run-u5.scope"),
        ("getty@tty1", "getty@tty1.service"),
        ("python3.11", "python3.11.service"),
        ("-.slice", "-.slice"),
        ("service", "service.service"),
    ],
)
def test_complete(typed, meant):
    assert units.complete(typed) == meant


@pytest.mark.parametrize("name", ["basic.target", "apt.timer", "dev-sda.device"])
def test_units_without_cgroup(name):
    with pytest.raises(SutroError, match=f"unit '{name}' has no cgroup"):
        units.complete(name)


@pytest.mark.parametrize("name", ["getty@", "getty@.service"])
def test_template(name):
    """No unit has its name: an instance is named, or a policy file for all."""
    with pytest.raises(SutroError) as caught:
        units.subject(name)
    assert caught.value.message == "'getty@.service' is no name of a unit, but that of a template"
    assert "getty@1.service" in caught.value.hint and "Unit=getty@*.service" in caught.value.hint


def test_empty_name():
    with pytest.raises(UsageError):
        units.complete("")


def test_near_puts_the_same_stem_first():
    known = ["userd.service", "user.slice", "user.service", "db.service"]
    assert units.near("user.socket", known) == ["user.service", "user.slice", "userd.service"]


def test_near_finds_slips_of_the_pen():
    assert units.near("postgers.service", ["postgres.service", "ssh.service"]) == [
        "postgres.service"
    ]
    assert units.near("zzz.service", ["postgres.service"]) == []
    assert units.near("bd.service", ["db.service", "dpkg-db-backup.timer"]) == ["db.service"]
    assert units.near("backup.service", ["batch.slice", "basic.target", "backup.timer"]) == []


@pytest.mark.parametrize("name", ["db.service", r"dev-a\x2db.mount"])
def test_names_in_commands(sutrod, name):
    """A command that is copied from a message names the same unit."""
    remedy = units.without_io(name).partition("to change this: ")[2]
    assert shlex.split(remedy)[2] == name
    run = sutroctl("policy", "set", name, "ReadBandwidthMin=/nosuch 5M")
    assert shlex.split(run.err.partition("later: ")[2])[-1] == name


@pytest.mark.parametrize("name", ["db.service", r"dev-a\x2db.mount"])
def test_names_in_commands_of_the_daemon(machine, systemd, sutrod, name):
    if name != "db.service":
        systemd.start(name)
    run = sutroctl("latency", name)
    command = re.search(r'"(sutroctl .*)"', run.err)[1]
    words = ["sutroctl", "policy", "set", "--runtime", name, "LatencyTarget=any 1min"]
    assert shlex.split(command) == words


@pytest.mark.parametrize("typed", ["/a/b", "/a/b/", "//a//b"])
def test_path_of_a_cgroup(typed):
    assert units.subject(typed) == "/a/b"
    assert units.subject("/") == "/"
