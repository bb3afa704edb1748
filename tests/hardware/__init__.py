# SPDX-License-Identifier: LGPL-2.1-or-later
"""`sutroctl test`: fairness tests on a disk of the user, in the package sutro-tests.

experiment     experiments.toml as dataclasses
target         a device with its leaves, and a file for writes
leaf           the queue of a leaf: schedulers and their settings
state          the settings before the test, and how they are restored
stop           a test that a signal ends, and the command that goes on
plan           the runs of a test, in their order
fio            command lines of fio and dd, and reports of fio
machine        transient units, counters of their cgroups, and the clock
run            one run: units, samples, reports
judge          results from runs
show           results as text for people
report         results as a text to send in
picture        results as a picture
command        the verb

Files of the machine are read and written by `files`. The package has tests/rig/result.py,
tests/bench/read.py and tests/bench/book.py, too, beside this folder.
"""
