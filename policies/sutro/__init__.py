# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of the operator: sutroctl and policy programs.

client         the buses: org.sutro1 and the few calls of systemd that set weights
errors         failures, with their remedies
weights        a weight as people type it
values         the other values of a policy as people type them
units          a unit name as people type it
topology       the stacks of block devices, as a graph
promises       promises, and which of them do not hold
usage          the use of devices by units, with their promises

sutroctl       the command
arguments      its command line; its verbs are in
  daemon       status, log-level, dump
  stacks       tree, use, release
  statements   explain, set
  measure      measure
  fairness     test, with the package sutro-tests
  policy       policy check, show, set, reset, reload
  policy_files policy cat, edit
  top, watch, plot

view           the view of top, and the keys that change it
keys           keys and clicks from the bytes of a terminal
recording      recordings of top

counters       reads by latency, from files of cgroups
textfile       the verb metrics

answer         the result of a verb
show           answers as text for people: weights
show_promises  the same: promises, policies
show_top       the same: top, on a terminal a screen with a selected row
pager          long answers on a terminal
files          files that other programs may read at any time
objects        objects in JSON from files, checked against a shape
chart          promises over time as PNG or HTML

program        the life of a policy program
settings       the file of such a program, with errors that name the line
fields         fields of several such files
window         sutro-window: promises that differ by time of day
latency_guard  sutro-latency-guard: raise a unit until its P99 holds
slurm          sutro-slurm: floors of Slurm jobs
oci            sutro-oci: policies of containers by annotations
"""

__version__ = "0.1.0"
