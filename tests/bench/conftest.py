# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random cases of the tests of benches: none has a limit on the clock of the host."""

from hypothesis import HealthCheck, settings

settings.register_profile("bench", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bench")
