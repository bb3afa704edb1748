# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the operator asks of Sutro, and what Sutro answers.

client    the buses: org.sutro1 and the few calls of systemd that set weights
errors    failures, and what to do about them
weights   a weight as people type it
units     a unit name as people type it
topology  the stacks of block devices, as a graph
show      all of the above as text for people
sutroctl  the command
"""

__version__ = "0.1.0"
