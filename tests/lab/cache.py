# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cache: artefacts named by the content they are made from.

    CACHE/KIND/KEY          an artefact (a folder), complete as soon as the name exists
    CACHE/KIND/KEY.part     one that is being built, or whose build was interrupted
    CACHE/locks/KIND-KEY    exclusive while it is built, shared while it is in use
    CACHE/locks/cache       shared while any run lives, exclusive for ./lab clean
    CACHE/results/STAGE/KEY results of test stages (tests/lab/keys.py)
    CACHE/packages, apt     .deb files and package lists (tests/lab/archive.py)
    CACHE/runs/...          logs and outputs of the last runs

An artefact is built under its .part name and renamed, so an interrupted build leaves nothing that
looks finished. A build that fails removes its .part folder; after a kill, a later run does. A run
keeps a shared lock on each artefact that it uses until the process ends. Unused artefacts are
removed when their kind has more than KEEP newer ones.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .namespace import remove_tree
from .progress import LabError, step, tail

# Two clones, each with a change tried and taken back, share a cache without rebuilding.
KEEP = 4
KEEP_RUNS = 20
# Runs that find the same artefact missing try to build it at moments of their own.
RETRY_S = 0.1
# Less free space than this after a failed build means that the disk is the reason.
FULL_BYTES = 64 << 20
# apt compares the free space before it writes; other programs report the error of the kernel.
NO_SPACE = re.compile("enough free space|No space left on device")
# A first `./lab test` fills this much.
NEEDED_GIB = 16


def default_path() -> Path:
    """The XDG cache folder of the lab, of the user who runs it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "sutro-lab"


def key_of(recipe: object) -> str:
    """The name of an artefact: a hash of its recipe (any JSON value, key order ignored)."""
    text = json.dumps(recipe, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_files(base: Path, names: list[str]) -> dict[str, str]:
    """Name, executable bit and content hash of each file under base; symlinks by their target."""
    digests = {}
    for name in sorted(names):
        path = base / name
        if path.is_symlink():
            digests[name] = "link:" + os.readlink(path)
        else:
            mode = "x" if os.access(path, os.X_OK) else "-"
            digests[name] = mode + hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


class Cache:
    """One cache folder, opened by one run of ./lab."""

    def __init__(self, root: Path):
        self.root = root
        self._held: list[int] = []
        try:
            (root / "locks").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LabError(
                f"no cache folder {root} ({error.strerror}): name another with --cache DIR"
            ) from error
        if not os.access(root, os.W_OK):
            raise LabError(
                f"the cache folder {root} is not writable; name another with --cache DIR"
            )
        self._lock("cache", fcntl.LOCK_SH, "./lab clean to finish")
        self.run_dir = self._make_run_dir()

    def artefact(self, kind: str, recipe: object, what: str, build: Callable[[Path], None]) -> Path:
        """The folder that build(folder) makes from this recipe; built now if it is missing."""
        key = key_of(recipe)
        final = self.root / kind / key
        lock = f"{kind}-{key}"
        other = f"another run ({what})"
        fd = self._lock(lock, fcntl.LOCK_SH, other)
        while not final.exists():
            fcntl.flock(fd, fcntl.LOCK_UN)
            if self._try_exclusive(fd):
                try:
                    if not final.exists():
                        self._build(final, what, build)
                finally:
                    fcntl.flock(fd, fcntl.LOCK_UN)
            # Until another build is over, not until the artefact is unused: another stage of this
            # run may use it until the end of the run. Between the locks it may have been pruned.
            self._wait(fd, fcntl.LOCK_SH, other)
        os.utime(self.root / "locks" / lock)
        self._prune(kind)
        return final

    def existing(self, kind: str, recipe: object) -> Path | None:
        """The folder of an artefact if it has been built, kept from removal until the end."""
        key = key_of(recipe)
        if not (self.root / kind / key).exists():
            return None
        fd = self._lock(f"{kind}-{key}", fcntl.LOCK_SH, f"another run ({kind})")
        final = self.root / kind / key
        if final.exists():
            return final
        self._held.remove(fd)
        os.close(fd)
        return None

    @contextlib.contextmanager
    def locked(self, name: str, other: str) -> Iterator[None]:
        """Hold an exclusive lock of this cache; `other` names its holder in the progress line."""
        fd = self._lock(name, fcntl.LOCK_EX, other)
        try:
            yield
        finally:
            self._held.remove(fd)
            os.close(fd)

    def close(self) -> None:
        """Let go of every artefact; the end of the process does the same."""
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def clean(self) -> None:
        """Remove the whole folder, once no other run uses it."""
        self.close()
        self._lock("cache", fcntl.LOCK_EX, "other runs that use this cache")
        remove_tree(self.root)

    def _build(self, final: Path, what: str, build: Callable[[Path], None]) -> None:
        part = final.with_name(final.name + ".part")
        if part.exists():
            remove_tree(part)
        part.mkdir(parents=True)
        step(what)
        try:
            with self.names_full_disk(what):
                build(part)
            part.rename(final)
        except BaseException:
            # Ctrl-C and SIGTERM as well: gigabytes of remains are of no use.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                remove_tree(part)
            raise

    @contextlib.contextmanager
    def names_full_disk(self, what: str) -> Iterator[None]:
        """Report a failure of the body as a full disk, if that is its cause."""
        try:
            yield
        except (LabError, OSError) as error:
            log = getattr(error, "log", None)
            complaint = NO_SPACE.search("\n".join(tail(log))) if log else None
            if not complaint and shutil.disk_usage(self.root).free >= FULL_BYTES:
                raise
            raise LabError(
                f"{what}: the disk of {self.root} is full; free {NEEDED_GIB} GiB there, or "
                "name a folder on another disk with --cache DIR",
                log,
            ) from error

    def _prune(self, kind: str) -> None:
        """Remove unused folders: unfinished builds, and all but the newest KEEP of this kind."""

        def used(path: Path) -> float:
            try:
                return (self.root / "locks" / f"{kind}-{path.name}").stat().st_mtime
            except OSError:
                return 0.0

        paths = list((self.root / kind).iterdir())
        unfinished = [path for path in paths if path.suffix == ".part"]
        finished = sorted(set(paths) - set(unfinished), key=used, reverse=True)
        for path in finished[KEEP:] + unfinished:
            lock = f"{kind}-{path.name.removesuffix('.part')}"
            fd = os.open(self.root / "locks" / lock, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.exists():  # no other run has removed it
                    remove_tree(path)
            except BlockingIOError:
                pass
            finally:
                os.close(fd)

    def _make_run_dir(self) -> Path:
        runs = self.root / "runs"
        runs.mkdir(exist_ok=True)
        for path in sorted(path for path in runs.iterdir() if not _is_live(path))[:-KEEP_RUNS]:
            # Another run may be removing it as well.
            with contextlib.suppress(FileNotFoundError):
                remove_tree(path)
        date = time.strftime("%Y%m%d-%H%M%S")
        return Path(tempfile.mkdtemp(prefix=f"{date}-", suffix=f"-{os.getpid()}", dir=runs))

    def _lock(self, name: str, mode: int, what: str) -> int:
        fd = os.open(self.root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._held.append(fd)
        self._wait(fd, mode, what)
        return fd

    @staticmethod
    def _try_exclusive(fd: int) -> bool:
        """Take the exclusive lock if no one has any; if not, pause before the next attempt."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(random.uniform(0, RETRY_S))
            return False
        return True

    @staticmethod
    def _wait(fd: int, mode: int, what: str) -> None:
        try:
            fcntl.flock(fd, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            step(f"waiting for {what}")
            fcntl.flock(fd, mode)


def _is_live(run_dir: Path) -> bool:
    return Path("/proc", run_dir.name.rsplit("-", 1)[-1]).exists()
