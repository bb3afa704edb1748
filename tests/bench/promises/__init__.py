# SPDX-License-Identifier: LGPL-2.1-or-later
"""Floors on logical devices while others fight for the same disks: `./lab bench promises`.

`scenario` reads promises.toml, `run` lets its units run, `ways` has who keeps their floors (Sutro,
or what else Linux has, set up by hand), `measure` makes numbers of a run, `overhead` is what the
daemon costs. tests/bench/README.rst tells what a file may say and what is printed.
"""
