# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutroctl test --from: results that another program or a person has changed."""

import json

import pytest
from conftest import NOWHERE
from test_hardware_verb import TWO, world  # noqa: F401  (a fixture)


def parts(value, place=()):
    """The places of all parts of a JSON value, one of each list."""
    for key in value if isinstance(value, dict) else range(min(len(value), 1)):
        yield (*place, key)
        if isinstance(value[key], (dict, list)):
            yield from parts(value[key], (*place, key))


@pytest.mark.parametrize("option", [[], ["--report"]], ids=["show", "report"])
def test_from_file_with_any_value(world, tmp_path, option):  # noqa: F811
    """It is printed, or refused in one line with the file and the field."""
    good, file = world.test(*TWO, "--json").out, tmp_path / "result.json"
    file.write_text(good)
    assert world.test("--from", str(file), *option, **NOWHERE).err == ""
    refused = 0
    for place in parts(json.loads(good)):
        for value in (None, True, 3, -1, 1e300, "", "x", "\0", "\ud800", [], [3], {}, {"x": 3}):
            data = json.loads(good)
            inside = data
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = value
            file.write_text(json.dumps(data))
            run = world.test("--from", str(file), *option, **NOWHERE)
            if run.err:
                first, remedy = run.err.splitlines()
                name = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in place)[1:]
                assert first.startswith(f"sutroctl: {file}: this is no result of a test: '"), first
                assert name.removesuffix("[0]") in first or "results" in first, (first, place)
                assert run.status == 1 and "sutroctl test DEVICE --json >FILE" in remedy
                refused += 1
    assert refused > 300
