# SPDX-License-Identifier: LGPL-2.1-or-later
"""Charged cgroups, from the books of made-up leaves; the stacks file; the tables of the page."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.modeldisk import Truth, parse_truth
from rig.result import write_objects

from bench.attribution import page
from bench.attribution.kind import text
from bench.attribution.run import BROKEN, MEASURED, Block, Row, judged
from bench.attribution.scenario import MODES, SHIPPED, Book, Scenario
from bench.read import load
from bench.test_read import read

MIB = 1 << 20
LEAVES = {"d0": 64, "m0": 16}
SPEC = Scenario(name="s", title="A stack", leaves=LEAVES, layer=(), mib=8, metadata=("m0",))
WRITE = Row("s", "write", "direct", owner="/owner")


def leaf(**charged: tuple[int, int, int]) -> Truth:
    """Books of a leaf: bytes read and written, and those written as metadata, by cgroup."""
    lines = ["total time_ns=0 rbytes=0 wbytes=0 rios=0 wios=0 busy_ns=0"]
    lines += [
        f"/{name} time_ns=1 rbytes={r} wbytes={w} rios=1 wios=1 meta_rbytes=0 meta_wbytes={m}"
        for name, (r, w, m) in charged.items()
    ]
    return parse_truth("\n".join(lines))


# ---- the share ----


def test_the_share_is_of_data_at_all_leaves() -> None:
    """A pre-read by root is a loss; a superblock and a metadata leaf are not."""
    books = {
        "d0": leaf(owner=(0, 8 * MIB, 0), root=(2 * MIB, 4096, 4096)),
        "m0": leaf(root=(0, 5 * MIB, 0)),
    }
    row = judged(WRITE, books, SPEC)
    assert row.status == MEASURED and row.share == pytest.approx(0.8)
    assert row.data == {"/owner": 8 * MIB, "/root": 2 * MIB}
    assert row.metadata == {"/root": 5 * MIB + 4096}
    record = row.result("stock", "6.12").as_object()
    assert (record["metric"], record["value"]) == ("charged_share", 0.8)


def test_what_is_served_promptly_is_data_of_its_owner() -> None:
    """Requests of root with the same marks are still metadata."""
    books = {"d0": leaf(owner=(0, 8 * MIB, 6 * MIB), root=(0, 4096, 4096))}
    row = judged(WRITE, books, replace(SPEC, prompt=True))
    assert row.data == {"/owner": 8 * MIB} and row.metadata == {"/root": 4096}
    assert judged(WRITE, books, SPEC).data == {"/owner": 2 * MIB}


@given(
    st.dictionaries(st.sampled_from(["owner", "root", "other"]), st.integers(0, 8 * MIB)),
    st.integers(0, 8 * MIB),
)
def test_nothing_is_lost_or_invented(charged: dict[str, int], elsewhere: int) -> None:
    books = {"d0": leaf(**{name: (0, n, 0) for name, n in charged.items()}),
             "m0": leaf(owner=(elsewhere, 0, 0))}  # fmt: skip
    row = judged(WRITE, books, replace(SPEC, least=0.0))
    assert sum(row.data.values()) == sum(charged.values())
    assert sum(row.metadata.values()) == elsewhere
    assert row.share is None if not any(charged.values()) else 0 <= row.share <= 1


def test_bytes_that_no_leaf_has_seen_are_no_measurement() -> None:
    """Read instead of written, or written to the metadata leaf only: something else was done."""
    for books in ({"d0": leaf(owner=(8 * MIB, 0, 0))}, {"m0": leaf(owner=(0, 8 * MIB, 0))}):
        row = judged(WRITE, books, SPEC)
        assert row.status == BROKEN and str(8 * MIB) in row.reason and row.share is None


def test_a_line_names_the_charged_cgroups() -> None:
    row = judged(WRITE, {"d0": leaf(owner=(0, 6 * MIB, 0), root=(0, 2 * MIB, 0))}, SPEC)
    assert text(row) == "s write direct: 75.0% of 8.00 MiB; /root 2.00 MiB"


def test_no_request_writes_what_another_wrote() -> None:
    """Deduplication would find it; of compressible ones three quarters of each page are zeros."""
    block = Block(65536, compressible=True)
    seen = []
    for _ in range(2):
        block.renew()
        seen.append(block.memory[:])
    assert seen[0] != seen[1]
    for at in range(0, 65536, 4096):
        for one in seen:
            assert any(one[at : at + 1024]) and not any(one[at + 1024 : at + 4096])


# ---- the file ----


def test_the_shipped_stacks() -> None:
    """Each is there once, and has room for its places."""
    specs = load(Book, SHIPPED).scenario
    names = {spec.name for spec in specs}
    assert {"linear", "raid5", "raid1-behind", "thin-cow", "vdo", "zram", "btrfs-raid5"} <= names
    for spec in specs:
        places = len(spec.uses()) * (spec.mib + 1)
        data = [size for leaf, size in spec.used.items() if leaf not in spec.metadata]
        assert places <= sum(data), spec.name
        assert spec.moved <= spec.mib * MIB
        assert set(spec.exempt) <= set(spec.ops)


# ---- the page ----


def measured(
    patched: bool, mine: int, others: int, mode: str = "direct", reason: str = "", to: str = "/"
) -> dict[str, object]:
    data = {"/o": mine, to: others}
    row = Row("one", "write", mode, reason=reason, owner="/o", data=data)
    return row.result("patched" if patched else "stock", "6.12").as_object()


@pytest.fixture
def specs(tmp_path: Path) -> tuple[Scenario, ...]:
    return read(tmp_path, "attribution").scenario


def test_a_cell_is_before_and_after(specs: tuple[Scenario, ...]) -> None:
    tables = page.tables([measured(False, 1, 3), measured(True, 9999, 1)], specs)
    assert "     - 25 → 99.9\n" in tables
    assert "* one" not in tables, "there is nothing to tell: the rest is the root cgroup's"


def test_a_lost_owner_is_reported(specs: tuple[Scenario, ...]) -> None:
    """The reason stands once, with the charged cgroup unless it is root; a full share has none."""
    objects = [measured(p, 1, 1, mode, "so", "/x") for p in (False, True) for mode in MODES]
    tables = page.tables(objects, specs)
    assert tables.count("* one, write: so\n") == 1
    assert "* one, write buffered, patched: ``/x`` 50\n" in tables
    whole = page.tables([measured(False, 999, 1, reason="so", to="/x")], specs)
    assert "so" not in whole and "/x" not in whole


def test_a_missing_module_is_reported(specs: tuple[Scenario, ...]) -> None:
    row = Row("one", "write", "direct", "not measured", "this kernel has no dm-one")
    assert "     - this kernel has no dm-one\n" in page.tables(
        [row.result("stock", "7.2").as_object()], specs
    )


def test_only_what_is_between_the_marks_changes() -> None:
    before = f"Head\n{page.BEGIN}\nold\n{page.END}\nTail\n"
    after = page.replaced(before, "new")
    assert after.startswith("Head\n") and after.endswith("\nTail\n")
    assert "new" in after and "old" not in after
    assert page.replaced(after, "new") == after
    with pytest.raises(ValueError, match="begin of"):
        page.replaced("Head\n", "new")


def test_later_runs_replace_earlier_ones(tmp_path: Path) -> None:
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    write_objects([measured(False, 1, 1), measured(False, 1, 1, "buffered")], files[0])
    write_objects([measured(False, 1, 0)], files[1])
    read = page.read(files)
    assert [(one["mode"], one["value"]) for one in read] == [
        ("direct", 1.0), ("buffered", 0.5),
    ]  # fmt: skip
