# SPDX-License-Identifier: LGPL-2.1-or-later
"""The layers of layers.py that can do without some of their disks: md, and dm-raid above it."""

import random
from abc import abstractmethod
from pathlib import Path

from layer import Layer, sectors, wait_for
from machine import BLOCK, CONFIGFS, run, write
from stress import dmsetup


class Raid(Layer):
    """Redundant: some of its members, at most `spare` at a time, are not there."""

    spare = 1
    # A member that fails itself fails one request in this many.
    fail = 3

    def __init__(self) -> None:
        super().__init__()
        self.changes = [self.member]
        self.members = [Path(node).name for node in self.nodes]
        self.missing: list[str] = []
        self.ways = [self.errors]

    @abstractmethod
    def sound(self) -> set[str]:
        """The members with all data, by the state of the driver."""

    @abstractmethod
    def whole(self) -> bool:
        """Whether that is all of them, and the driver does nothing about it."""

    @abstractmethod
    def back(self, name: str) -> None:
        """A member that fails, or would, is taken back, and rebuilt some time later."""

    @abstractmethod
    def compare(self) -> int:
        """How many blocks of the members do not belong together."""

    def member(self) -> None:
        """A member fails, if one more may, or comes back."""
        sound = self.sound() - set(self.missing)
        may = len(sound) > len(self.members) - self.spare
        if self.missing and not (may and random.randrange(2)):
            self.back(self.missing.pop(0))
        elif may:
            self.missing.append(random.choice(sorted(sound)))
            way = self.ways.pop(0)
            self.ways.append(way)
            way(self.missing[-1])

    def errors(self, name: str) -> None:
        write(CONFIGFS / name / "fail", self.fail)

    def check(self) -> None:
        while self.missing:
            self.back(self.missing.pop())
        wait_for(self.whole, "the whole array")
        self.mismatches += self.compare()


class Md(Raid):
    top = "/dev/md0"
    words: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.md = BLOCK / "md0/md"
        self.ways = [self.marked_faulty, self.errors, self.pulled]

    def make(self) -> None:
        count = f"--raid-devices={len(self.nodes)}"
        words = ("--run", "--quiet", "--assume-clean", count, *self.words)
        run("mdadm", "--create", self.top, *words, *self.nodes)
        write(self.md / "sync_speed_min", 1000000)

    def sound(self) -> set[str]:
        return {name for name in self.members if "in_sync" in self.state(name)}

    def state(self, name: str) -> str:
        file = self.md / f"dev-{name}/state"
        return file.read_text() if file.exists() else ""

    def whole(self) -> bool:
        now = (self.md / "degraded").read_text(), (self.md / "sync_action").read_text()
        return now == ("0\n", "idle\n")

    def marked_faulty(self, name: str) -> None:
        write(self.md / f"dev-{name}/state", "faulty")

    def pulled(self, name: str) -> None:
        write(CONFIGFS / name / "online", 0)

    def back(self, name: str) -> None:
        if (state := self.state(name)) and "faulty" not in state:
            self.marked_faulty(name)
        wait_for(lambda: not self.state(name) or self.removed(name), f"{name} removed")
        write(CONFIGFS / name / "fail", 0)
        if not (BLOCK / name).exists():
            write(CONFIGFS / name / "online", 1)
            self.use(name)
        run("mdadm", "--quiet", self.top, "--add", f"/dev/{name}")

    def removed(self, name: str) -> bool:
        try:
            (self.md / f"dev-{name}/state").write_text("remove\n")
        except OSError:
            return False
        return True

    def compare(self) -> int:
        write(self.md / "sync_action", "check")
        wait_for(self.whole, "the end of the check")
        return int((self.md / "mismatch_cnt").read_text())

    def remove(self) -> None:
        run("mdadm", "--quiet", "--stop", self.top)


class Raid5(Md):
    disks = (4, 4, 4)
    words = ("--level=raid5", "--chunk=64", "--bitmap=none")


class Raid6(Md):
    disks = (4, 4, 4, 4)
    words = ("--level=raid6", "--chunk=64", "--bitmap=none")
    spare = 2


class Raid1(Md):
    disks = (4, 4)

    words = ("--level=raid1", "--bitmap=internal", "--write-behind=64", "--write-mostly")

    def __init__(self) -> None:
        super().__init__()
        # Options hold for the devices after them; the first is read from.
        self.nodes = ["/dev/d1", "/dev/d0"]


class DmRaid(Raid):
    """Half of the disks are members, the others have their superblocks and bitmaps."""

    table = ""
    # A failed read does not make a member faulty, and dm has no other way to do that.
    fail = 1

    def __init__(self) -> None:
        super().__init__()
        self.changes.append(self.suspend)
        self.members = self.members[: len(self.disks) // 2]

    def make(self) -> None:
        count = len(self.members)
        size = (count - self.spare) * sectors(self.nodes[0])
        pairs = zip(self.nodes[count:], self.nodes[:count], strict=True)
        devices = " ".join(f"{own} {data}" for own, data in pairs)
        dmsetup("create", "top", stdin=f"0 {size} raid {self.table} {count} {devices}\n")

    def status(self) -> tuple[str, str, int]:
        """A letter for each member, the present action, and the number of blocks that differ."""
        words = run("dmsetup", "status", "top").split()
        return words[5], words[7], int(words[8])

    def sound(self) -> set[str]:
        letters, action, _ = self.status()
        if action == "idle":
            # The state is idle, and A, for an almost rebuilt member, too; not when it is suspended.
            dmsetup("suspend", "top")
            letters, _, _ = self.status()
            dmsetup("resume", "top")
        found = zip(self.members, letters, strict=True)
        return {name for name, letter in found if letter == "A"}

    def whole(self) -> bool:
        _, action, _ = self.status()
        return action == "idle" and self.sound() == set(self.members)

    def back(self, name: str) -> None:
        write(CONFIGFS / name / "fail", 0)
        wait_for(lambda: self.resumed(self.members.index(name)), f"{name} taken back")

    def resumed(self, number: int) -> bool:
        """Whether a member is not, or no more, a dead one: a resume tries those again."""
        self.suspend()
        letters, _, _ = self.status()
        return letters[number] != "D"

    def compare(self) -> int:
        dmsetup("message", "top", "0", "check")
        wait_for(self.whole, "the end of the check")
        _, _, differ = self.status()
        return differ


class DmRaid5(DmRaid):
    disks = (4, 4, 4, 1, 1, 1)
    table = "raid5_ls 4 64 nosync min_recovery_rate 1000000"


class DmRaid1(DmRaid):
    disks = (4, 4, 1, 1)
    table = "raid1 4 0 nosync min_recovery_rate 1000000"
