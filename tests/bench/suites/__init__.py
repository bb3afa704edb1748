# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of others with sutro as the scheduler. `results` compares two schedulers."""
