# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes settings under load until the power is cut.

    python3 -m boot.change SEED

Settings that last get other values (journal.py). Settings and schedulers of the present boot are
changed beside them: nothing of them is left after the next boot.
"""

import itertools
import random
import subprocess
import sys

from rig import bus
from rig.shell import run
from rig.unit import Unit, fio, start

from boot import journal
from boot.settings import LEAVES, ROOT, SETTERS

RANGES = {
    "floor": (500_000, 3_000_000),
    "ceiling": (1_000_000, 40_000_000),
    "policy": (1, 10000),
    "weight": (1, 10000),
}


def change(seed: random.Random) -> None:
    """Change one setting that lasts, or some of this boot."""
    if seed.random() < 0.7:
        setting = seed.choice(sorted(RANGES))
        value = seed.randint(*RANGES[setting])
        for whole in (False, True):
            if whole:
                SETTERS[setting](value)
            journal.note(setting, value, whole=whole)
            journal.mark()
        return
    kind = seed.choice(("leaf", "runtime", "unit"))
    if kind == "leaf":
        leaf = f"/dev/{seed.choice(LEAVES)}"
        bus.release(leaf)
        bus.use(leaf)
    elif kind == "runtime":
        value = str(seed.randint(1, 10000))
        bus.set_policy(seed.choice(("db.service", "foreign.service")), Weight=value)
    else:
        value = f"IOWeight={seed.randint(1, 10000)}"
        run("systemctl", "set-property", "--runtime", "foreign.service", value)


def load() -> None:
    """Two units: one writes files and syncs them, one reads the volume of the root."""
    writer = fio("/srv/load", "randwrite", "4k", fsync=8, size="8m", ioengine="psync", direct=0)
    reader = fio(ROOT, "randread", "256k", 4)
    start([Unit("writer", writer, weight=50), Unit("reader", reader)])


def main() -> None:
    """Change for ever."""
    seed = random.Random(int(sys.argv[1]))
    load()
    for number in itertools.count():
        change(seed)
        if number % 20 == 19:
            subprocess.run(["sync"], check=True)


if __name__ == "__main__":
    main()
