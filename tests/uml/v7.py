# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scenarios of `./lab bench v7`: experiments of the first io-controller patches and of other mails.

The file has the format of fairness.toml. A scenario has two more things: `document`, the figures
of the mail by metric, which a goal is printed with; and `series`, with which the device time of
each group in ms, and how often sutro took it from the queue of groups, is printed for each sample.
"""

from pathlib import Path

from .scenario import Book as Book

SHIPPED = Path(__file__).with_name("v7.toml")
