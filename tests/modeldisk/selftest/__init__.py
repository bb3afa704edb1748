# SPDX-License-Identifier: GPL-2.0-only
"""Is the oracle right? Checks of modeldisk against its own parameters.

They need root, modeldisk.ko, fio, lvm2 and blkdiscard. What a disk should do is computed here from
its numbers, independently of the module: closed formulas, a small simulation for
shortest-positioning-first, a copy of the hash that maps flash pages to channels.

Times in a model do not depend on the guest, but the guest must keep a disk busy. So the fast
drives are slowed by a factor (all their times alike), and rates are taken while the guest runs
smoothly (class Rate).

`python3 -m selftest` prints one line per check; the exit status is 0 only if all passed.
"""

from __future__ import annotations

from collections.abc import Callable

from .cache import (
    cache_on_and_off,
    cached_burst,
    cached_drain_rate,
    cached_fua,
    cached_ssd_reads_first,
)
from .flash import (
    flash_lone_reads,
    flash_noise,
    nvme_full_depth,
    ssd_change_at_run_time,
    ssd_full_depth,
)
from .hdd import (
    hdd_age_limit,
    hdd_change_at_run_time,
    hdd_random_fifo,
    hdd_random_read_depth_1,
    hdd_random_sptf,
    hdd_sequential_read_depth_1,
    hdd_sequential_read_depth_32,
    hdd_sequential_write,
)
from .life import bad_input, defaults_and_kind, discard, integrity, lvm, offline_under_load
from .truth import truth_by_cgroup, truth_outlives_cgroup

CHECKS: list[Callable[[], str]] = [
    defaults_and_kind,
    bad_input,
    integrity,
    discard,
    hdd_sequential_read_depth_1,
    hdd_sequential_read_depth_32,
    hdd_sequential_write,
    hdd_random_read_depth_1,
    hdd_random_sptf,
    hdd_random_fifo,
    hdd_age_limit,
    hdd_change_at_run_time,
    ssd_full_depth,
    nvme_full_depth,
    flash_lone_reads,
    flash_noise,
    ssd_change_at_run_time,
    truth_by_cgroup,
    truth_outlives_cgroup,
    cached_burst,
    cached_fua,
    cached_drain_rate,
    cached_ssd_reads_first,
    cache_on_and_off,
    offline_under_load,
    lvm,
]
