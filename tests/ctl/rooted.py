# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program on the files of a fake machine: rooted.py ROOT PROGRAM ARGUMENTS.

The replies of its sutrod have paths below ROOT; the program gets those of the machine.
"""

import json
import runpy
import sys
from pathlib import Path

from sutro import client, counters, reach

root = sys.argv[1]
counters.ROOT, reach.ROOT = Path(root), root
call = client.Client.call


async def stripped(self, *words):
    """A call whose reply has the paths of the machine."""
    reply = await call(self, *words)
    return json.loads(json.dumps(reply).replace(root, ""))


client.Client.call = stripped
del sys.argv[:2]
runpy.run_path(sys.argv[0], run_name="__main__")
