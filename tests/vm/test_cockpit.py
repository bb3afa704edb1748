# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of Cockpit end to end: a login to Debian's Cockpit, a browser, sutrod, and disks.

The contents and the effects of the page are compared with the daemon, systemd and the disks.
tests/page has all views and dialogs.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import browser
import pytest
from rig import bus, container, scheduler
from rig.container import DATA, Volume
from rig.shell import run, wait_for
from rig.unit import Unit, stop

ADDRESS = "http://localhost:9090"
LINK, FRAME = "a[href='/sutro']", "cockpit1:localhost/sutro"
ADMIN, READER = "anna", "ben"
PASSWORD = "water under the bridge"
# The clock of the guest has 500 million instructions in a second: 2,000 million.
FIRST_VIEW_S = 4.0
# Cockpit loads its overview after a login.
SETTLES_S = 10.0
SOON_S = 120.0
RATE_S = 20.0
# Milliseconds from the click in the menu until both tables have a row.
FIRST_VIEW = """
const [link, frame, done] = arguments;
const began = performance.now();
const row = name => `#${name} tbody tr`;
function look() {
    const found = document.getElementsByName(frame)[0]?.contentDocument;
    if (found?.querySelector(row("units")) && found.querySelector(row("guarantees")))
        done(performance.now() - began);
    else
        setTimeout(look, 20);
}
document.querySelector(link).click();
look();
"""


@dataclass
class Page(browser.Page):
    """The page inside the shell of Cockpit, on an emulated CPU, and the machine that it shows."""

    PATIENCE_S: ClassVar[float] = 240
    PAUSE_S: ClassVar[float] = 0.5

    volume: Volume
    db: Unit
    web: Unit
    user: str = ""
    first_view_s: float = 0

    def log_in(self, user: str) -> None:
        """Log in, and choose the page in the menu of Cockpit."""
        self.driver.get(ADDRESS)
        self.driver.delete_all_cookies()
        self.driver.get(ADDRESS)
        self.until(lambda: self.all("#login-button:enabled"))
        self.one("#login-user-input").send_keys(user)
        self.one("#login-password-input").send_keys(PASSWORD)
        self.one("#login-button").click()
        self.until(lambda: self.all(LINK))
        time.sleep(SETTLES_S)
        self.driver.set_script_timeout(self.PATIENCE_S)
        self.first_view_s = self.driver.execute_async_script(FIRST_VIEW, LINK, FRAME) / 1000
        self.driver.switch_to.frame(FRAME)
        self.user = user

    def fill_weight(self, unit: Unit, weight: str) -> None:
        """Fill the dialog of a weight."""
        self.click(f"#units button[aria-label^='Weight of {unit.unit}']")
        self.fill("weight", weight)
        self.submit()

    def authenticate(self) -> None:
        """Answer the question of sudo."""
        self.until(lambda: self.all("#password"))
        self.one("#password").send_keys(PASSWORD)
        self.submit()

    def confirm(self) -> None:
        """Wait until the dialog is closed; the first change of a session requests the password."""
        self.until(lambda: self.closed() or self.all("#password"))
        if not self.closed():
            self.authenticate()
            self.until(self.closed)

    def refused(self, *parts: str) -> None:
        """Wait until the alert of the dialog has these texts."""
        alert = "#dialog [role=alert]"
        self.until(lambda: all(part in self.text(alert) for part in parts))

    def share(self, unit: Unit) -> float:
        """The received share of a unit on the volume, in percent."""
        row = self.row("units", unit.unit, self.volume.node)
        return float(row[4].split()[0]) if row and "%" in row[4] else 0


@contextmanager
def readers() -> Iterator[list[Unit]]:
    """Two units that read the volume; the first one has a floor."""
    jobs = {"db": container.job(f"{DATA}/file", 1), "web": container.job(f"{DATA}/file", 2)}
    units = [Unit(name, job, weight=100) for name, job in jobs.items()]
    try:
        for unit in units:
            unit.start()
        bus.set_policy(units[0].unit, ReadBandwidthMin=f"{DATA} 1M")
        container.reached(units[0].cgroup, "ReadBandwidthMin", "held")
        yield units
    finally:
        stop(units)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A volume with readers, two users, one of them an administrator, and a browser."""
    for user, groups in ((ADMIN, "sudo"), (READER, "")):
        run("useradd", "--create-home", "--shell=/bin/bash", f"--groups={groups}", user)
        run("chpasswd", stdin=f"{user}:{PASSWORD}\n")
    run("systemctl", "start", "cockpit.socket")
    profile = tmp_path_factory.mktemp("chromium")
    with (
        container.volume() as volume,
        readers() as (db, web),
        browser.chromium(profile) as driver,
    ):
        yield Page(driver, volume, db, web)


@pytest.fixture
def page_of(machine: Page) -> Callable[[str], Page]:
    """The page in the session of a user, who logs in if the session is another one."""

    def page_of(user: str) -> Page:
        if machine.user != user:
            machine.log_in(user)
        return machine

    return page_of


PageOf = Callable[[str], Page]


def test_first_view(page_of: PageOf, record_property) -> None:
    """Server, browser and daemon use less than one second of a CPU, which is the only one here."""
    page = page_of(ADMIN)
    record_property("first_view_s", round(page.first_view_s, 3))
    assert page.first_view_s < FIRST_VIEW_S
    assert [line for line in page.complaints() if "sutro" in line] == []


def test_state_is_that_of_the_machine(page_of: PageOf) -> None:
    page = page_of(ADMIN)
    for unit in (page.db, page.web):
        page.until(lambda u=unit: page.row("units", u.unit, page.volume.node, "100", "50.0 %"))
        page.until(lambda u=unit: 45 < page.share(u) < 55)
    (promise,) = bus.promises(page.db.unit)
    row = (page.db.unit, "Read floor", str(DATA), "1.00 MB/s")
    page.until(lambda: page.row("guarantees", *row)[6:7] == [promise["state"]] == ["held"])
    for node in (page.volume.node, *(disk.node for disk in page.volume.disks)):
        assert node in page.text("#stacks")


def test_weight_divides_the_disks(page_of: PageOf) -> None:
    page = page_of(ADMIN)
    assert "limited access" in page.text("#daemon")
    page.fill_weight(page.web, "300")
    page.confirm()
    page.until(lambda: "limited access" not in page.text("#daemon"))
    assert page.web.show("IOWeight") == {"IOWeight": "300"}
    container.becomes(page.web.cgroup, 300)
    page.until(lambda: page.row("units", page.web.unit, page.volume.node, "300", "75.0 %"))
    assert page.volume.ratio(page.web.cgroup, page.db.cgroup) == pytest.approx(3, rel=0.05)
    page.until(lambda: 70 < page.share(page.web) < 80)


def test_guarantee_is_kept(page_of: PageOf) -> None:
    page = page_of(ADMIN)
    cgroup, disks = page.db.cgroup, page.volume
    page.edit(page.db.unit, "Read floor")
    page.fill("value", "6M")
    page.submit()
    page.confirm()
    (stated,) = container.stated(page.db.unit)
    assert (stated["key"], stated["value"]) == ("ReadBandwidthMin", f"{DATA} 6M")
    wanted = {"ReadBandwidthMin": (6e6, "held")}
    wait_for(lambda: container.promises(cgroup) == wanted, "a floor of 6 MB/s", SOON_S, 1)
    page.until(lambda: page.row("guarantees", page.db.unit, "Read floor", str(DATA), "6.00 MB/s"))
    before, began_s = disks.read_bytes(cgroup), time.monotonic()
    time.sleep(RATE_S)
    rate = (disks.read_bytes(cgroup) - before) / (time.monotonic() - began_s)
    assert rate > 0.95 * 6e6


def test_disks_are_released_and_used(page_of: PageOf) -> None:
    page = page_of(ADMIN)
    names = [disk.name for disk in page.volume.disks]
    for button, expected in (("Release", False), ("Use sutro for", True)):
        page.click(f"button[aria-label='{button} {page.volume.node}']")
        page.submit()
        page.confirm()
        assert [scheduler.current(name) == "sutro" for name in names] == 2 * [expected]


def test_daemon_that_stops_and_starts(page_of: PageOf) -> None:
    page = page_of(ADMIN)
    run("systemctl", "stop", "sutrod.service")
    page.until(lambda: "sutrod is not running" in page.text("#alerts"))
    assert "systemctl start sutrod" in page.text("#alerts")
    assert page.rows("units")
    run("systemctl", "start", "sutrod.service")
    page.until(lambda: not page.text("#alerts") and page.share(page.db) and page.share(page.web))
    page.until(lambda: page.row("guarantees", page.db.unit, "Read floor"))


def test_user_without_rights(page_of: PageOf) -> None:
    """A user who may not use sudo sees everything; each change is refused with the reason."""
    page = page_of(READER)
    page.until(lambda: page.share(page.db) and page.share(page.web))
    before = page.web.show("IOWeight"), bus.promises(page.db.unit)[0]["value"]
    page.fill_weight(page.web, "50")
    page.refused("does not permit")
    page.authenticate()
    page.refused("No administrative access", f"{READER} is not in the sudoers file")
    page.click("#dialog button.link")
    page.add(page.db.unit, "ReadBandwidthMin", str(DATA), "2M")
    page.refused("sutrod does not permit this")
    assert (page.web.show("IOWeight"), bus.promises(page.db.unit)[0]["value"]) == before
