# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cgroups that are charged for I/O below a stack: `./lab bench attribution`.

`run` lets a cgroup use each stack and reads from the leaves which cgroup they have charged, `page`
makes the tables of Documentation/attribution.rst.
"""
