# SPDX-License-Identifier: LGPL-2.1-or-later
"""Weights of a unit, and their effect on the leaves: the verbs explain and set."""

import argparse
import asyncio
from typing import Any

from . import units
from .answer import (
    Answer,
    on_partition,
    policy_if_known,
    policy_weights,
    promises_if_known,
    resyncs_if_known,
    unknown_unit,
)
from .client import Client
from .errors import NoSuchPath, NoSuchUnit, SutroError, UsageError
from .topology import Topology
from .weights import WEIGHT_DEFAULT

Dict = dict[str, Any]

# systemd signals a change within milliseconds and the daemon writes at once. On a machine with
# more work than processors this and the first samples for Explain take longer.
SETTLE_TIMEOUT_S = 10.0
SETTLE_POLL_S = 0.05


def _settled(leaf: Dict) -> bool:
    """Does the file have the line that was written to it? Also if there is nothing to write."""
    return leaf["written"] in ("", leaf["read_back"])


async def _explain(client: Client, unit: str, path: str) -> Dict:
    """The explanation of a unit, with `settled` for each leaf."""
    explanation = await client.explain(unit, path)
    explanation["path"] = path
    explanation["leaves"] = [leaf | {"settled": _settled(leaf)} for leaf in explanation["leaves"]]
    return explanation


def _is_about(promise: Dict, explanation: Dict) -> bool:
    """Is it a promise of the explained unit, on the named device (if there is one)?"""
    if promise["cgroup"] != explanation["cgroup"]:
        return False
    return not explanation["path"] or explanation["device"] == promise["device"]


async def without_cgroup(client: Client, unit: str) -> NoSuchUnit:
    """The failure for a unit without a cgroup, with the reason."""
    if unit.startswith("/"):
        return NoSuchUnit(f"there is no cgroup '{unit}'", "see: systemd-cgls")
    settings = await client.unit_settings(unit)
    if settings["load_state"] == "not-found":
        return await unknown_unit(client, unit)
    if not settings["active"]:
        return NoSuchUnit(
            f"unit '{unit}' is not active, so it has no cgroup",
            f"start it: systemctl start {units.word(unit)}",
        )
    return NoSuchUnit(
        f"unit '{unit}' is active, but sutrod has seen no cgroup of it",
        f"try again in a second; processes of the unit: systemctl status {units.word(unit)}",
    )


async def _policy_weights(client: Client, unit: Dict) -> list[Dict]:
    """The weights of policies for a unit or cgroup of the daemon."""
    return policy_weights(await policy_if_known(client, unit["unit"] or unit["cgroup"]))


async def explain(client: Client, args: argparse.Namespace) -> Answer:
    """Weights, shares and promises of a unit on the leaves under a path."""
    unit, path, steps = args.unit, "", []
    if args.path:
        path = Topology(await client.devices(), args.host).path(args.path)
        steps = (await client.resolve(path))["steps"]
    try:
        explanation = await _explain(client, unit, path)
    except NoSuchUnit:
        raise await without_cgroup(client, unit) from None
    # Its slices share the disk first, then the unit its slice.
    slices = [
        above | {"policy_weights": await _policy_weights(client, above)}
        for above in sorted(await client.units(), key=lambda above: above["cgroup"])
        if explanation["cgroup"].startswith(above["cgroup"] + "/")
    ]
    promises = await promises_if_known(client)
    if promises is not None:
        promises = [promise for promise in promises if _is_about(promise, explanation)]
    nodes = {leaf["leaf"] for leaf in explanation["leaves"]}
    resyncs = [
        resync
        for resync in await resyncs_if_known(client)
        if nodes & {leaf["leaf"] for leaf in resync["leaves"]} or not resync["device"]
    ]
    parts = {"slices": slices, "steps": steps, "promises": promises, "resyncs": resyncs}
    policy = await policy_if_known(client, unit)
    parts["policy_weights"] = policy_weights(policy)
    parts["class"] = next((e["value"] for e in policy if e["key"] == "Class"), "")
    return Answer(explanation | parts)


async def _wait_until_written(
    client: Client, unit: str, path: str, weight: int | None, dry_run: bool
) -> Answer:
    """Poll until the daemon has the weight and the files have its lines.

    The weight is that of a policy if there is one. The answer is the last explanation, with a
    failure after SETTLE_TIMEOUT_S without success.
    """

    def is_known(explanation: Dict) -> bool:
        if path:
            weights = {entry["path"]: entry["weight"] for entry in explanation["device_weights"]}
            return weights.get(path) == weight
        return (explanation["weight"], explanation["weight_set"]) == (
            WEIGHT_DEFAULT if weight is None else weight,
            weight is not None,
        )

    def written(explanation: Dict) -> bool:
        return dry_run or all(leaf["settled"] for leaf in explanation["leaves"])

    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE_TIMEOUT_S
    while True:
        explanation = await _explain(client, unit, path)
        if is_known(explanation) and written(explanation):
            return Answer(explanation)
        if loop.time() >= deadline:
            break
        await asyncio.sleep(SETTLE_POLL_S)
    late = "not written it to the files" if is_known(explanation) else "not received it"
    return Answer(
        explanation,
        SutroError(
            f"the weight is set in systemd, but sutrod has {late} within {SETTLE_TIMEOUT_S:.0f} s",
            "see: journalctl -u sutrod -n 20",
        ),
    )


async def set_(client: Client, args: argparse.Namespace) -> Answer:
    """Set a weight in systemd, and wait until the daemon has written it on the leaves."""
    unit, weight = args.unit, args.weight
    properties = await client.properties()
    path = ""
    if args.device:
        path = Topology(await client.devices(), args.host).path(args.device)
        if any(character.isspace() for character in path):
            raise UsageError(
                f"systemd takes no path with white space: '{path}'",
                "name the device by another path, or set Weight= in a policy: see sutro.policy(5)",
            )
    settings = await client.unit_settings(unit)
    if settings["load_state"] == "not-found":
        raise await unknown_unit(client, unit)

    if path:
        previous = await _set_device(client, unit, path, weight, settings, args.runtime)
    else:
        previous = settings["weight"]
        await client.set_weight(unit, weight, args.runtime)

    note, in_force = "", weight
    for stronger in policy_weights(await policy_if_known(client, unit)):
        if stronger["path"] == path:
            in_force = stronger["weight"]
            stated = f"Weight={path} {in_force}" if path else f"Weight={in_force}"
            note = f"a policy has {stated}, which is stronger: {stronger['source']}"
    if path and weight is not None:
        note = "; ".join(filter(None, [note, await on_partition(client, path, "weight")]))
    answer = Answer(None)
    if settings["active"]:
        try:
            answer = await _wait_until_written(client, unit, path, in_force, properties["DryRun"])
        except NoSuchUnit:
            pass  # it ended just now; the statement is made all the same
    data = {
        "unit": unit,
        "path": path or None,
        "weight": weight,
        "previous": previous,
        "runtime": args.runtime,
        "dry_run": properties["DryRun"],
        "note": note,
        "explanation": answer.data,
    }
    return Answer(data, answer.failure)


async def _set_device(
    client: Client, unit: str, path: str, weight: int | None, settings: Dict, runtime: bool
) -> int | None:
    """Set or remove the weight of one device; return the former one, None without one.

    NoSuchPath for a path without a device, and for a weight to remove that does not exist.
    """
    before = settings["device_weights"]
    previous = next((entry["weight"] for entry in before if entry["path"] == path), None)
    if weight is not None:
        await client.resolve(path)  # refuse a path without a device before the change
        await client.set_device_weights(unit, [{"path": path, "weight": weight}], runtime)
        return previous
    if previous is None:
        stated = ", ".join(entry["path"] for entry in before) or "none"
        raise NoSuchPath(
            f"unit '{unit}' has no IODeviceWeight= for {path}", f"it has one for: {stated}"
        )
    rest = [entry for entry in before if entry["path"] != path]
    await client.set_device_weights(unit, rest, runtime, replace=True)
    return previous
