# SPDX-License-Identifier: LGPL-2.1-or-later
"""Comparisons of schedulers on model disks: scenarios are data, `bench.demo` runs the shipped ones."""
