# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fairness in virtual time: scenarios as data, machines that run them, numbers out of them."""
