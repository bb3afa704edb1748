# SPDX-License-Identifier: LGPL-2.1-or-later
"""How what a scheduler costs grows: with groups that are there, with busy ones, with queues."""
