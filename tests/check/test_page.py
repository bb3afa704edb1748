# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each name of the bus in the page of Cockpit (cockpit/) is one that the daemon has.

Methods, signatures and properties are those of Documentation/org.sutro1.xml, which
tests/daemon/test_bus.py compares with the binary. The XML does not declare keys of dictionaries,
states and keys of policies: these are words of the C files that send them.
"""

import ast
import re
import xml.etree.ElementTree as ElementTree

import pytest
from tree import TOP

# A row of the bus by the variable that the modules hold it in: the files with its keys.
ROWS = {
    "capacity": "bus/capacity.c",
    "device": "bus/devices.c",
    "explanation": "bus/explain.c",
    "leaf": "bus/devices.c bus/usage.c",
    "promise": "bus/promise.c",
    "result": "bus/leaves.c",
    "resync": "bus/resync.c",
    "setting": "bus/policy.c",
    "step": "bus/devices.c",
    "top": "bus/devices.c",
    "unit": "bus/explain.c",
}
# The same of `row`, where a module has rows of the bus in it.
ROWS_OF_MODULE = {
    "explain.js": "bus/explain.c bus/promise.c",
    "usage.js": "bus/usage.c bus/explain.c",
}
TYPES = {("promises.js", "Promised"): "bus/promise.c", ("topology.js", "Device"): "bus/devices.c"}
# Fields whose values the modules compare with words, and the files with these words.
VALUES = {
    "backend": "control/actuate.c",
    "kind": "host/topology.c",
    "scheduler": "host/leaf.c",
}

Page = dict[str, str]


def page() -> Page:
    """The modules by name."""
    return {path.name: path.read_text() for path in (TOP / "cockpit").glob("*.js")}


def without_comments(text: str) -> str:
    """The code of a module."""
    return re.sub(r"/\*.*?\*/|^\s*//.*?$", "", text, flags=re.DOTALL | re.MULTILINE)


def words(files: str) -> set[str]:
    """The strings in files of the daemon that are one word."""
    texts = [(TOP / "daemon" / name).read_text() for name in files.split()]
    return {word for text in texts for word in re.findall(r'"([a-z][\w-]*)"', text)}


def listed(text: str, *names: str) -> set[str]:
    """The strings in lists of a module."""
    lists = [re.search(rf"^const {name} = (\[.*?\]);", text, re.MULTILINE)[1] for name in names]
    return {word for one in lists for word in ast.literal_eval(one)}


def keys(text: str, name: str) -> set[str]:
    """The keys of an object of a module."""
    body = re.search(rf"^(?:export )?const {name} = {{\n(.*?)^}};", text, re.DOTALL | re.M)[1]
    return set(re.findall(r"^ {4}(\w+):", body, re.MULTILINE))


def properties(text: str, name: str) -> set[str]:
    """The properties of a type in the comments of a module."""
    comment = re.search(rf"@typedef {{object}} {name}\b(.*?)\*/", text, re.DOTALL)[1]
    return set(re.findall(r"@property {[^}]*} \[?(\w+)", comment))


def member_problems(page: Page) -> list[str]:
    """Names of the interface, methods with their arguments and results, properties."""
    interface = ElementTree.parse(TOP / "Documentation/org.sutro1.xml").find("interface")
    arguments, results = (
        {
            method.get("name"): [arg for arg in method.iter("arg") if arg.get("direction") == way]
            for method in interface.iter("method")
        }
        for way in ("in", "out")
    )
    text = without_comments(page["bus.js"])
    found = [] if f'MANAGER = "{interface.get("name")}"' in text else ["the name of the interface"]
    for line, name, types in re.findall(r'(.*this\.call\("(\w+)"(?:, "([\w()]+)")?.*)', text):
        if name == "GetAll":
            continue
        wanted = "".join(arg.get("type") for arg in arguments.get(name, []))
        if name not in arguments or types != wanted:
            found.append(f'{name} with "{types}"')
        if taken := re.search(r"const \[(.*)\] = await", line):
            names = [arg.get("name") for arg in results.get(name, [])]
            found += [] if taken[1].split(", ") == names else [f"results {taken[1]} of {name}"]
    known = {one.get("name") for one in interface.iter("property")}
    used = {n for text in page.values() for n in re.findall(r"\bdaemon\??\.([A-Z]\w*)", text)}
    return [*found, *sorted(used - known)]


def field_problems(page: Page) -> list[str]:
    """Keys of dictionaries, and the words that their values are compared with."""
    found = []
    of_page = properties(page["usage.js"], "Row")
    sent = words(" ".join(f"bus/{path.name}" for path in (TOP / "daemon/bus").glob("*.c")))
    for name, whole in page.items():
        text = without_comments(whole)
        # The page's own names are in camel case.
        wrong = set(re.findall(r"""[.'"]([a-z\d]+(?:_[a-z\d]+)+)\b""", text)) - sent
        rows = ROWS | ({"row": ROWS_OF_MODULE[name]} if name in ROWS_OF_MODULE else {})
        for variable, files in rows.items():
            used = set(re.findall(rf"\b{variable}\??\.(\w+)\b(?!\()", text))
            wrong |= used - words(files) - (of_page if variable == "row" else set())
        for field, files in VALUES.items():
            # The page's own failures have a kind, too.
            compared = re.findall(rf'\b(?!error)\w+\.{field} [!=]== "([\w-]+)"', text)
            wrong |= set(compared) - words(files)
        found += [f"{one} in {name}" for one in sorted(wrong)]
    for (name, kind), files in TYPES.items():
        wrong = properties(page[name], kind) - words(files)
        found += [f"{one} of {kind}" for one in sorted(wrong)]
    return found


def state_problems(page: Page) -> list[str]:
    """States of guarantees; those that are no failure are the same as in sutroctl."""
    law = (TOP / "daemon/control/law-tick.c").read_text()
    bus = (TOP / "daemon/bus/promise.c").read_text()
    known = {word for _, word in re.findall(r'\[(CONTROL_\w+)\] = "([\w-]+)"', law)}
    known |= set(re.findall(r'#define STATE_\w+ "([\w-]+)"', bus))
    python = (TOP / "policies/sutro/promises.py").read_text()
    text, found = page["promises.js"], []
    for mine, theirs in ((("KEPT", "NEUTRAL"), "HOLDS"), (("NOT_YET",), "NOT_YET")):
        states = listed(text, *mine)
        found += sorted(states - known)
        wanted = re.search(rf"^{theirs} = (.*)$", python, re.MULTILINE)[1]
        found += sorted(states ^ set(ast.literal_eval(wanted)))
    return found


def policy_problems(page: Page) -> list[str]:
    """Keys of policies, all of them, and where the daemon keeps settings."""
    infos = (TOP / "daemon/policy/promise.c").read_text()
    kinds = dict(re.findall(r'= { "(\w+)",\s+PROMISE_KIND_(\w+),', infos))
    offered = {key for key, kind in kinds.items() if kind in ("FLOOR", "CEILING", "TARGET")}
    ceilings = {key for key, kind in kinds.items() if kind == "CEILING"}
    promises, editor = page["promises.js"], page["editor.js"]
    found = sorted(keys(promises, "KEYS") ^ offered) + sorted(keys(promises, "LIMITED") ^ ceilings)
    found += sorted(keys(editor, "CONTROL") - words("bus/policy.c"))
    roots = (TOP / "daemon/host/roots.c").read_text()
    folders = re.findall(r'"(/\w+/sutro/[\w.]+)/"', editor)
    return found + [one for one in folders if f'"%s{one}"' not in roots]


CHECKS = (member_problems, field_problems, state_problems, policy_problems)


def problems(page: Page) -> list[str]:
    """Names in the page that the daemon does not have."""
    return [problem for check in CHECKS for problem in check(page)]


def test_all_names_are_those_of_the_daemon() -> None:
    assert problems(page()) == []


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("bus.js", '"ListUnits"', '"ListCgroups"'),
        ("bus.js", '"SetPolicy", "sa(ss)s"', '"SetPolicy", "ss"'),
        ("bus.js", '"History", "sss"', '"History"'),
        ("bus.js", "[device, leaves, steps] =", "[leaves, device, steps] ="),
        ("bus.js", "org.sutro1.Manager", "org.sutro2.Manager"),
        ("app.js", "daemon.DryRun", "daemon.Dry"),
        ("app.js", "daemon?.PolicyErrors", "daemon?.Errors"),
        ("app.js", "resync.note", "resync.remark"),
        ("explain.js", "row.read_back", "row.readback"),
        ("explain.js", 'backend === "none"', 'backend === "nothing"'),
        ("explain.js", "promise.amplification", "promise.copies"),
        ("guarantees.js", "promise.state", "promise.status"),
        ("promises.js", "@property {string} cause", "@property {string} why"),
        ("promises.js", '"rbytes_per_s"', '"rbytes_per_sec"'),
        ("promises.js", '"settling"', '"waiting"'),
        ("promises.js", 'NOT_YET = ["settling", ', "NOT_YET = ["),
        ("promises.js", 'KEPT = ["held"', 'KEPT = ["held", "infeasible"'),
        ("promises.js", "    WriteLatencyTarget:", "    LatencyTargetWrite:"),
        ("promises.js", "    WriteIOPSMax: {", "    // WriteIOPSMax: {"),
        ("editor.js", "    runtime:", "    volatile:"),
        ("editor.js", "/etc/sutro/policy.control", "/etc/sutro/policies"),
        ("topology.js", "device.kind", "device.type"),
        ("topology.js", '"loop"', '"file"'),
        ("usage.js", "row.read_p99_us", "row.p99_us"),
        ("usage.js", "row.device)", "row.volume)"),
    ],
)
def test_another_name_is_found(module: str, old: str, new: str) -> None:
    changed = page()
    assert old in changed[module]
    changed[module] = changed[module].replace(old, new)
    assert problems(changed)
