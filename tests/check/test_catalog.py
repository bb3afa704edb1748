# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each event of the daemon and of sutro-slurm has an entry in the journal's catalog.

An entry names only fields of its event.
"""

import re
import shutil
import subprocess
from pathlib import Path

from tree import TOP

CATALOG = TOP / "dist" / "sutro.catalog"
EVENTS = dict(re.findall(r'\[(EVENT_\w+)\] = "(\w+)"', (TOP / "daemon/host/event.c").read_text()))
# Of programs in Python.
PROGRAMS = dict(
    re.findall(
        r'^([A-Z_]+) = "([0-9a-f]{32})"$',
        (TOP / "policies/sutro/journal.py").read_text(),
        re.MULTILINE,
    )
)
NAMES = re.findall(r"^\t(EVENT_\w+),$", (TOP / "daemon/host/event.h").read_text(), re.MULTILINE)


def entries() -> dict[str, str]:
    """The text of each entry by its id."""
    parts = re.split(r"(?m)^-- ([0-9a-f]{32})$", CATALOG.read_text())[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def fields(event: str) -> list[set[str]]:
    """The fields of each call that logs an event."""
    sources = [path.read_text() for path in (TOP / "daemon").rglob("*.c")]
    calls = [c for s in sources for c in re.findall(r"log_event\((.*?)\);\n", s, re.DOTALL)]
    return [set(re.findall(r'\{ "(SUTRO_\w+)"', call)) for call in calls if event in call]


def test_every_event_has_an_id_and_an_entry() -> None:
    assert list(EVENTS) == NAMES
    assert PROGRAMS and sorted([*EVENTS.values(), *PROGRAMS.values()]) == sorted(entries())


def test_entries_name_only_fields_of_their_event() -> None:
    for event, identifier in EVENTS.items():
        sent = fields(event)
        assert sent, event
        named = set(re.findall(r"@(\w+)@", entries()[identifier]))
        assert all(named <= one for one in sent), event


def test_entries_of_programs_name_only_fields_of_their_event() -> None:
    """A call names a dictionary of fields in the line before."""
    text = (TOP / "policies/sutro/slurm.py").read_text()
    for event, identifier in PROGRAMS.items():
        calls = re.findall(rf"fields = (.*)\n\s*log_event\({event},", text)
        assert calls, event
        named = set(re.findall(r"@(\w+)@", entries()[identifier]))
        assert all(named <= set(re.findall(r'"(SUTRO_\w+)"', call)) for call in calls), event


def test_entries_are_complete() -> None:
    """Each has an explanation in a paragraph of its own, and manual pages of this tree."""
    pages = {path.name for path in (TOP / "Documentation/man").iterdir()}
    for identifier, text in entries().items():
        head, _, body = text.strip().partition("\n\n")
        by = "sutro-slurm" if identifier in PROGRAMS.values() else "sutrod"
        form = rf"Subject: .+\nDefined-By: {by}\nDocumentation: .+"
        assert re.fullmatch(form, head), identifier
        named = re.findall(r"man:([\w.-]+)\((\d)\)", head)
        assert named and {f"{page}.{section}" for page, section in named} <= pages, identifier
        assert body.endswith("."), identifier


def test_calls_that_change_something_log_an_event() -> None:
    """Each method of the bus with a polkit action, except those that only read."""
    text = (TOP / "Documentation/org.sutro1.xml").read_text()
    methods = set(re.findall(r'<method name="(\w+)">', text))
    reading = {name for name in methods if re.match(r"(List|Get|Explain|Resolve|History)", name)}
    events = {
        "UseDevices": "EVENT_LEAF_SWITCHED",
        "ReleaseDevices": "EVENT_LEAF_SWITCHED",
        "SetPolicy": "EVENT_POLICY_SET",
        "ResetPolicy": "EVENT_POLICY_RESET",
        "ReloadPolicies": "EVENT_POLICIES_RELOADED",
        "Reload": "EVENT_RELOADED",
    }
    assert methods - reading - {"CheckPolicies", "Dump"} == events.keys()
    assert set(events.values()) <= EVENTS.keys()


def test_journalctl_reads_the_catalog(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    (tmp_path / "var/lib/systemd/catalog").mkdir(parents=True)
    shutil.copy(CATALOG, folder)
    journalctl = ["journalctl", f"--root={tmp_path}"]
    subprocess.run([*journalctl, "--update-catalog"], check=True)
    done = subprocess.run([*journalctl, "--list-catalog"], capture_output=True, text=True)
    listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert sorted(listed) == sorted(entries()), done.stderr
    assert all(text.startswith(("sutrod: ", "sutro-slurm: ")) for text in listed.values())
