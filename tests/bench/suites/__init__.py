# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others with sutro as the scheduler: blktests, xfstests, LTP.

`results` compares two schedulers. `xfstests` and `ltp` find the tests of a user's copy, and read
what they leave. tests/bench/README.rst describes the output.
"""
