# SPDX-License-Identifier: LGPL-2.1-or-later
"""Slices of users: sessions and user managers of logind, weights by true device time, policies.

Documentation/guides/users.rst has the same settings.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rig import container
from rig.container import DATA, SLOW_S, Volume
from rig.shell import run, wait_for
from rig.unit import CGROUP_ROOT

UIDS = {"anna": 2001, "ben": 2002}
DROP_IN = Path("/etc/systemd/system/user@.service.d/50-io.conf")


def slice_of(user: str) -> str:
    """The cgroup of a user."""
    return f"/user.slice/user-{UIDS[user]}.slice"


class Users:
    """The users, and their programs in a test."""

    def __init__(self, volume: Volume):
        self.volume = volume
        self.sessions: list[subprocess.Popen] = []

    def log_in(self, user: str, seed: int) -> None:
        """A session of a user in which a program reads."""
        job = container.job(f"{DATA}/file", seed)
        self.sessions.append(subprocess.Popen(["su", "--login", user, "--command", job]))
        folder = CGROUP_ROOT / slice_of(user)[1:]
        wait_for(lambda: list(folder.glob("session-*.scope")), f"a session of {user}", SLOW_S)

    def manager(self, user: str, *words: str) -> None:
        """Run systemd-run in the manager of a user."""
        uid = str(UIDS[user])
        runtime = f"XDG_RUNTIME_DIR=/run/user/{uid}"
        drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        run(*drop, "env", runtime, "systemd-run", "--user", "--quiet", *words)

    def clear(self) -> None:
        """Log all users out; nothing of them is left."""
        for user in UIDS:
            run("loginctl", "disable-linger", user)
            run("systemctl", "revert", slice_of(user).rpartition("/")[2])
        run("systemctl", "stop", *(slice_of(user).rpartition("/")[2] for user in UIDS))
        for session in self.sessions:
            session.wait(SLOW_S)
        self.sessions.clear()
        container.forgotten(*(slice_of(user) for user in UIDS))
        # logind starts nothing for a user while it ends the last session.
        wait_for(lambda: not run("loginctl", "list-users", "--no-legend"), "no user", SLOW_S, 1)


@pytest.fixture(scope="module")
def machine() -> Iterator[Users]:
    """A machine with two users, whose managers have the io controller."""
    with ExitStack() as undo:
        made = Users(undo.enter_context(container.volume()))
        for user, uid in UIDS.items():
            run("useradd", f"--uid={uid}", "--create-home", "--shell=/bin/sh", user)
            undo.callback(run, "userdel", "--remove", user)
        os.chmod(DATA / "file", 0o644)
        DROP_IN.parent.mkdir(parents=True)
        DROP_IN.write_text("[Service]\nDelegate=cpu io memory pids\n")
        undo.callback(DROP_IN.parent.rmdir)
        undo.callback(DROP_IN.unlink)
        run("systemctl", "daemon-reload")
        yield made


@pytest.fixture
def users(machine: Users) -> Iterator[Users]:
    """No user is logged in, before and after."""
    yield machine
    machine.clear()


def test_weights_of_users(users: Users) -> None:
    """A weight for one user; the number of sessions of the other does not count."""
    users.log_in("anna", 1)
    users.log_in("ben", 2)
    users.log_in("ben", 3)
    anna, ben = (slice_of(user) for user in UIDS)
    assert users.volume.ratio(anna, ben) == pytest.approx(1, rel=0.05)
    run("systemctl", "set-property", "--runtime", "user-2001.slice", "IOWeight=300")
    container.becomes(anna, 300)
    assert container.explained("user-2001.slice")[:2] == (anna, {300})
    assert users.volume.ratio(anna, ben) == pytest.approx(3, rel=0.05)


def test_units_of_a_user(users: Users) -> None:
    """Weights in the manager of a user divide the share of the slice."""
    run("loginctl", "enable-linger", "anna")
    home = f"{slice_of('anna')}/user@2001.service"
    wait_for(Path("/run/user/2001/systemd/private").exists, "the manager of anna", SLOW_S, 0.5)
    cgroups = {}
    for seed, weight in enumerate((300, 100), start=1):
        job = shlex.split(container.job(f"{DATA}/file", seed))[1:]
        unit = f"job{weight}.service"
        users.manager("anna", f"--unit={unit}", f"--property=IOWeight={weight}", *job)
        cgroups[weight] = f"{home}/app.slice/{unit}"
    for weight, cgroup in cgroups.items():
        container.becomes(cgroup, weight)
    assert users.volume.ratio(cgroups[300], cgroups[100]) == pytest.approx(3, rel=0.05)


def test_policies_of_users(users: Users) -> None:
    """users.policy limits each user, and a floor on /home is for each of them."""
    home = f"[Match]\nUnit=user-*.slice\n[X-Sutro]\nReadBandwidthMin={DATA} 5%\n"
    with container.policies("users.policy", home=home):
        for seed, user in enumerate(UIDS, start=1):
            users.log_in(user, seed)
        for user in UIDS:
            found = container.reached(slice_of(user), "ReadBandwidthMin", "held")
            assert found["ReadBandwidthMin"][0] == 5
            assert found["WriteBandwidthMax"] == (200 * 10**6, "stated")
            assert set(container.limits(slice_of(user)).values()) == {
                "rbps=max wbps=200000000 riops=max wiops=max"
            }
