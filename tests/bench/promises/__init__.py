# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors on logical devices while others fight for the same disks: `./lab bench promises`.

`run` lets units run, `setups` has what keeps their floors (Sutro, or what else Linux has, set up by
hand), `measure` computes the metrics of a run, `overhead` is what the daemon costs.
"""
