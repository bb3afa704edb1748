# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a scheduler costs: CPU for a request, and throughput where the CPUs are what is short."""
