# SPDX-License-Identifier: LGPL-2.1-or-later
"""The patches of the elevator's mail series: stubs stand for the functions of later patches."""

import re
import sys
import tomllib

import pytest
from tree import TOP

KERNEL = TOP / "kernel"
sys.path.insert(0, str(KERNEL / "scripts"))

import stubs  # noqa: E402

INCLUDE = re.compile(r"^#include \"([^\"]+)\"$", re.M)

HEADER = "int sutro_far(u32 a,\n\t      u32 b);\nbool sutro_near(void);\n"
USER = "/* sutro_gone() */\nstatic int use(void)\n{\n\treturn sutro_far(1, 2);\n}\n"
OWNER = """\
int sutro_far(u32 a,
\t      u32 b)
{
\treturn a + b;
}

static bool sutro_own(void)
{
\treturn true;
}

bool sutro_near(void)
{
\treturn sutro_own();
}

struct sutro_group *sutro_gone(void)
{
\treturn NULL;
}
"""


def plan() -> dict:
    every = tomllib.loads((KERNEL / "scripts/series.toml").read_text())["series"]
    (found,) = (series for series in every if series["name"] == "elevator")
    return found


def sources() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(KERNEL.glob("*.[ch]"))}


def test_stubs_of_called_functions_only() -> None:
    text = stubs.text({"a.h": HEADER, "a.c": USER}, {"b.c": OWNER}, {})
    assert text.count("\n{\n") == 1
    assert "int sutro_far(u32 a,\n\t      u32 b)\n{\n\treturn 0;\n}\n" in text


def test_declarations_of_stubs_are_included() -> None:
    """W=1 refuses a function without a prototype."""
    headers = {
        "a.h": HEADER,
        "b.h": "/* sutro_far() is elsewhere. */\nvoid sutro_use(void);\n",
        "c.h": "void sutro_body(void);\n",
    }
    text = stubs.text({**headers, "a.c": USER}, {"b.c": OWNER}, {"sutro_far": "sutro_body();"})
    includes = [line for line in text.splitlines() if line.startswith("#")]
    assert includes == ['#include "a.h"', '#include "c.h"']


def test_no_stub_without_a_missing_function() -> None:
    assert stubs.text({"a.c": USER, "b.c": OWNER}, {}, {}) == ""


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("void ", ""),
        ("bool ", "return false;"),
        ("u64 ", "return 0;"),
        ("struct request *", "return NULL;"),
    ],
)
def test_default_body(kind: str, body: str) -> None:
    assert stubs.default_body(kind) == body


def test_each_function_is_found() -> None:
    """A function whose form is not found would have no stub, and the patch would not link."""
    texts = sources()
    for name, text in texts.items():
        for prototype in stubs.PROTOTYPE.findall(stubs.COMMENT.sub("", text)):
            if name.endswith(".h"):
                function = prototype.partition("(")[0].split()[-1].lstrip("*")
                owners = [n for n, one in texts.items() if function in stubs.definitions(one)]
                assert len(owners) == 1, f"{name}: {function}"


def test_bodies_are_of_stubs() -> None:
    stubs.check(sources(), plan()["stubs"])


def test_last_patch_with_sources_leaves_no_stub() -> None:
    assert stubs.text(sources(), {}, plan()["stubs"]) == ""


def test_headers_are_there_before_they_are_included() -> None:
    """Each patch compiles: the headers of its sources come with it, or with an earlier one."""
    texts = sources()
    named = [
        {one.name for pattern in patch.get("files", ()) for one in KERNEL.glob(pattern)}
        for patch in plan()["patch"]
    ]
    there: set[str] = set()
    for patch, added in zip(plan()["patch"], named, strict=True):
        if patch.get("rest"):
            added |= texts.keys() - set().union(*named)
        there |= added
        for name in added & texts.keys():
            includes = set(INCLUDE.findall(texts[name])) & texts.keys()
            assert includes <= there, f"{patch['subject']}: {name}"
