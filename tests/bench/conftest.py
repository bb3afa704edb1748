# SPDX-License-Identifier: LGPL-2.1-or-later
"""Cases of the tests of benches: the same in each run, without a limit on the clock of the host."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "bench", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("bench")
