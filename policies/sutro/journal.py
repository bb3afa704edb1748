# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes of state that the journal identifies, as those of sutrod.

Each has a message id, and an entry in dist/sutro.catalog that "journalctl -x" shows with it. The
message goes to systemd-journald in its native protocol:

    MESSAGE_ID, a newline, the size of the value in 8 bytes, the value, a newline

Standard error of a program that slurmd runs is no journal: the text is also a line in the log of
slurmd.
"""

import os
import socket
import struct
import sys

from .program import log

SOCKET = "/run/systemd/journal/socket"
WARNING, NOTICE = 4, 5

JOB_REFUSED = "6b7fc12528364cf1b444e5b274b94f82"
NODE_DRAINED = "aedf8c1b781c4244bde366a98f76db7b"


def _stderr_is_journal() -> bool:
    """JOURNAL_STREAM has the device and the inode number of the stream, see systemd.exec(5)."""
    try:
        st = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{st.st_dev}:{st.st_ino}"


def _send(fields: dict[str, str]) -> bool:
    """Send a message; False without a journal."""
    message = b""
    for name, text in fields.items():
        value = text.encode(errors="replace")
        message += name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            # A journal that takes no messages now must not delay a job.
            sender.setblocking(False)
            sender.sendto(message, SOCKET)
    except OSError:
        return False
    return True


def log_event(identifier: str, priority: int, text: str, fields: dict[str, str]) -> None:
    """Log a change of state; `fields` are those that its entry in the catalog may name."""
    first = {
        "MESSAGE_ID": identifier,
        "PRIORITY": str(priority),
        "SYSLOG_IDENTIFIER": os.path.basename(sys.argv[0]),
        "MESSAGE": text,
    }
    if not _send(first | fields) or not _stderr_is_journal():
        log(text)
