# SPDX-License-Identifier: LGPL-2.1-or-later
"""`./lab demo`: weights of systemd units on stacked devices, stock schedulers and Sutro."""
