# SPDX-License-Identifier: LGPL-2.1-or-later
"""The view of top without a terminal: order, filter, tree, selection, and any keys at all."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sutro.answer import wait
from sutro.keys import Click, decode
from sutro.show_top import HEADERS, LEAF_HEADERS
from sutro.top import _next
from sutro.view import ACTIONS, HELP, ORDERS, PROCESSES, TABLE, UNIT, View, is_active


def row(cgroup, got=0, share=0.0, device="/dev/sda", key="", value=0, fails=False, weight=100):
    line = {"about": "read", "key": key, "path": "", "value": value, "granted": 0.5}
    unit = cgroup.rpartition("/")[2]
    return {
        "unit": unit if "." in unit else "",
        "cgroup": cgroup,
        "device": device,
        "name": device,
        "fails": fails,
        "lines": [line | {"got": got, "state": "", "cause": ""}],
        "leaves": [{"leaf": device, "share": share, "weight": weight}],
    }


ROWS = [
    row("/a.slice", 20, 0.2, weight=50),
    row("/a.slice/x.service", 15, 0.15, key="ReadBandwidthMin", value=70),
    row("/a.slice/x.service/inner", 5, 0.05),
    row("/a.slice/y.service", 0, 0.0, device="/dev/sdb", fails=True),
    row("/b.service", 30, 0.3, weight=400),
    # A latency is no use of a device.
    row("/c.service", 9000, 0.0, key="LatencyTarget", value=10000),
]


def shown(view, rows=ROWS):
    return [placed.row["cgroup"] for placed in view.arrange(rows)]


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ("state", "/a.slice/y.service"),
        ("unit", "/a.slice/x.service/inner"),
        ("device", "/a.slice/x.service/inner"),
        ("value", "/a.slice/x.service"),
        ("granted", "/a.slice/x.service"),
        ("got", "/b.service"),
        ("leaf", "/a.slice/x.service/inner"),
        ("share", "/b.service"),
        ("weight", "/b.service"),
    ],
)
def test_order(order, first):
    """Numbers in falling order, names in rising order; reversed, all is the other way round."""
    forward = shown(View(order=order))
    assert forward[0] == first and len(forward) == len(ROWS)
    assert shown(View(order=order, reverse=True)) == forward[::-1]


def test_order_has_every_column():
    assert {head.strip(">").lower() for head in (*HEADERS, *LEAF_HEADERS) if head} == set(ORDERS)


def test_order_by_leaf():
    """A row has its first leaf; rows without one are the last."""
    several = row("/z.service") | {"leaves": [{"leaf": "/dev/sdb"}, {"leaf": "/dev/sda"}]}
    rows = [row("/none") | {"leaves": []}, row("/x", device="/dev/sdb"), several]
    assert shown(View(order="leaf"), rows) == ["/z.service", "/x", "/none"]


def test_filter_and_active():
    assert shown(View(filter="X.serv")) == ["/a.slice/x.service", "/a.slice/x.service/inner"]
    assert shown(View(filter="sdb")) == ["/a.slice/y.service"]
    active = shown(View(active=True))
    assert set(active) == {row["cgroup"] for row in ROWS[:3] + ROWS[4:5]}


def test_tree():
    view = View(order="got", tree=True)
    placed = view.arrange(ROWS)
    assert [(one.row["cgroup"], one.depth) for one in placed] == [
        ("/b.service", 0),
        ("/a.slice", 0),
        ("/a.slice/x.service", 1),
        ("/a.slice/x.service/inner", 2),
        ("/a.slice/y.service", 1),
        ("/c.service", 0),
    ]
    view.depth = 2
    assert [(one.depth, one.hidden) for one in view.arrange(ROWS) if one.hidden] == [(1, 1)]
    view.depth = None
    view.press("home")
    view.press("down")
    view.press("left")
    assert shown(view) == ["/b.service", "/a.slice", "/c.service"]
    assert view.shown[1].hidden == 3
    view.press("right")
    assert len(shown(view)) == len(ROWS)


cgroups = st.lists(st.sampled_from("abc"), max_size=4).map(lambda names: "/" + "/".join(names))


@given(st.lists(cgroups, unique=True, max_size=20), st.none() | st.integers(1, 5))
def test_tree_of_any_rows(paths, depth):
    """Each row stands once below its nearest cgroup, or is counted as hidden there."""
    view = View(tree=True, depth=depth)
    placed = view.arrange([row(path) for path in paths])
    assert len(placed) + sum(one.hidden for one in placed) == len(paths)
    above = []
    for one in placed:
        del above[one.depth :]
        cgroup = one.row["cgroup"]
        nearest = max(
            (p for p in paths if p != cgroup and f"{cgroup}/".startswith(p.rstrip("/") + "/")),
            key=len,
            default=None,
        )
        assert (above[-1] if above else None) == nearest
        assert depth is None or one.depth < depth
        above.append(cgroup)


keys = st.sampled_from([*ACTIONS, "x", "Z", "é", "f12"])


@given(st.lists(keys), st.lists(st.sampled_from(ROWS), unique_by=lambda row: row["cgroup"]))
def test_any_keys(pressed, rows):
    """After any keys the view is one that can be shown, whatever rows have come and gone."""
    view = View()
    for key in pressed:
        view.arrange(rows)
        view.press(key)
    view.arrange(rows)
    assert view.order in ORDERS and view.page in (TABLE, UNIT, PROCESSES)
    assert 0.1 <= view.period_s <= 60
    assert view.depth is None or view.depth >= 1
    assert (view.current() is None) == (not view.shown)


def test_the_selection_follows_its_row():
    view = View(order="got")
    view.arrange(ROWS)
    view.press("down")
    view.press("down")
    assert view.current()["cgroup"] == "/a.slice/x.service"
    view.press("r")
    view.arrange(ROWS)
    assert view.current()["cgroup"] == "/a.slice/x.service"
    view.arrange(ROWS[4:])
    assert view.index() == 0


def test_typed_filter():
    """Keys are letters while a filter is typed; Escape clears it."""
    view = View()
    for key in ("/", "q", "r", "backspace", "enter"):
        view.press(key)
    assert (view.filter, view.ended, view.reverse) == ("q", False, False)
    view.press("escape")
    assert view.filter == ""
    view.press("q")
    assert view.ended


def test_pages_and_pace():
    view = View()
    view.arrange(ROWS)
    pages = []
    for key in ("enter", "enter", "enter", "escape", "escape", "escape"):
        view.press(key)
        pages.append(view.page)
    assert pages == [UNIT, PROCESSES, PROCESSES, UNIT, TABLE, TABLE]
    view.press("+")
    view.press("+")
    view.press("-")
    assert view.period_s == 2
    view.press("?")
    assert view.help
    view.press("q")
    assert not view.help and not view.ended


def test_sort_by_a_column_twice():
    view = View()
    for wanted in (False, True, False):
        view.sort_by("got")
        assert (view.order, view.reverse) == ("got", wanted)


def test_every_key_has_help():
    named = {word.lower() for keys, _ in HELP for word in keys.split()}
    same = {"Q": "q", "h": "?", " ": "p", "escape": "esc", "backspace": "esc"}
    moves = {"page-up": "up", "home": "up", "page-down": "down", "end": "down"}
    assert {(same | moves).get(key, key).lower() for key in ACTIONS} == named


def test_activity_without_leaves():
    assert not is_active(row("/x") | {"leaves": []})


@pytest.mark.parametrize(
    ("typed", "events"),
    [
        (b"q/", ["q", "/"]),
        (b"\x1b[A\x1b[B\x1bOA\x1b[5~", ["up", "down", "up", "page-up"]),
        (b"\x1b", ["escape"]),
        (b"\r\n\x7f\x08\x04", ["enter", "enter", "backspace", "backspace", "q"]),
        ("é€".encode(), ["é", "€"]),
        (b"\x1b[<0;5;3M\x1b[<0;5;3m", [Click(2, 4)]),
        (b"\x1b[<64;5;3M\x1b[<65;5;3M\x1b[<2;5;3M", ["up", "down"]),
        (b"\x1b[15~\x1b[1;5Cq\x00", ["q"]),
    ],
)
def test_decode(typed, events):
    assert decode(typed) == events


@given(st.binary())
def test_decode_anything(typed):
    for event in decode(typed):
        assert isinstance(event, Click) or event.isprintable()


def test_no_time_is_left():
    """Where drawing takes longer than the period, keys and Ctrl-C are received all the same."""

    async def received():
        events, quit_ = asyncio.Queue(), asyncio.Event()
        events.put_nowait("q")
        quit_.set()
        return await _next(events, -0.5), await wait(quit_, -0.5)

    assert asyncio.run(received()) == ("q", True)
