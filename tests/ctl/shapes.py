# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shapes of the JSON of sutroctl: the type of each value.

A list has one element, the shape of any number of elements.
"""


def each(kind, names):
    """Keys whose values are of one type."""
    return dict.fromkeys(names.split(), kind)


WEIGHTS = [{"path": str, "weight": int}]
UNIT = {"unit": str, "cgroup": str, "weight": int, "weight_set": bool, "device_weights": WEIGHTS}
LEAF = (
    each(str, "leaf devno scheduler backend reason file written read_back error")
    | each(int, "asked time_ns rbytes wbytes")
    | each(float, "hweight got")
)
DEVICE = (
    each(str, "node name devno kind")
    | each([str], "slaves aliases")
    | each(bool, "leaf managed hung")
    | {"size_bytes": int}
)
LEAF_DEVICE = DEVICE | {"scheduler": str}
EXPLANATION = UNIT | {"path": str, "device": str, "leaves": [LEAF | {"settled": bool}]}
STEP = {"device": str, "kind": str, "level": int, "text": str}
NEED = (
    each(str, "leaf scheduler")
    | each(float, "share_needed share_allotted share_got cost_ns backlog price")
    | {"weight": int}
)
PROMISE = (
    each(str, "unit cgroup key path device source state cause measured_at")
    | each(int, "importance got")
    | each(float, "percent percentile granted gain amplification reserve")
    | {"value": (int, type(None)), "leaves": [NEED]}
)
RESYNC = each(str, "device name action cgroup note") | {"leaves": [{"leaf": str, "weight": int}]}
POLICY_WEIGHTS = {"policy_weights": [{"path": str, "weight": int, "source": str}]}
EXPLAIN = EXPLANATION | POLICY_WEIGHTS
EXPLAIN |= {
    "slices": [UNIT | POLICY_WEIGHTS],
    "steps": [STEP],
    "promises": [PROMISE],
    "resyncs": [RESYNC],
    "class": str,
}
CAPACITY = each(str, "path device key") | each(int, "capacity promised left")
MISTAKES = {"policy_errors": [str], "mistaken_files": [{"file": str, "last_good": bool}]}
STATUS = MISTAKES | {
    "capacities": [CAPACITY],
    "promises": [PROMISE],
    "resyncs": [RESYNC],
    "daemon": {"version": str, "dry_run": bool, "managed_leaves": [str]},
    "leaves": [LEAF_DEVICE | {"stacks": [str]}],
    "units": [UNIT],
}
SET = (
    each((int, type(None)), "weight previous")
    | each(bool, "runtime dry_run")
    | {"unit": str, "path": (str, type(None)), "note": str}
)
SWITCHED = [{"leaf": str, "scheduler": str, "previous": str, "changed": bool, "error": str}]
UNSET = 2**64 - 1
LINE = each(str, "about key path state cause") | {"granted": float, "got": int}
LINE |= {"value": (int, type(None))}
TOP = [
    each(str, "unit cgroup device name")
    | {"fails": bool, "lines": [LINE], "leaves": [{"leaf": str, "share": float, "weight": int}]}
]
SAID = [{"key": str, "value": str, "source": str, "in_force": bool}]
POLICY = {"units": [{"unit": str, "policy": SAID}], "note": str} | MISTAKES
POLICY_SET = each(str, "unit lifetime note") | {
    "said": [{"key": str, "value": str}],
    "policy": SAID,
}
POLICY_CHECK = each([str], "files mistakes notes")
WATCH = (
    each(str, "unit cgroup key path state")
    | each(float, "time granted")
    | {"value": (int, type(None)), "got": int, "leaves": [NEED]}
)
PLOT = {"file": str, "panels": [{"unit": str, "key": str, "path": str, "samples": int}]}
LATENCIES = {
    "unit": str,
    "rows": [
        each(str, "cgroup device name op source")
        | each(float, "p50_us p90_us p95_us p99_us p99_9_us")
        | {"requests": int, "buckets": [each(float, "from_us to_us requests")]}
        | {"targets": [{"path": str, "percentile": float, "state": str} | each(int, "value got")]}
    ],
}


def fits(value, shape, where="answer"):
    """Assert that a value has a shape: exactly these keys, exactly these types."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        assert value.keys() == shape.keys(), where
        for key in shape:
            fits(value[key], shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for index, item in enumerate(value):
            fits(item, shape[0], f"{where}[{index}]")
    else:
        assert type(value) in (shape if isinstance(shape, tuple) else (shape,)), where


def keys(shape):
    if isinstance(shape, list):
        return keys(shape[0])
    if not isinstance(shape, dict):
        return set()
    return set(shape).union(*(keys(inner) for inner in shape.values()))
