# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cost of a scheduler: CPU time for a request, and throughput where CPUs are the limit."""
