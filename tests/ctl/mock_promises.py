# SPDX-License-Identifier: LGPL-2.1-or-later
"""The promises and policies of the mocked sutrod.

Without Promise() nothing is promised. Promises of clients are kept per bus connection and
dropped when that ends, as the real daemon does.
"""

import dbus

CONTROL = {
    "persistent": "/etc/sutro/policy.control",
    "runtime": "/run/sutro/policy.control",
}
KEYS = (
    "ReadBandwidthMin WriteBandwidthMin ReadIOPSMin WriteIOPSMin ReadBandwidthMax "
    "WriteBandwidthMax ReadIOPSMax WriteIOPSMax LatencyTarget Weight Class Importance"
).split()
SYSTEM = "/system.slice/"

# unit, key, path, device, value, got, granted, importance, state, cause,
# {leaf: (needed, allotted, got, weight, ns, scheduler)}
PROMISES = [
    ("db.service", "ReadBandwidthMin", "/dev/vg0/db", "/dev/dm-0", 60_000_000, 63_100_000)
    + (1.0, 200, "held", "")
    + (
        {
            "/dev/hda": (0.38, 0.41, 0.412, 1450, 12.6, "sutro"),
            "/dev/hdb": (0.37, 0.4, 0.398, 1380, 12.4, "sutro"),
        },
    ),
    ("db.service", "WriteBandwidthMin", "/dev/vg0/db", "/dev/dm-0", 10_000_000, 0)
    + (1.0, 200, "idle", "", {}),
    ("db.service", "LatencyTarget", "/srv", "/dev/dm-0", 10_000, 6_200)
    + (1.0, 200, "held", "", {}),
    ("web.service", "ReadBandwidthMin", "/srv", "/dev/dm-0", 80_000_000, 41_700_000)
    + (0.52, 100, "infeasible")
    + ("the floors on /dev/hda add up to 137 % of what it does, and db.service comes first",)
    + (
        {
            "/dev/hda": (0.99, 0.52, 0.517, 2100, 24.8, "sutro"),
            "/dev/hdb": (0.98, 0.52, 0.522, 2050, 24.5, "sutro"),
        },
    ),
    ("job.service", "WriteIOPSMin", "/dev/mapper/secret", "/dev/dm-2", 500, 120)
    + (1.0, 100, "unweighted", "/dev/sdb has the scheduler none, which knows no weights")
    + (
        {
            "/dev/sda": (0.2, 0.22, 0.05, 100, 400_000.0, "bfq"),
            "/dev/sdb": (0.2, 0.0, 0.05, 100, 400_000.0, "none"),
        },
    ),
    ("job.service", "ReadBandwidthMax", "/dev/mapper/secret", "/dev/dm-2", 30_000_000, 0)
    + (1.0, 100, "stated", "", {}),
    ("idle.service", "ReadBandwidthMin", "/mnt/backup", "", 5_000_000, 0)
    + (1.0, 100, "unresolved", "there is nothing at /mnt/backup yet", {}),
    ("web.service", "WriteBandwidthMin", "/srv", "/dev/dm-0", 1_500_000, 900_000)
    + (1.0, 100, "settling", "", {}),
]

# The daemon samples nothing for a promise in one of these states.
NOT_KEPT = ("stated", "unresolved")

# unit, cgroup, device, read and written bytes/s, {leaf: (share got, hweight, weight, backlog)}
USAGE = [
    ("db.service", SYSTEM + "db.service", "/dev/dm-0", 63_100_000, 1_200_000)
    + ({"/dev/hda": (0.412, 0.41, 1450, 0.9), "/dev/hdb": (0.398, 0.4, 1380, 0.9)},),
    ("web.service", SYSTEM + "web.service", "/dev/dm-0", 41_700_000, 900_000)
    + ({"/dev/hda": (0.517, 0.52, 2100, 1.0), "/dev/hdb": (0.522, 0.52, 2050, 1.0)},),
    ("job.service", "/batch.slice/job.service", "/dev/dm-2", 29_500_000, 0)
    + ({"/dev/sda": (0.05, 0.1, 100, 0.2), "/dev/sdb": (0.05, 0.1, 100, 0.2)},),
    ("", "/payload", "/dev/hdb", 0, 300) + ({"/dev/hdb": (0.0001, 0.01, 100, 0.0)},),
]

SHIPPED = {
    "db.service": [
        ("ReadBandwidthMin", "/dev/vg0/db 60M", "/etc/sutro/policy.d/db.policy:5", True),
        ("WriteBandwidthMin", "/dev/vg0/db 10M", "/etc/sutro/policy.d/db.policy:6", True),
        ("Importance", "200", "/etc/systemd/system/db.service.d/sutro.conf:3", True),
        ("Importance", "50", "/usr/lib/sutro/policy.d/50-services.policy:9", False),
    ],
    "web.service": [
        ("ReadBandwidthMin", "/srv 80M", "/etc/sutro/policy.d/web.policy:4", True),
    ],
}


def load(mock):
    mock.promised = False
    mock.p99_us = 0
    mock.mistakes = []
    mock.control = {}  # (folder, unit): [(key, value)]
    mock.held = {}  # (sender, unit): [(key, value)]
    if not hasattr(mock, "watching"):
        mock.watching = dbus.SystemBus().add_signal_receiver(
            lambda name, _old, new: new or _drop(mock, name),
            "NameOwnerChanged",
            "org.freedesktop.DBus",
        )


def _drop(mock, sender):
    mock.held = {place: said for place, said in mock.held.items() if place[0] != sender}


def held(mock, unit):
    return [
        f"{key}={value}"
        for (_, name), said in mock.held.items()
        if name == unit
        for key, value in said
    ]


def _promise(unit, key, path, device, value, got, granted, importance, state, cause, leaves):
    return {
        "unit": unit,
        "cgroup": ("/batch.slice/" if unit == "job.service" else SYSTEM) + unit,
        "key": key,
        "path": path,
        "device": device,
        "value": dbus.UInt64(value),
        "importance": dbus.UInt64(importance),
        "source": f"/etc/sutro/policy.d/{unit.split('.')[0]}.policy:5",
        "state": state,
        "cause": cause,
        "got": dbus.UInt64(got),
        "granted": granted,
        "gain": 1.0,
        "amplification": 1.25 if "Write" in key and leaves else 1.0 if leaves else 0.0,
        "leaves": dbus.Array([_need(leaf, *of) for leaf, of in leaves.items()], signature="a{sv}"),
    }


def _need(leaf, needed, allotted, got, weight, cost_ns, scheduler):
    return {
        "leaf": leaf,
        "share_needed": needed,
        "share_allotted": allotted,
        "share_got": got,
        "weight": dbus.UInt64(weight),
        "cost_ns": cost_ns,
        "backlog": 0.75,
        "scheduler": scheduler,
    }


def promises(mock):
    found = [_promise(*promise) for promise in PROMISES] if mock.promised else []
    return dbus.Array(found, signature="a{sv}")


def usage(mock):
    def entry(unit, cgroup, device, read, written, leaves):
        p99_us = dbus.UInt64(mock.p99_us)
        return {
            "unit": unit,
            "cgroup": cgroup,
            "device": device,
            "rbytes_per_s": dbus.UInt64(read),
            "wbytes_per_s": dbus.UInt64(written),
            "rios_per_s": dbus.UInt64(read // 65536),
            "wios_per_s": dbus.UInt64(written // 65536),
            "read_p99_us": p99_us,
            "leaves": dbus.Array(
                [
                    {
                        "leaf": leaf,
                        "share_got": got,
                        "hweight": hweight,
                        "weight": dbus.UInt64(weight),
                        "backlog": backlog,
                        "read_p99_us": p99_us,
                    }
                    for leaf, (got, hweight, weight, backlog) in leaves.items()
                ],
                signature="a{sv}",
            ),
        }

    found = [entry(*used) for used in USAGE] if mock.promised else []
    return dbus.Array(found, signature="a{sv}")


def history(unit, key, path):
    """Thirty seconds of what was got: half at first, all from the fifth second on.

    KeyError for what is not being kept.
    """
    kept = {promise[:3]: promise for promise in PROMISES if promise[8] not in NOT_KEPT}
    _, _, _, _, value, _, granted, *_ = kept[unit, key, path]
    rows = [
        (second, value * granted * (0.5 if second < 1005 else 1.01), float(value), granted)
        for second in range(1000, 1030)
    ]
    return dbus.Array([(dbus.UInt64(s * 10**6), *of) for s, *of in rows], signature="(tddd)")


def policy(mock, unit):
    entries = list(SHIPPED.get(unit, []))
    for (folder, name), said in mock.control.items():
        if name == unit:
            file = f"{folder}/{unit}.policy"
            entries += [(key, value, f"{file}:{n}", True) for n, (key, value) in enumerate(said, 4)]
    for (sender, name), said in mock.held.items():
        if name == unit:
            entries += [(key, value, f"client {sender}", True) for key, value in said]
    return dbus.Array(
        [
            {"key": key, "value": value, "source": source, "in_force": in_force}
            for key, value, source, in_force in entries
        ],
        signature="a{sv}",
    )


def set_policy(mock, unit, assignments, lifetime, sender):
    """All or nothing; "" resets the key, others add up."""
    for key, value in assignments:
        if key not in KEYS:
            raise ValueError(f"{key}: this key is not known; known are {', '.join(KEYS)}")
        if "nonsense" in value:
            raise ValueError(f'{key}: "{value}": a path and a size above 0, as "/dev/vg/lv 200M"')
    here = mock.held if lifetime == "client" else mock.control
    place = (sender if lifetime == "client" else CONTROL[lifetime], unit)
    said = list(here.get(place, []))
    for key, value in assignments:
        said = [pair for pair in said if pair[0] != key or value]
        said += [(str(key), str(value))] if value else []
    here[place] = said


def reset_policy(mock, unit, lifetime, sender):
    """Forget all of it, a file with a mistake as well."""
    here = mock.held if lifetime == "client" else mock.control
    here.pop((sender if lifetime == "client" else CONTROL[lifetime], unit), None)
    file = f"{CONTROL.get(lifetime)}/{unit}.policy:"
    mock.mistakes = [mistake for mistake in mock.mistakes if not mistake.startswith(file)]
