# SPDX-License-Identifier: LGPL-2.1-or-later
"""Layers that only the bench of attribution stands on; rig.stack has the others and explains.

Each function makes one layer over the devices `over`, registers its removal with `undo`, and
returns its node. The metadata of a driver (tags, hashes, exceptions) go to a device of their own
if the driver allows that, so that data and metadata have different leaves.

| kind | over | keys | becomes |
| --- | --- | --- | --- |
| integrity | data, tags | mode (J), tag_bytes (4), hash (crc32c) | dm-integrity; hash "": another layer's tags |
| verity | data, hashes | | dm-verity |
| cache | origin, fast, metadata | mode (writethrough) | dm-cache; each block of the origin is in it |
| vdo | one | size_mb, compression ("off") | dm-vdo without deduplication |
| bcache | backing, cache | mode (writethrough) | bcache |
| zram | one | size_mb | zram with a backing device |
| xfs | one | options ("") | file system, mounted at /run/rig/NAME |
| btrfs | any | profile (single), options ("") | file system, data in this profile |
"""  # noqa: E501

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rig.shell import run, run_again, wait_for

MOUNTS = Path("/run/rig")
BLOCK = Path("/sys/class/block")
BCACHE = Path("/sys/fs/bcache")
ZRAM = Path("/sys/class/zram-control")
# Sectors of 512 bytes.
CACHE_BLOCK = 128
# The least that dm-vdo can be made with: a slab of 128 MiB, an index in 256 MiB of memory.
VDO_SLAB_BITS = 15
VDO_CACHE_BLOCKS = 4096


def integrity(
    undo: ExitStack,
    name: str,
    over: Sequence[str],
    mode: str = "J",
    tag_bytes: int = 4,
    hash: str = "crc32c",
) -> str:
    """dm-integrity; the kernel formats a device of zeros, and reports how large it can be then."""
    data, tags = over
    words = [f"meta_device:{tags}", "block_size:4096", "fix_padding"]
    words += [f"internal_hash:{hash}"] if hash else []
    how = f"integrity {data} 0 {tag_bytes} {mode} {len(words)} {' '.join(words)}"
    run("dmsetup", "create", name, "--table", f"0 8 {how}")
    # NAME: 0 8 integrity MISMATCHES SECTORS ...
    sectors = run("dmsetup", "status", name).split()[4]
    run_again("dmsetup", "remove", name)
    run("dmsetup", "create", name, "--table", f"0 {sectors} {how}")
    undo.callback(run_again, "dmsetup", "remove", name)
    return f"/dev/mapper/{name}"


def verity(undo: ExitStack, name: str, over: Sequence[str]) -> str:
    """dm-verity over data that lie there already."""
    data, hashes = over
    printed = run("veritysetup", "format", data, hashes)
    root = next(line.split()[-1] for line in printed.splitlines() if line.startswith("Root hash"))
    run("veritysetup", "open", data, name, hashes, root)
    undo.callback(run_again, "veritysetup", "close", name)
    return f"/dev/mapper/{name}"


def cache(undo: ExitStack, name: str, over: Sequence[str], mode: str = "writethrough") -> str:
    """dm-cache that has every block already: nothing is promoted, everything hits."""
    origin, fast, metadata = over
    sectors, room = (int(run("blockdev", "--getsz", device)) for device in (origin, fast))
    blocks = sectors // CACHE_BLOCK
    if room < sectors:
        raise ValueError(f"layer {name}: {fast} is smaller than {origin}")
    known = [
        f'<mapping cache_block="{n}" origin_block="{n}" dirty="false"/>' for n in range(blocks)
    ]
    size = f'block_size="{CACHE_BLOCK}" nr_cache_blocks="{room // CACHE_BLOCK}"'
    head = f'<superblock uuid="" {size} policy="smq" hint_width="4">'
    text = "\n".join((head, "<mappings>", *known, "</mappings>", "</superblock>"))
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(text)
        file.flush()
        words = ("--metadata-version=1", f"--input={file.name}", f"--output={metadata}")
        run("cache_restore", "--quiet", *words)
    how = f"cache {metadata} {fast} {origin} {CACHE_BLOCK} 1 {mode} smq 0"
    run("dmsetup", "create", name, "--table", f"0 {sectors} {how}")
    undo.callback(run_again, "dmsetup", "remove", name)
    return f"/dev/mapper/{name}"


def vdo(
    undo: ExitStack, name: str, over: Sequence[str], size_mb: int, compression: str = "off"
) -> str:
    """dm-vdo, its table written as lvm2 does."""
    (below,) = over
    words = (f"--logical-size={size_mb}M", f"--slab-bits={VDO_SLAB_BITS}")
    run("vdoformat", "--force", "--uds-memory-size=0.25", *words, below)
    blocks = int(run("blockdev", "--getsize64", below)) // 4096
    how = f"vdo V4 {below} {blocks} 4096 {VDO_CACHE_BLOCKS} 16380 deduplication off"
    how += f" compression {compression}"
    run("dmsetup", "create", name, "--table", f"0 {size_mb << 11} {how}")
    undo.callback(run_again, "dmsetup", "remove", name)
    return f"/dev/mapper/{name}"


def bcache(undo: ExitStack, name: str, over: Sequence[str], mode: str = "writethrough") -> str:
    """bcache, everything cached: no I/O is too long or too slow for it."""
    backing, cache = over
    run("modprobe", "bcache")
    run("make-bcache", "--wipe-bcache", "--bucket=64k", "--bdev", backing, "--cache", cache)
    # udev registers them, too, and so may we.
    (BCACHE / "register_quiet").write_text(backing)
    link = BLOCK / Path(backing).name / "bcache" / "dev"
    wait_for(link.exists, f"bcache over {backing}")
    top = BLOCK / link.resolve().name
    undo.callback(_stop_bcache, top / "bcache")
    (BCACHE / "register_quiet").write_text(cache)
    wait_for((top / "bcache" / "cache").exists, f"{top.name} with its cache")
    cache_set = (top / "bcache" / "cache").resolve()
    undo.callback(_stop_bcache, cache_set)
    (top / "bcache" / "cache_mode").write_text(mode)
    (top / "bcache" / "sequential_cutoff").write_text("0")
    for threshold in ("congested_read_threshold_us", "congested_write_threshold_us"):
        (cache_set / threshold).write_text("0")
    run("udevadm", "settle", "--timeout=10")
    return f"/dev/{top.name}"


def _stop_bcache(part: Path) -> None:
    """Stop a bcache device or a cache set; with the set its devices go, too."""
    if part.exists():
        (part / "stop").write_text("1")
    wait_for(lambda: not part.exists(), f"the end of {part}")


def zram(undo: ExitStack, name: str, over: Sequence[str], size_mb: int) -> str:
    """zram with a backing device; sysfs selects the pages that are written there."""
    (below,) = over
    run("modprobe", "zram", "num_devices=0")
    number = (ZRAM / "hot_add").read_text().strip()
    undo.callback((ZRAM / "hot_remove").write_text, number)
    top = Path("/sys/block") / f"zram{number}"
    undo.callback((top / "reset").write_text, "1")
    (top / "backing_dev").write_text(below)
    (top / "disksize").write_text(f"{size_mb}M")
    run("udevadm", "settle", "--timeout=10")
    return f"/dev/{top.name}"


def xfs(undo: ExitStack, name: str, over: Sequence[str], options: str = "") -> str:
    """xfs, mounted."""
    run("mkfs.xfs", "-q", "-f", *over)
    return mounted(undo, name, over[0], options)


def btrfs(
    undo: ExitStack, name: str, over: Sequence[str], profile: str = "single", options: str = ""
) -> str:
    """btrfs with its data in a profile, mounted."""
    meta = "raid1" if len(over) > 1 else "single"
    run("mkfs.btrfs", "--quiet", "--force", f"--data={profile}", f"--metadata={meta}", *over)
    run("btrfs", "device", "scan", *over)
    return mounted(undo, name, over[0], options)


def mounted(undo: ExitStack, name: str, device: str, options: str = "") -> str:
    """A file system at /run/rig/NAME."""
    where = MOUNTS / name
    where.mkdir(parents=True)
    undo.callback(where.rmdir)
    run("mount", *(("-o", options) if options else ()), device, where)
    undo.callback(run_again, "umount", where)
    return str(where)


KINDS: dict[str, Callable[..., str]] = {
    make.__name__: make for make in (integrity, verity, cache, vdo, bcache, zram, xfs, btrfs)
}
