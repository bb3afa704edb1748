# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel's block layer tests with sutro as the scheduler: `./lab bench blktests DIR`.

`clone` finds the tests of a user's blktests, `run` runs one of them in the guest, `results` reads
the files that it leaves, and compares schedulers. tests/bench/README.rst describes the output.
"""
