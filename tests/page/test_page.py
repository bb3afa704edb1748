# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page in a browser: it shows the state of the daemon, and its buttons change that."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from archive import Archives
from conftest import NARROW, PAGE, PASSWORD, WIDE, Page
from fakemachine import Bus, wait_until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

AXE = Path(os.environ["SUTRO_AXE"])
FIRST_VIEW_BYTES = 300_000
SERIOUS = ("serious", "critical")
ABOUT = {
    "ReadBandwidthMin": "Read floor",
    "WriteBandwidthMin": "Write floor",
    "ReadIOPSMin": "Read IOPS floor",
    "WriteIOPSMin": "Write IOPS floor",
    "ReadBandwidthMax": "Read limit",
    "LatencyTarget": "Read latency P95",
}
DB = "/dev/vg0/db"


def test_first_view_is_small_and_local(page: Page, record_property) -> None:
    page.requests()
    page.driver.execute_cdp_cmd("Network.enable", {})
    page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    page.open()
    record_property("first_view_s", round(page.first_view_s, 3))
    events = page.requests()
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    outside = [url for url in urls if not url.startswith((page.address, "data:", "about:"))]
    assert any(url.endswith("/app.js") for url in urls) and outside == []
    transferred = sum(
        event["params"]["encodedDataLength"]
        for event in events
        if event["method"] == "Network.loadingFinished"
    )
    record_property("first_view_bytes", transferred)
    assert 10_000 < transferred <= FIRST_VIEW_BYTES
    assert page.complaints() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_axe_finds_nothing_serious(page: Page, size: tuple[int, int], dark: bool) -> None:
    """axe-core on the page, with the drawer, and with a dialog."""
    page.open(size, dark=dark)
    page.driver.execute_script(AXE.read_text())
    found = axe(page)
    page.click("#units button[data-action=explain]")
    page.until(lambda: "Weight in systemd" in page.text("#explain"))
    found += axe(page)
    page.click("#explain button[data-action=close]")
    page.click("button[data-action=edit]")
    assert found + axe(page) == []


def axe(page: Page, *, load: bool = False) -> list[str]:
    """The serious findings on the page as it is, a line each."""
    if load:
        page.driver.execute_script(AXE.read_text())
    script = "const done = arguments[0]; axe.run().then(found => done(found.violations))"
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in page.driver.execute_async_script(script)
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("width", [320, 420, 768, 1024, 1440])
def test_no_width_scrolls_sideways(page: Page, width: int) -> None:
    page.open((width, 900))
    page.click("#units button[data-action=explain]")
    page.until(lambda: "Weight in systemd" in page.text("#explain"))
    script = "return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
    assert page.driver.execute_script(script) == 0


def test_units_are_those_of_the_daemon(page: Page) -> None:
    page.open()
    units = page.sutrod.call("ListUnits")
    usage = page.sutrod.call("ListUsage")
    wanted = {str(row["unit"]) for row in usage if row["cgroup"] != "/"}
    wanted |= {str(unit["unit"]) for unit in units if unit["weight_set"]}
    page.until(lambda: {row[0] for row in page.rows("units")} == wanted)
    assert page.row("units", "postgresql.service", DB)[2] == "300"
    assert page.row("units", "nginx.service", DB)[2] == "100"
    shares = [row[4] for row in page.rows("units") if row[1] == DB]
    assert len(shares) == 3 and all(share.endswith(" %") for share in shares)
    assert page.one(".units .sparkline").get_attribute("aria-label").startswith("Share of device")


def test_inactive_units_filter_and_order(page: Page) -> None:
    page.open()
    assert not page.row("units", "cron.service")
    page.click("#all-units")
    page.until(lambda: page.row("units", "cron.service"))
    page.one("#filter").send_keys("vg0/db")
    page.until(lambda: {row[1] for row in page.rows("units")} == {DB})
    page.click("button[data-sort=read]")

    def rates() -> list[float]:
        return [float(row[7].split()[0]) for row in page.rows("units")]

    page.until(lambda: len(rates()) == 3 and rates() == sorted(rates(), reverse=True))
    assert page.one("th[aria-sort=descending]").text.startswith("Read")


def test_guarantees_have_the_states_and_causes_of_the_daemon(page: Page) -> None:
    page.open()

    def shown() -> dict[tuple[str, ...], str]:
        return {tuple(row[:3]): row[6] for row in page.rows("guarantees") if len(row) > 1}

    def wanted() -> dict[tuple[str, ...], str]:
        return {
            (str(p["unit"]), ABOUT[p["key"]], str(p["path"])): str(p["state"])
            for p in page.sutrod.call("ListPromises")
        }

    page.until(lambda: shown() == wanted())
    assert len(shown()) == 7
    page.until(lambda: "sutro-stacking-dkms, whose drivers" in page.text("#guarantees"))
    # The history of the daemon is there at once.
    points = page.one(".guarantees .sparkline .line").get_attribute("points")
    assert len(points.split()) > 20


def test_weight_is_set_and_taken_back(page: Page) -> None:
    page.open()
    page.click("button[aria-label^='Weight of nginx.service']")
    page.fill("weight", "0")
    page.submit()
    page.until(lambda: '"0" is no weight' in page.text("#dialog [role=alert]"))
    page.fill("weight", "250")
    page.submit()
    page.until(page.closed)
    page.until(lambda: page.row("units", "nginx.service", DB, "250"))
    unit = {u["unit"]: u for u in page.sutrod.call("ListUnits")}["nginx.service"]
    assert (unit["weight"], unit["weight_set"]) == (250, True)
    page.click("button[aria-label^='Weight of nginx.service']")
    page.fill("weight", "")
    page.submit()
    page.until(lambda: page.row("units", "nginx.service", DB, "100"))


def test_guarantee_is_added_changed_and_removed(page: Page) -> None:
    page.open()
    page.add("backup", "WriteBandwidthMin", "/dev/vg0/log", "5 bananas")
    page.until(lambda: "bananas" in page.text("#dialog [role=alert]"))
    page.fill("value", "2M")
    page.submit()
    page.until(page.closed)
    row = ("backup.service", "Write floor", "/dev/vg0/log")
    page.until(lambda: page.row("guarantees", *row, "2.00 MB/s"))
    page.edit("backup.service", "Write floor")
    assert page.one("#field-value").get_attribute("value") == "2M"
    page.fill("value", "1500K")
    page.submit()
    page.until(lambda: page.row("guarantees", *row, "1.50 MB/s"))
    page.until(page.closed)
    page.edit("backup.service", "Write floor")
    page.click("#dialog button.danger")
    page.until(lambda: page.closed() and not page.row("guarantees", *row))
    assert page.complaints() == []


def test_capacity_is_shown_and_exceeded(page: Page) -> None:
    """With Admission=warn the floor is set, and the dialog stays open with a warning."""
    text = "[Capacity]\nDevice=/dev/vg0/db read=150M write=20M\n"
    page.sutrod.machine.write("/etc/sutro/sutrod.conf.d/50-capacity.conf", text)
    page.sutrod.call("Reload")
    page.open()
    promised = "Read floors: 140 MB/s of 150 MB/s promised, 10.0 MB/s left"
    page.until(lambda: promised in page.text("#stacks"))
    assert "Write floors: 1.00 MB/s of 20.0 MB/s promised, 19.0 MB/s left" in page.text("#stacks")
    page.add("backup", "ReadBandwidthMin", DB, "20M")
    warning = f"{DB}: read floors of 160 MB/s are promised, more than the capacity of 150 MB/s"
    page.until(lambda: warning in page.text("#dialog [role=alert]"))
    assert axe(page, load=True) == []
    page.click("#dialog button.primary")
    page.until(page.closed)
    page.until(lambda: page.row("guarantees", "backup.service", "Read floor", DB))
    page.until(lambda: "160 MB/s of 150 MB/s promised, none left" in page.text("#stacks"))
    assert page.complaints() == []


def test_mistakes_in_a_new_guarantee_are_shown(page: Page) -> None:
    """Nothing is set for a unit without a cgroup, and for a path out of reach."""
    page.open()
    page.add("db.timer", "WriteBandwidthMin", "/dev/vg0/log", "2M")
    page.until(lambda: 'unit "db.timer" has no cgroup' in page.text("#dialog [role=alert]"))
    page.fill("unit", "backups")
    page.fill("path", "/proc")
    page.submit()
    page.until(lambda: '"/proc" is out of reach of sutrod' in page.text("#dialog [role=alert]"))
    page.fill("path", "/srv/no-such-folder")
    page.submit()
    page.until(lambda: "it does not exist" in page.text("#dialog [role=alert]"))
    page.fill("path", "/dev/vg0/log")
    page.submit()
    page.until(lambda: 'There is no unit "backups.service"' in page.text("#dialog [role=alert]"))
    assert "backups" not in str(page.sutrod.call("ListPromises"))
    page.submit()
    page.until(page.closed)
    policy = page.sutrod.call("GetPolicy", "backups.service")
    assert [str(one["value"]) for one in policy] == ["/dev/vg0/log 2M"]
    assert page.complaints() == []


def test_refusal_of_polkit_is_shown(page: Page, bus: Bus) -> None:
    page.open()
    bus.allow(False)
    page.add("backup", "WriteBandwidthMin", "/dev/vg0/log", "2M")
    page.until(lambda: "does not permit this" in page.text("#dialog [role=alert]"))
    page.until(lambda: "administrative access" in page.text("#dialog"))


def test_password_gives_administrative_access(page: Page, bus: Bus) -> None:
    """The bridge of Cockpit requests the password; then the same action is done."""
    page.open()
    assert "limited access" in page.text("#daemon")
    bus.allow(False)
    page.add("backup", "WriteBandwidthMin", "/dev/vg0/log", "2M")
    page.until(lambda: page.all("#password"))
    assert "does not permit this" in page.text("#dialog [role=alert]")
    page.one("#password").send_keys("wrong")
    page.submit()
    page.until(lambda: "Sorry, try again" in page.text("#dialog"))
    bus.allow(True)
    page.one("#password").send_keys(PASSWORD)
    page.submit()
    page.until(page.closed)
    page.until(lambda: page.row("guarantees", "backup.service", "Write floor"))
    page.until(lambda: "limited access" not in page.text("#daemon"))


def test_disks_are_released_and_used(page: Page) -> None:
    page.open()
    machine = page.sutrod.machine
    page.click("button[aria-label='Release /dev/vg0/db']")
    assert "/dev/nvme0n1, now sutro" in page.text("#dialog")
    assert "carry /dev/vg0/log" in page.text("#dialog")
    page.submit()
    page.until(page.closed)
    wait_until(lambda: machine.scheduler("nvme0n1") == "none" == machine.scheduler("nvme1n1"))
    page.click("button[aria-label='Use sutro for /dev/vg0/db']")
    page.submit()
    page.until(page.closed)
    wait_until(lambda: machine.scheduler("nvme0n1") == "sutro" == machine.scheduler("nvme1n1"))
    page.until(lambda: page.all("button[aria-label='Release /dev/vg0/db']"))


def test_drawer_is_opened_and_closed_by_keyboard(page: Page) -> None:
    page.open()
    selector = "#units button[data-unit='nginx.service']"
    page.one(selector).send_keys(Keys.ENTER)
    page.until(lambda: "Weight in systemd" in page.text("#explain"))
    active = page.driver.switch_to.active_element
    assert active.get_attribute("id") == "explain"
    text = page.text("#explain")
    assert "/dev/nvme0n1 is a leaf: disk with scheduler sutro" in text
    assert "ReadBandwidthMin=/srv 80M" in text
    page.until(lambda: "PCP has no archive" in page.text("#explain"))
    active.send_keys(Keys.ESCAPE)
    page.until(lambda: not page.one("#explain").is_displayed())
    assert page.driver.switch_to.active_element == page.one(selector)


def test_history_of_hours(page: Page, archives: Archives) -> None:
    """pmlogger records what the page reads: bytes of a cgroup on the leaves, each minute."""
    minute = 60 * 10**6
    volume, disk = "254:0 dm-0", "259:0 nvme0n1"
    rates = {"nginx": {volume: (2 * minute, minute // 2), disk: (minute, 0)}}
    rates |= {"backup": {volume: (7 * minute, 0)}}
    archives.record({f"/system.slice/{name}.service": one for name, one in rates.items()})
    page.open()
    page.click("#units button[data-unit='nginx.service']")
    shown = re.compile(r"Bytes per second by minute: ([0-9.]+) MB/s to ([0-9.]+) MB/s")
    page.until(lambda: shown.search(page.text("#explain")))
    for value in shown.search(page.text("#explain")).groups():
        assert float(value) == pytest.approx(2.5, rel=0.05)
    archives.record_others()
    page.click("#explain button[aria-label='Close']")
    page.click("#units button[data-unit='nginx.service']")
    page.until(lambda: "PCP has an archive without cgroup.io.stat" in page.text("#explain"))


def test_samples_go_on_while_the_history_is_read(page: Page) -> None:
    """Archives of weeks, or on a file system that hangs, take a while."""
    page.open()
    page.driver.execute_script("""const channel = cockpit.channel;
        cockpit.channel = options => options.payload === "metrics1"
            ? { addEventListener: () => null } : channel(options);""")
    page.click("#units button[data-unit='nginx.service']")
    page.until(lambda: "Weight in systemd" in page.text("#explain"))

    def lines() -> str:
        return "".join(one.get_attribute("points") for one in page.all(".units .sparkline .line"))

    # Each sample moves the lines. The last one may have been under way.
    for _ in range(3):
        before = lines()
        page.until(lambda before=before: lines() != before)
    assert "Reading" in page.text("#explain")
    assert page.complaints() == []


def test_focus_and_text_survive_samples(page: Page) -> None:
    page.open()
    page.one("#filter").send_keys("nginx")
    page.until(lambda: {row[0] for row in page.rows("units")} == {"nginx.service"})
    field = page.one("#filter")

    def line() -> str:
        return "".join(one.get_attribute("points") for one in page.all(".units .sparkline .line"))

    before = page.until(line)
    page.until(lambda: line() != before)
    assert page.driver.switch_to.active_element == field
    assert field.get_attribute("value") == "nginx"


def test_daemon_that_ends_and_starts_again(page: Page) -> None:
    page.open()
    page.sutrod.stop()
    page.until(lambda: "sutrod is not running" in page.text("#alerts"))
    assert "systemctl start sutrod" in page.text("#alerts")
    page.sutrod.start()
    page.until(lambda: not page.text("#alerts") and page.rows("units"))


def test_daemon_that_does_not_answer(page: Page) -> None:
    """The states on the page are old then, and the page shows that."""
    page.open()
    page.sutrod.process.send_signal(signal.SIGSTOP)
    try:
        page.until(lambda: "sutrod does not answer" in page.text("#alerts"))
        assert "no answer" in page.text("#daemon")
        assert "systemctl status sutrod" in page.text("#alerts")
    finally:
        page.sutrod.process.send_signal(signal.SIGCONT)
    page.until(lambda: not page.text("#alerts") and "running" in page.text("#daemon"))


def test_mistake_in_a_policy_is_shown(page: Page) -> None:
    page.open()
    text = "[Match]\nUnit=cron.service\n[X-Sutro]\nReadBandwidthMin=/srv lots\n"
    page.sutrod.machine.write("/etc/sutro/policy.d/cron.policy", text)
    page.sutrod.call("ReloadPolicies")
    page.until(lambda: "Mistake in a policy" in page.text("#alerts"))
    assert "cron.policy:4" in page.text("#alerts")


def test_names_are_text(page: Page) -> None:
    """The name of a cgroup may be any text; it is no part of the document."""
    page.open()
    name = "<img src=x onerror=alert(1)>"
    page.sutrod.machine.cgroup(f"/{name}")
    stat = f"/sys/fs/cgroup/{name}/io.sutro.stat"
    began_s = time.monotonic()

    def reads() -> bool:
        passed_s = time.monotonic() - began_s
        line = f"259:0 rbytes={int(passed_s * 1e6)} wbytes=0 rios={int(passed_s * 100)} wios=0 "
        line += f"time_ns={int(passed_s * 1e8)} wait_ns=0 idle_ns=0 queued=0 rlat=0\n"
        page.sutrod.machine.write(stat, line)
        return bool(page.row("units", f"/{name}"))

    page.until(reads)
    assert page.all("img") == [] and page.complaints() == []


def test_style_follows_the_shell(page: Page) -> None:
    page.open()
    dark = "return getComputedStyle(document.documentElement).colorScheme"
    assert page.driver.execute_script(dark) == "light"
    page.driver.execute_script("localStorage.setItem('shell:style', 'dark')")
    page.driver.get(page.address + PAGE)
    page.until(lambda: page.driver.execute_script(dark) == "dark")
    event = "window.dispatchEvent(new CustomEvent('cockpit-style', {detail: {style: 'light'}}))"
    page.driver.execute_script(event)
    assert page.driver.execute_script(dark) == "light"
    page.driver.execute_script("localStorage.removeItem('shell:style')")


def test_all_controls_have_names(page: Page) -> None:
    """Each button and field has a name for screen readers, each table a caption."""
    page.open()
    unnamed = [
        element.get_attribute("outerHTML")
        for element in page.driver.find_elements(By.CSS_SELECTOR, "button, input, table")
        if not element.accessible_name
    ]
    assert unnamed == []
