# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who is charged for I/O, once it has gone through a stack: `./lab bench attribution`.

`stacks` reads attribution.toml, `run` lets a cgroup use each stack and asks the leaves whom they
have charged, `page` makes the tables of Documentation/attribution.rst. tests/bench/README.rst tells
what a file may say and what is printed.
"""
