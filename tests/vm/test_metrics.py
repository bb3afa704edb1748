# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian's Prometheus scrapes sutro-exporter: rules fire and resolve, and the dashboard has data.

tests/ctl/test_metrics.py has the values of the metrics.
"""

import json
import pwd
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import bus, scheduler, sutrod, without_module
from rig.cgroup import Subtree
from rig.modeldisk import ModelDisk
from rig.shell import run, wait_for
from rig.unit import Unit, fio

BUILD = Path("/mnt/build")
SHARE = Path("/usr/share/sutro-exporter")
REPORT = "/run/systemd/report/io.sutro.Status"
METRICS = "http://127.0.0.1:9788/metrics"
API = "http://127.0.0.1:9090/api/v1/"
# As in the guide, with a shorter interval.
CONFIG = f"""
global:
  scrape_interval: 5s
  evaluation_interval: 5s
rule_files:
  - {SHARE}/sutro-rules.yml
scrape_configs:
  - job_name: sutro
    static_configs:
      - targets: [127.0.0.1:9788]
"""
# A rule waits for a minute; a floor has a verdict some seconds before that.
FIRES_S = 150.0
# Up to a scrape and an evaluation.
RESOLVES_S = 60.0
PAUSE_S = 2.0
DB = "rig-db.service"
CONF = Path("/etc/sutro/sutrod.conf.d/rig.conf")
POLICY = Path("/etc/sutro/policy.d/rig-crowd.policy")
# Variables of the dashboard, as Grafana replaces them for all units.
VARIABLES = {"$instance": ".*", "$unit": ".*", "$__rate_interval": "30s"}


@pytest.fixture(scope="module", autouse=True)
def prometheus() -> Iterator[None]:
    """The package sutro-exporter is installed, and Debian's service scrapes it."""
    (package,) = BUILD.glob("sutro-exporter_*.deb")
    run("dpkg", "--install", package)
    Path("/etc/prometheus/prometheus.yml").write_text(CONFIG)
    run("promtool", "check", "config", "/etc/prometheus/prometheus.yml")
    run("systemctl", "start", "prometheus.service")
    yield
    run("systemctl", "stop", "prometheus.service")
    run("dpkg", "--purge", "sutro-exporter")


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return reply.read().decode()


def ask(path: str, **words: str) -> Any:
    """The data of an answer of Prometheus."""
    answer = json.loads(get(f"{API}{path}?{urllib.parse.urlencode(words)}"))
    assert answer["status"] == "success", answer
    return answer["data"]


def query(expression: str) -> list[dict[str, Any]]:
    return ask("query", query=expression)["result"]


def wait_for_query(expression: str, timeout_s: float = RESOLVES_S) -> list[dict[str, Any]]:
    """Wait until a query has a result."""

    def found() -> list[dict[str, Any]]:
        try:
            return query(expression)
        except OSError:  # it is not listening yet
            return []

    return wait_for(found, expression, timeout_s, PAUSE_S)


def firing(alert: str, **labels: str) -> bool:
    """The alert is firing with these labels, among others."""
    return any(
        one["state"] == "firing" and {"alertname": alert, **labels}.items() <= one["labels"].items()
        for one in ask("alerts")["alerts"]
    )


def fires(alert: str, **labels: str) -> None:
    wait_for(lambda: firing(alert, **labels), f"{alert} of {labels}", FIRES_S, PAUSE_S)


def resolves(alert: str, **labels: str) -> None:
    what = f"no {alert} of {labels}"
    wait_for(lambda: not firing(alert, **labels), what, RESOLVES_S, PAUSE_S)


@pytest.fixture
def db(leaf: ModelDisk, units: Callable[..., Unit]) -> Iterator[Unit]:
    """A unit that reads a disk with sutro; its settings are removed after the test."""
    unit = units("db", fio(leaf.node, rw="randrw", rwmixread=80, iodepth=8, bs="16k"), weight=200)
    yield unit
    bus.call("ResetPolicy", "ss", DB, "runtime")
    CONF.unlink(missing_ok=True)
    bus.call("Reload")


def test_promtool_has_no_complaint(db: Unit) -> None:
    """Of the metrics of a machine with load and a promise, and of the rules."""
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 1M")
    text = wait_for(
        lambda: "sutro_promise_broken{" in (text := get(METRICS)) and text, "metrics", 30
    )
    assert run("promtool", "check", "metrics", stdin=text) == ""
    run("promtool", "check", "rules", SHARE / "sutro-rules.yml")


def test_service_has_no_rights(daemon: None) -> None:
    """A scrape starts it as the user of sysusers.d, without capabilities and network."""
    assert "sutro_up 1.0" in get(METRICS)
    pid = run("systemctl", "show", "--property=MainPID", "--value", "sutro-exporter.service")
    status = Path(f"/proc/{int(pid)}/status").read_text()
    (uid,) = re.findall(r"^Uid:\s+(\d+)", status, re.M)
    assert int(uid) == pwd.getpwnam("sutro-exporter").pw_uid != 0
    assert re.search(r"^CapEff:\s+0+$", status, re.M)
    own, other = (Path(f"/proc/{one}/ns/net").readlink() for one in (int(pid), "self"))
    assert own != other


def test_metrics_of_systemd(db: Unit) -> None:
    """The socket is where systemd-report(1) looks for it, and has the guarantee of a unit."""
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 1M")
    call = ("varlinkctl", "--more", "--json=short", "call", REPORT, "io.systemd.Metrics.List", "{}")
    text = wait_for(lambda: DB in (text := run(*call)) and text, "metrics", 30)
    assert '"io.sutro.Status.GuaranteeReceived"' in text


def cost_for_the_daemon_s(promises: int) -> float:
    """CPU time of sutrod for a scrape."""
    clock = (~sutrod.main_pid() << 3) | 2  # clock_getcpuclockid(3)
    began_s = time.clock_gettime(clock)
    text = run("sutro-exporter", "--once")
    cost_s = time.clock_gettime(clock) - began_s
    assert "\nsutro_up 1.0\n" in text
    assert text.count("\nsutro_promise_state{") == promises
    return cost_s


def test_cost_for_the_daemon(leaf: ModelDisk) -> None:
    """A scrape of 100 cgroups with a promise each: less than 1.5 million instructions of sutrod.

    The clock of the guest has 500 million in a second. The least of ten scrapes has no step of the
    control law in it.
    """
    with Subtree("crowd") as crowd:
        for number in range(100):
            crowd.child(f"job{number}")
        text = f"[Match]\nCgroup={crowd.cgroup}/job*\n[X-Sutro]\nReadBandwidthMin={leaf.node} 10K\n"
        POLICY.write_text(text)
        try:
            bus.call("ReloadPolicies")
            wait_for(lambda: len(bus.promises()) == 100, "100 promises", 60)
            costs_s = [cost_for_the_daemon_s(100) for _ in range(10)]
        finally:
            POLICY.unlink()
            bus.call("ReloadPolicies")
    assert min(costs_s) * 500e6 < 1.5e6


def test_broken_promise(db: Unit) -> None:
    """More than the disk has: the alert fires with the unit, and resolves without the floor."""
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 60M")
    fires("SutroPromiseBroken", unit=DB, key="ReadBandwidthMin", path="/dev/ssd0")
    bus.set_policy(DB, ReadBandwidthMin="")
    resolves("SutroPromiseBroken")


def test_lost_weights(leaf: ModelDisk) -> None:
    """A scheduler that is switched by hand fires an alert with the leaf, which resolves later."""
    wait_for_query('sutro_leaf_weighted{leaf="/dev/ssd0"} == 1')
    scheduler.select(leaf.name, "none")
    fires("SutroWeightsLost", leaf="/dev/ssd0")
    bus.use(leaf.node)
    resolves("SutroWeightsLost")


def test_daemon_down(db: Unit) -> None:
    """Counters go on while the daemon is down; the alert fires, and resolves."""
    read = f'sutro_cgroup_read_bytes_total{{unit="{DB}"}}'
    wait_for_query(f"rate({read}[30s]) > 0")
    run("systemctl", "stop", "sutrod.service")
    stopped_s = time.time()
    fires("SutroDaemonDown")
    # The leaf keeps its scheduler, and the elevator its counts.
    assert query(f"rate({read}[30s]) > 0"), time.time() - stopped_s
    run("systemctl", "start", "sutrod.service")
    resolves("SutroDaemonDown")


def test_overcommitted(db: Unit) -> None:
    """Floors beyond a declared capacity, in bytes and in requests."""
    CONF.parent.mkdir(exist_ok=True)
    CONF.write_text("[Capacity]\nDevice=/dev/ssd0 read=2M read-iops=100\n")
    bus.call("Reload")
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 3M", ReadIOPSMin="/dev/ssd0 150")
    for key in ("ReadBandwidthMin", "ReadIOPSMin"):
        fires("SutroOvercommitted", path="/dev/ssd0", key=key)
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 2M", ReadIOPSMin="/dev/ssd0 100")
    resolves("SutroOvercommitted")


def test_measure(leaf: ModelDisk) -> None:
    """fio measures the bandwidth of the model disk, of which nine tenths are kept and refused."""
    file = Path("/etc/sutro/sutrod.conf.d/50-capacity-dev-ssd0.conf")
    try:
        words = ("measure", "/dev/ssd0", "--yes", "--seconds", "3")
        (bandwidth, iops) = json.loads(run("sutroctl", "--json", *words))["measured"]
        assert bandwidth["measured"] == pytest.approx(20_000_000, rel=0.1)
        assert bandwidth["capacity"] == pytest.approx(0.9 * bandwidth["measured"], abs=1)
        assert iops["measured"] > 1000
        rows = {row["key"]: row["capacity"] for row in bus.call("ListCapacities")}
        assert rows["ReadBandwidthMin"] == bandwidth["capacity"]
        CONF.write_text("[Capacity]\nAdmission=refuse\n")
        bus.call("Reload")
        with pytest.raises(bus.BusError, match="can promise"):
            bus.set_policy(DB, ReadBandwidthMin=f"/dev/ssd0 {bandwidth['capacity'] + 1}")
    finally:
        file.unlink(missing_ok=True)
        CONF.unlink(missing_ok=True)
        bus.call("Reload")


def test_dashboard(db: Unit) -> None:
    """Each query has a result, except queries for promises that do not hold."""
    CONF.parent.mkdir(exist_ok=True)
    CONF.write_text("[Capacity]\nDevice=/dev/ssd0 read=20M write=20M read-iops=1000\n")
    bus.call("Reload")
    bus.set_policy(DB, ReadBandwidthMin="/dev/ssd0 1M", LatencyTarget="/dev/ssd0 1s")
    wait_for_query(f'sutro_promise_broken{{unit="{DB}",key="LatencyTarget"}} == 0')
    wait_for_query(f'rate(sutro_cgroup_read_bytes_total{{unit="{DB}"}}[30s]) > 0')
    # A query over 30 s needs two scrapes with the unit.
    time.sleep(15)
    board = json.loads((SHARE / "sutro-dashboard.json").read_text())
    seen = 0
    for panel in board["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, text in VARIABLES.items():
                expression = expression.replace(name, text)
            assert "$" not in expression
            found = query(expression)
            if not re.search(r"== [01]$", expression):
                assert found, f"{panel['title']}: {expression}"
                # A cgroup without requests in the window has no latency.
                assert {one["value"][1] for one in found} != {"NaN"}, expression
                seen += 1
    assert seen > 15
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert match
            found = query(match[1].replace("$instance", ".*"))
            assert any(match[2] in one["metric"] for one in found)


def test_without_module(disk: Callable[..., ModelDisk], units: Callable[..., Unit]) -> None:
    """Counters of the kernel have bytes and requests, no times; leaves with bfq have weights."""
    with without_module.without():
        one = disk("ssd", "ssd0", bus_kbps=20000)
        other = disk("ssd", "ssd1", "mq-deadline")
        run("systemctl", "start", "sutrod.service")
        unit = units("db", fio(one.node, "randread", "64k", 4), weight=200)
        start = f'sutro_cgroup_read_bytes_total{{cgroup="{unit.cgroup}",'
        text = wait_for(lambda: start in (text := get(METRICS)) and text, start, RESOLVES_S)
        assert run("promtool", "check", "metrics", stdin=text) == ""
        for name, weighted in ((one.node, 1.0), (other.node, 0.0)):
            assert f'sutro_leaf_weighted{{leaf="{name}"}} {weighted}' in text
            assert f'sutro_leaf_managed{{leaf="{name}"}} 0.0' in text
        mine = [line for line in text.splitlines() if f'unit="{unit.unit}"' in line]
        assert {line.split("{")[0] for line in mine} == {
            f"sutro_cgroup_{way}_total"
            for way in ("read_bytes", "written_bytes", "reads", "writes")
        }
        run("systemctl", "stop", "sutrod.service")
