# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cgroups that are charged for I/O through stacks, with stock and with patched drivers.

The whole matrix is `./lab bench attribution`; this is the quick part of it.
"""

from dataclasses import replace

import pytest
from bench.attribution.kind import patched
from bench.attribution.run import MEASURED, Row, measure
from bench.attribution.scenario import SHIPPED, Book
from bench.read import load

OWNED = 0.99


def rows(name: str, **changes: object) -> list[Row]:
    """All that the bench measures of a stack, with changes to its scenario."""
    (shipped,) = load(Book, SHIPPED).only([name]).scenario
    spec = replace(shipped, **changes)
    found = list(measure(spec, print))
    assert [(row.op, row.mode) for row in found] == spec.uses()
    for row in found:
        assert row.status == MEASURED, row.reason
    return found


@pytest.mark.parametrize("name", ["linear", "striped", "crypt"])
def test_the_owner_is_charged(name: str) -> None:
    for row in rows(name):
        assert row.share >= OWNED, row


def test_raid5_loses_writes_unless_patched() -> None:
    """Reads of whole chunks go around the stripe cache, writes through it."""
    for row in rows("raid5"):
        if row.op == "read" or patched():
            assert row.share >= OWNED, row
        else:
            assert row.share == 0, row
            assert row.data["/"] >= row.moved, row


def test_a_journal_is_no_data() -> None:
    """ext4 writes its journal and its tables as metadata: data are the file, to the byte."""
    written = [row for row in rows("ext4") if row.op == "write"]
    for row in written:
        assert row.data == {row.owner: row.moved}, row
    assert any(sum(row.metadata.values()) for row in written)
