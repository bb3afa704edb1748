# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-exporter: serves the metrics of sutro.metrics over HTTP, on a socket of systemd.

One connection at a time: a scrape takes milliseconds, and a request is read for 5 s at the most,
however slowly its bytes arrive. Without a scrape for 15 minutes the program ends; the socket starts
it again.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer, TCPServer
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder

from . import __version__
from .errors import SutroError
from .exposition import Text
from .metrics import CGROUPS_MOST, Ranking, Scrape, state

LISTEN = "127.0.0.1:9788"
IDLE_S = 900.0
# The first socket that systemd hands over (SD_LISTEN_FDS_START).
FIRST_FD = 3
# New objects after which the collector looks for cycles. A scrape keeps some ten thousand until its
# text is made; with the default of 2000 it is delayed by up to six searches without a result.
COLLECTED_AFTER = 100_000


class Handler(BaseHTTPRequestHandler):
    """GET /metrics, in the format that the client accepts."""

    timeout = 5.0
    server: "Server"
    server_version = f"sutro-exporter/{__version__}"

    def handle(self) -> None:
        """As in the library, whose timeout is one between two bytes."""
        limit = threading.Timer(self.timeout, self._end_of_request)
        limit.daemon = True
        limit.start()
        try:
            super().handle()
        finally:
            limit.cancel()

    def _end_of_request(self) -> None:
        """Read no more; an answer can still be sent."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def do_GET(self) -> None:
        """Send a new reading; 404 for another path."""
        if urlsplit(self.path).path != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "the metrics are at /metrics")
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        now = asyncio.run(state(self.server.ranking))
        self.server.log_failure(now.failure)
        text = self.server.texts.setdefault(content_type, Text(encode))
        body = text.of(Scrape(now))
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""


class Server(TCPServer):
    """The server on a socket that listens already; `most` cgroups, None for all of them."""

    def __init__(self, listening: socket.socket, most: int | None, idle_s: float = IDLE_S) -> None:
        # Not that of TCPServer, which makes a socket: the service may not.
        BaseServer.__init__(self, listening.getsockname(), Handler)
        self.socket = listening
        self.ranking, self.timeout, self.idle = Ranking(most), idle_s, False
        self._failure = ""
        self.texts: dict[str, Text] = {}  # by content type

    def handle_timeout(self) -> None:
        """No scrape for `idle_s` seconds: end."""
        self.idle = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a failure in one line; a client that closes the connection is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            print(f"sutro-exporter: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    def log_failure(self, failure: SutroError | None) -> None:
        """Log the reason of `sutro_up 0` once, and its end."""
        text = "; ".join(filter(None, (failure.message, failure.hint))) if failure else ""
        if text != self._failure:
            print(f"sutro-exporter: {text or 'sutrod answers again'}", file=sys.stderr, flush=True)
        self._failure = text

    def run(self) -> None:
        """Serve until there is nothing to do."""
        while not self.idle:
            self.handle_request()


def listening(address: str) -> socket.socket:
    """The socket of systemd, or a new one; OSError if the address is in use."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") == "1":
        return socket.socket(fileno=FIRST_FD)
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family)


def main(argv: list[str] | None = None) -> int:
    """The command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="sutro-exporter",
        description="Serve metrics of Sutro to Prometheus.",
        epilog="See sutro-exporter(1).",
    )
    parser.add_argument(
        "--all", action="store_true", help=f"all cgroups, not {CGROUPS_MOST} at the most"
    )
    parser.add_argument(
        "--listen", metavar="ADDRESS:PORT", default=LISTEN, help=f"without systemd ({LISTEN})"
    )
    parser.add_argument("--version", action="version", version=f"sutro-exporter {__version__}")
    args = parser.parse_args(argv)
    try:
        found = listening(args.listen)
    except (ValueError, OverflowError, TypeError):  # TypeError: a host that IDNA refuses
        parser.error(f"--listen: '{args.listen}' is no ADDRESS:PORT")
    except OSError as error:
        print(f"sutro-exporter: {args.listen}: {error.strerror}", file=sys.stderr)
        print("                name another address: --listen 127.0.0.1:PORT", file=sys.stderr)
        return 1
    gc.set_threshold(COLLECTED_AFTER)
    try:
        Server(found, None if args.all else CGROUPS_MOST).run()
    except KeyboardInterrupt:
        pass
    return 0
