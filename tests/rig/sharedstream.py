# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tasks that read one stream together: each takes the next piece that no other task has taken.

The threads of an NFS server, or of a parallel bulkstat, read in this way. Run as a program:
`sharedstream.py DEVICE TASKS PIECE_BYTES SECONDS` prints pieces per second.
"""

import mmap
import multiprocessing
import os
import sys
import time


def read_pieces(device: str, piece_bytes: int, next_piece, end_s: float) -> None:
    """One task."""
    file = os.open(device, os.O_RDONLY | os.O_DIRECT)
    pieces = os.lseek(file, 0, os.SEEK_END) // piece_bytes
    page = mmap.mmap(-1, piece_bytes)
    while time.monotonic() < end_s:
        with next_piece.get_lock():
            mine = next_piece.value
            next_piece.value = mine + 1
        os.preadv(file, [page], mine % pieces * piece_bytes)


def main(device: str, tasks: str, piece_bytes: str, seconds: str) -> None:
    """Start the tasks, wait for their end, print the rate."""
    next_piece = multiprocessing.Value("q", 0)
    begin_s = time.monotonic()
    work = (device, int(piece_bytes), next_piece, begin_s + float(seconds))
    started = [multiprocessing.Process(target=read_pieces, args=work) for _ in range(int(tasks))]
    for task in started:
        task.start()
    for task in started:
        task.join()
    if any(task.exitcode for task in started):
        sys.exit(f"{device}: a task failed")
    print(next_piece.value / (time.monotonic() - begin_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
