# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bench of harm: each stack in turns with stock and with patched drivers.

The cost of an I/O to a disk in the root cgroup and in another one is measured, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rig import scheduler
from rig.dkms import kernel
from rig.result import Result, failed

from bench.harm import drivers
from bench.harm.measure import ratio_of, turn
from bench.harm.run import windows
from bench.harm.scenario import PATCHED, SHIPPED, STOCK, Book
from bench.judge import TROUBLE, Say
from bench.program import Kind, Options
from bench.show import table

# Turns differ by 1 or 2 %, for nothing lies twice where it was.
ROUNDS = 3


def results(book: Book, options: Options, say: Say) -> Iterator[list[Result]]:
    """The turns of each stack, then its ratio."""
    scheduler.stop_daemon()
    about = {"kernel": kernel()}
    ratios: list[Result] = []
    for stack in book.runs():
        turns = []
        try:
            first, second = stack.pair
            for which in ROUNDS * (first, second, second, first):
                drivers.load(PATCHED if which == PATCHED else STOCK)
                turns.append(turn(stack, which, windows(stack, which, say)))
                say(f"{stack.name}: {which}: {turns[-1].value:.0f}")
            ratios.append(ratio_of(stack, turns, ratios))
            found = [*turns, ratios[-1]]
        except TROUBLE as error:
            found = [*turns, failed(stack.name, stack.pair[1], error, stack.judged)]
        yield [replace(one, detail={**one.detail, **about}) for one in found]


def show(found: Sequence[Result]) -> None:
    """Instructions for 4 KiB: of stock drivers, of patched ones, the ratio and its error."""
    heads = ["theirs", "ours", "ratio", "+- %", "price"]
    rows = [
        [
            f"{row.detail['theirs']:.0f}", f"{row.detail['ours']:.0f}", f"{row.value:.4f}",
            str(row.detail["error_percent"]), str(row.detail.get("price", "")),
        ]
        for row in found
        if "error_percent" in row.detail
    ]  # fmt: skip
    if rows:
        table(heads, rows)


KIND = Kind(Book, SHIPPED, results, show)
