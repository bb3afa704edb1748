# SPDX-License-Identifier: LGPL-2.1-or-later
"""KVM or emulation. Only emulation has a clock that counts instructions, on which a guest measures.

A guest with two CPUs gets KVM if that boots this very kernel; the lab tries once per boot of the
host.

/dev/kvm may exist and still not run a stock guest (nested virtualisation that lacks an MSR), so
nothing but a boot is believed.
"""

import os
from pathlib import Path

from .cache import Cache
from .guest import probe
from .image import Image
from .progress import step

PROBE_S = 10.0


def chosen(cache: Cache, image: Image, *, smp: bool) -> str:
    """Which of guest.ACCELERATORS to use: an exact clock, or with smp two CPUs."""
    if not smp:
        return "tcg"
    return "kvm" if _kvm_works(cache, image) else "tcg-smp"


def _kvm_works(cache: Cache, image: Image) -> bool:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    answer = cache.root / f"kvm-{boot_id}"
    if not answer.exists():
        step("host: trying KVM")
        works = probe(image, "kvm", cache.run_dir / "kvm-probe.log", PROBE_S)
        for old in cache.root.glob("kvm-*"):
            old.unlink(missing_ok=True)
        answer.write_text("kvm" if works else "tcg")
    return answer.read_text() == "kvm"
