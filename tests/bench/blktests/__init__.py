# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel's block layer tests with sutro as the scheduler: `./lab bench blktests DIR`.

`clone` finds the tests of a user's blktests, `run` runs one of them in the guest, `results` reads
what blktests left of it, and compares schedulers. tests/bench/README.rst tells what is printed.
"""
