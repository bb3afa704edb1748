# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine that the page shows: volumes, units, guarantees, and use that changes with time.

/dev/vg0/db   striped ---- nvme0n1, nvme1n1   (sutro, sutro), mounted at /srv
/dev/vg0/log  linear  ---- nvme1n1
/dev/mapper/home crypt --- md0 raid1 - sda, sdb   (bfq, none), mounted at /home
"""

from math import sin

from fakemachine import UNSET, Machine, Systemd

GIB = 2 * 2**20
MB = 1_000_000
# Bucket 17 of the latencies of reads ends at 6.29 ms.
READ_LATENCY = 17 * "0,"

# cgroup: {device: (part of its time, bytes read, bytes written in a second)}; leaves first.
USE = {
    "/system.slice/postgresql.service": {
        "259:0": (0.46, 31 * MB, 2 * MB),
        "259:1": (0.45, 31 * MB, 2 * MB),
        "254:0": (0, 62 * MB, 4 * MB),
    },
    "/system.slice/nginx.service": {
        "259:0": (0.21, 14 * MB, MB),
        "259:1": (0.19, 14 * MB, MB),
        "254:0": (0, 28 * MB, 2 * MB),
    },
    "/system.slice/backup.service": {
        "259:0": (0.30, 40 * MB, 0),
        "259:1": (0.31, 40 * MB, 3 * MB),
        "254:0": (0, 80 * MB, 0),
        "254:1": (0, 0, 3 * MB),
    },
    "/batch.slice/index.service": {
        "8:0": (0, 24 * MB, 6 * MB),
        "8:16": (0, 0, 6 * MB),
        "254:2": (0, 24 * MB, 6 * MB),
    },
    # Sums of the cgroups below: without sutro, shares are those of the bytes in them.
    "/batch.slice": {"8:0": (0, 24 * MB, 6 * MB), "8:16": (0, 0, 6 * MB)},
    "/user.slice": {"8:0": (0, 3 * MB, MB), "8:16": (0, 0, MB)},
    "/": {"8:0": (0, 27 * MB, 7 * MB), "8:16": (0, 0, 7 * MB)},
    "/user.slice/user-1000.slice": {
        "8:0": (0, 3 * MB, MB),
        "8:16": (0, 0, MB),
        "254:2": (0, 3 * MB, MB),
    },
}
POLICIES = {
    "postgresql": ("ReadBandwidthMin=/srv 60M", "LatencyTarget=/srv 10ms P95", "Importance=200"),
    "nginx": ("ReadBandwidthMin=/srv 80M", "WriteBandwidthMin=/srv 1M"),
    "index": ("WriteIOPSMin=/home 3000", "ReadBandwidthMax=/home 30M"),
    "idle": ("ReadIOPSMin=/dev/vg0/log 100",),
}


def build(machine: Machine) -> None:
    """The devices, mounts and policies."""
    for name, devno, scheduler, gib in (
        ("nvme0n1", "259:0", "sutro", 932),
        ("nvme1n1", "259:1", "sutro", 932),
        ("sda", "8:0", "bfq", 3726),
        ("sdb", "8:16", "none", 3726),
    ):
        machine.disk(name, devno, scheduler, sectors=gib * GIB)
    machine.stripe("dm-0", "254:0", "nvme0n1 nvme1n1", "vg0-db")
    machine.write("/sys/devices/virtual/block/dm-0/size", f"{1600 * GIB}\n")
    machine.stripe("dm-1", "254:1", "nvme1n1", "vg0-log")
    machine.write("/sys/devices/virtual/block/dm-1/size", f"{64 * GIB}\n")
    machine.raid("md0", "9:0", "sda sdb", "raid1", 3726 * GIB)
    machine.mapped("dm-2", "254:2", "md0", "home", "CRYPT-LUKS2-x-home", 3726 * GIB)
    machine.mount("/srv", "254:0", "ext4", "/dev/mapper/vg0-db")
    machine.mount("/home", "254:2", "ext4", "/dev/mapper/home")
    for cgroup in ("/init.scope", "/system.slice"):
        machine.cgroup(cgroup)
    for unit, settings in POLICIES.items():
        lines = ["[Match]", f"Unit={unit}.service", "[X-Sutro]", *settings, ""]
        machine.write(f"/etc/sutro/policy.d/{unit}.policy", "\n".join(lines))


def start_units(systemd: Systemd) -> None:
    """The units, some with weights."""
    for slice_, weight in (("batch.slice", 20), ("user.slice", UNSET)):
        systemd.start(slice_, weight, slice="/")
    systemd.start("user-1000.slice", slice="/user.slice")
    systemd.start("postgresql.service", 300)
    for name in ("nginx", "idle", "cron", "sshd"):
        systemd.start(f"{name}.service")
    systemd.start("backup.service", 50)
    systemd.start("index.service", slice="/batch.slice")


class Load:
    """Counters that grow with loads of different rhythm."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.before_s = 0.0
        self.totals: dict[tuple[str, str], list[float]] = {}

    def serve(self, now_s: float) -> None:
        """Write the counters at a time."""
        passed_s = now_s - self.before_s if self.before_s else 0.0
        self.before_s = now_s
        for number, (cgroup, devices) in enumerate(USE.items()):
            # The first unit uses what it is promised; the others come and go.
            rhythm_s = 20 if "8:0" in devices else 7 + 3 * number
            swing = 1 + (0.02 if number == 0 else 0.35) * sin(now_s / rhythm_s)
            files = {"io.sutro.stat": "", "io.stat": ""}
            for devno, rates in devices.items():
                totals = self.totals.setdefault((cgroup, devno), [0.0, 0.0, 0.0])
                for index, rate in enumerate(rates):
                    totals[index] += rate * swing * passed_s
                busy_s, read, written = totals
                line = f"{devno} rbytes={int(read)} wbytes={int(written)} "
                line += f"rios={int(read / 4096)} wios={int(written / 4096)}"
                if rates[0]:
                    line += f" time_ns={int(busy_s * 1e9)} backlog_ns={int(now_s * 1e9)} idle_ns=0"
                    files["io.sutro.stat"] += (
                        f"{line} queued=8 rlat={READ_LATENCY}{int(now_s * 100)}\n"
                    )
                else:
                    files["io.stat"] += line + "\n"
            for file, text in files.items():
                self.machine.write(f"/sys/fs/cgroup{cgroup}/{file}", text)
