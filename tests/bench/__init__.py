# SPDX-License-Identifier: LGPL-2.1-or-later
"""Schedulers compared on model disks: scenarios are data, `bench.demo` runs the shipped ones."""
