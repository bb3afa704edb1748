# SPDX-License-Identifier: LGPL-2.1-or-later
"""Transactions and latencies of databases beside backups and writers: `./lab bench applications`.

`application` has the databases, `competitor` the units beside them, `setups` the schedulers; `run`
runs both in a guest, `measure` judges, and `page` makes the tables of Documentation/results.md.
"""
