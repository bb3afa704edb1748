# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs in a machine that reboots (tests/lab/reboots.py): its settings, their changes, their
check."""
