# SPDX-License-Identifier: LGPL-2.1-or-later
"""What each verb of ./lab does, in terms of artefacts and guests."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import accel, guest, host, image, products
from .cache import Cache
from .progress import step

SOURCE = Path(__file__).resolve().parents[2]


def run(cache: Cache, options: argparse.Namespace) -> int:
    """Boot a guest, run one command in it, pass its output and exit status on."""
    prepared = _prepare(cache, bare=options.bare)
    with guest.boot(*prepared, cache.run_dir) as machine:
        words = options.command
        command = words[0] if len(words) == 1 else guest.shell_words(words)
        status = machine.run(command, echo=guest.to_stdout)
        machine.shutdown()
    step(f"status {status}; logs and /mnt/out are in {cache.run_dir}")
    return status


def clean(cache: Cache, options: argparse.Namespace) -> int:
    """Remove the cache folder."""
    cache.clean()
    return 0


def _prepare(cache: Cache, *, bare: bool = False) -> tuple[image.Image, str, Path, Path]:
    """What a guest of this clone boots: image, accelerator, source tree, folder of build products."""
    host.ensure_packages()
    debs = None if bare else products.debs(cache, SOURCE)
    disk = image.built(cache, debs)
    modules = products.test_modules(cache, SOURCE)
    build = products.gathered(cache.run_dir / "build", [debs, modules])
    return disk, accel.chosen(cache, disk), SOURCE, build
