# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb watch: a line per second and promise, for people, files and programs.

With --json each line is an object; `sutroctl plot --from` draws a file of them. While sutrod
restarts there is a gap.
"""

import argparse
import asyncio
import json
import sys
import time
from typing import Any

from . import values
from .answer import Answer, answered, interrupted, wait, wants_json
from .client import Client
from .errors import NotRunning
from .promises import TARGETS, granted, state_word, stated, worst_first

Dict = dict[str, Any]

PERIOD_S = 1.0
FIELDS = ("unit", "cgroup", "key", "path", "value", "got", "granted", "state", "leaves")


def record(promise: Dict, time_s: float) -> Dict:
    """The JSON of a promise at a time (seconds since 1970)."""
    return {"time": time_s} | {field: promise[field] for field in FIELDS}


def line(promise: Dict, time_s: float) -> str:
    """The same as text for people."""
    key = promise["key"]
    of = stated(promise)
    if promise["granted"] < 1:
        room = granted(promise)
        of = f"{of}, granted {room}" if key in TARGETS else f"{room} of {of}"
    clock = time.strftime("%H:%M:%S", time.localtime(time_s))
    subject = f"{clock} {promise['unit'] or promise['cgroup']} {key}={promise['path']} {of}"
    return f"{subject}: got {values.short(key, promise['got'])}, {state_word(promise)}"


async def watch(client: Client, args: argparse.Namespace) -> Answer:
    """A line for each promise, each second, until Ctrl-C."""
    quit_ = interrupted()
    loop = asyncio.get_running_loop()
    due, down = loop.time(), False
    promises = await answered(quit_, client.promises())
    if promises is None:
        return Answer(None)
    if not promises:
        print("sutroctl: there is no promise yet; waiting for one", file=sys.stderr, flush=True)
    while True:
        time_s = round(time.time(), 3)
        for promise in worst_first(promises):
            if wants_json(args):
                print(json.dumps(record(promise, time_s)))
            else:
                print(line(promise, time_s))
        sys.stdout.flush()
        due = max(due + PERIOD_S, loop.time())
        if await wait(quit_, due - loop.time()):
            return Answer(None)
        try:
            promises, down = await answered(quit_, client.promises()), False
        except NotRunning as error:
            if not down:
                print(f"sutroctl: {error.message}; waiting for it", file=sys.stderr, flush=True)
            promises, down = [], True
        if promises is None:
            return Answer(None)
