# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schedulers compared: scenarios are data, `python3 -m bench KIND` runs those of a kind."""
