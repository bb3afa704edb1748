# SPDX-License-Identifier: LGPL-2.1-or-later
"""The modules of the page that draw nothing, in node: format, topology, usage, policies."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree

from fakemachine import TOP


def test_modules() -> None:
    done = subprocess.run(
        ["node", "--test", str(TOP / "tests/page/modules.test.mjs")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.M)[1]) > 10


def test_calls_have_the_signatures_of_the_interface() -> None:
    """Each member in bus.js is in org.sutro1.xml, with the same arguments."""
    tree = ElementTree.parse(TOP / "Documentation/org.sutro1.xml")
    wanted = {
        method.get("name"): "".join(
            arg.get("type") for arg in method.iter("arg") if arg.get("direction") == "in"
        )
        for method in tree.iter("method")
    }
    text = (TOP / "cockpit/bus.js").read_text()
    calls = re.findall(r'this\.call\("(\w+)"(?:, "([\w()]+)")?', text)
    own = {name: types for name, types in calls if name != "GetAll"}
    assert len(own) > 8
    assert own == {name: wanted.get(name) for name in own}


def test_all_states_have_a_verdict() -> None:
    """The states of the interface are those of promises.js, or failures."""
    xml = (TOP / "Documentation/org.sutro1.xml").read_text()
    text = (TOP / "cockpit/promises.js").read_text()
    known = set(re.findall(r'"([a-z-]+)"', "".join(re.findall(r"const [A-Z_]+ = \[.*?\]", text))))
    assert {"held", "idle", "stated", "settling", "unknown", "unknown-capacity"} <= known
    assert all(re.search(rf"\b{state}\b", xml) for state in known if state != "sutro")
