# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inside the lab's guest: model disks, stacks on them, units that use them, the truth.

A module per noun: `modeldisk` and `stack` make devices, `scheduler` chooses who orders their
requests, `unit` starts services, `sampler` watches, `result` judges and prints, `plot` draws.
Everything that makes something is a context manager and removes it again, whatever happens.
"""
