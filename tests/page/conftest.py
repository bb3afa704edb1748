# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page in headless Chromium, served by the web server and the bridge of Cockpit itself, with
the real sutrod on a fake machine (world.py). No part of Cockpit or of the page is replaced: systemd
and polkit are mocks on a private system bus (fakemachine.py).

    SUTRO_PAGE_SCREENSHOTS  folder for the pictures of the documentation
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import browser
import pytest
import world
from archive import Archives
from fakemachine import TOP, Bus, Machine, Systemd, wait_until
from livedaemon import LiveDaemon
from selenium import webdriver

COCKPIT_WS = "/usr/lib/cockpit/cockpit-ws"
PAGE = "/cockpit/@localhost/sutro/index.html"
# The clock of the daemon, compared with that of the browser.
RATE = 4
# Of the daemon's clock, after which floors and targets have their states.
SETTLES_S = 40
WIDE, NARROW = (1440, 1200), (420, 900)
# The way to administrative access: a program that requests the password as sudo does.
PASSWORD = "water"
SUDO = f"""#!/bin/sh
for try in 1 2 3; do
	[ "$("$SUDO_ASKPASS" "[sudo] password:")" = {PASSWORD} ] && exec "$@"
	echo "Sorry, try again." >&2
done
exit 1
"""


@dataclass
class Page(browser.Page):
    """The page in a browser, with the daemon of a test."""

    address: str
    sutrod: LiveDaemon
    first_view_s: float = 0.0

    def open(self, size: tuple[int, int] = WIDE, *, dark: bool = False) -> None:
        """Load the page, and wait for its first sample."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.complaints()  # of the tests before
        began_s = time.monotonic()
        self.driver.get(self.address + PAGE)
        self.until(lambda: self.rows("units") and self.rows("guarantees"))
        self.first_view_s = time.monotonic() - began_s
        self.until(lambda: self.all(".units .bar"))

    def requests(self) -> list[dict[str, Any]]:
        """Events of the network since the last call."""
        found = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [event for event in found if event["method"].startswith("Network.")]


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests."""
    with browser.chromium(tmp_path_factory.mktemp("chromium"), "performance") as driver:
        yield driver


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def served(directory: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a Cockpit that has the page; its session is that of the user of the tests."""
    packages = directory / "data/cockpit"
    shutil.copytree(TOP / "cockpit", packages / "sutro")
    (packages / "access").mkdir()
    sudo = directory / "sudo"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    bridge = {
        "privileged": True,
        "environ": ["SUDO_ASKPASS=${libexecdir}/cockpit-askpass"],
        "spawn": [str(sudo), "cockpit-bridge", "--privileged"],
    }
    (packages / "access/manifest.json").write_text(json.dumps({"bridges": [bridge]}))
    port = _free_port()
    folders = {
        "HOME": str(directory),
        "XDG_DATA_HOME": str(directory / "data"),
        "PATH": f"{TOP / 'policies'}:{os.environ['PATH']}",
    }
    command = [COCKPIT_WS, "--no-tls", "--address=127.0.0.1", f"--port={port}"]
    with (directory / "cockpit.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--local-session=cockpit-bridge"],
            env=os.environ | environment | folders, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def sutrod(bus: Bus, tmp_path: Path) -> Iterator[LiveDaemon]:
    """A sutrod that keeps guarantees on the machine of world.py."""
    bus.allow(True)
    machine = Machine(tmp_path.resolve() / "machine")
    world.build(machine)
    systemd = Systemd(bus, machine)
    world.start_units(systemd)
    load = world.Load(machine)
    daemon = LiveDaemon(bus, machine, tmp_path, serve=load.serve, rate=RATE)
    daemon.thread.start()
    daemon.start()
    daemon.call("UseDevices", ["/dev/nvme0n1", "/dev/nvme1n1"])
    daemon.elapse(SETTLES_S)
    yield daemon
    daemon.end()


@pytest.fixture
def archives(tmp_path: Path) -> Archives:
    """The folder of PCP that the bridge reads, without an archive."""
    return Archives(tmp_path / "pcp")


@pytest.fixture
def page(
    driver: webdriver.Chrome, sutrod: LiveDaemon, archives: Archives, tmp_path: Path
) -> Iterator[Page]:
    """The page, not yet open."""
    with served(tmp_path, archives.environment) as address:
        yield Page(driver, address, sutrod)
        driver.get("about:blank")
