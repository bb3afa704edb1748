# SPDX-License-Identifier: LGPL-2.1-or-later
"""The view of top: order, filter, tree and selection, and the keys that change them.

A view uses no terminal and no bus. It arranges the rows of usage.py, in a tree by cgroup:

    /              got 30M
      /a.slice     got 20M        with depth 2 the tree ends here
        x.service  got 20M        hidden when /a.slice is folded
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .usage import rank

Dict = dict[str, Any]
Place = tuple[str, str]  # a row: its cgroup and its device

PERIODS_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
PAGE_ROWS = 10
# Behind each name of a leaf.
LAST = "\U0010ffff"
# From the table to the details of a unit, and to its processes.
TABLE, UNIT, PROCESSES = PAGES = ("table", "unit", "processes")


def name(row: Dict) -> str:
    """The unit of a row, or the cgroup where it has none."""
    return row["unit"] or row["cgroup"]


def _share(row: Dict) -> float:
    """The largest share of a leaf, 0 to 1."""
    return max((leaf["share"] for leaf in row["leaves"]), default=0.0)


def _value(line: Dict) -> float:
    """The value of a line."""
    return math.inf if line["value"] is None else line["value"]


def _most(row: Dict, number: Callable[[Dict], float]) -> float:
    """The largest of the bandwidths of a row: other lines are in other units."""
    lines = (line for line in row["lines"] if not line["key"] or "Bandwidth" in line["key"])
    return max(map(number, lines), default=0.0)


# By column: the key by which rows are sorted, the largest number first.
ORDERS: dict[str, Callable[[Dict], Any]] = {
    "state": rank,
    "unit": name,
    "device": lambda row: row["name"],
    "value": lambda row: -_most(row, _value),
    "granted": lambda row: -_most(row, lambda line: _value(line) * line["granted"]),
    "got": lambda row: -_most(row, lambda line: line["got"]),
    "leaf": lambda row: min((leaf["leaf"] for leaf in row["leaves"]), default=LAST),
    "share": lambda row: -_share(row),
    "weight": lambda row: -max((leaf["weight"] for leaf in row["leaves"]), default=0),
}


def is_active(row: Dict) -> bool:
    """Did the unit use the device in the last second?"""
    # The value of a target is a latency, which stays while the unit is idle.
    rates = (line["got"] for line in row["lines"] if "Latency" not in line["key"])
    return any(rates) or _share(row) > 0


@dataclass
class Placed:
    """A row at its place: the depth in the tree, and how many rows are hidden below it."""

    row: Dict
    depth: int = 0
    hidden: int = 0

    @property
    def place(self) -> Place:
        """The cgroup and the device of the row."""
        return (self.row["cgroup"], self.row["device"])


def _above(cgroup: str, known: dict[str, Any]) -> str | None:
    """The nearest known cgroup above, None if there is none."""
    while cgroup not in ("", "/"):
        parent = cgroup.rpartition("/")[0]
        cgroup = parent or ("/" if cgroup.startswith("/") else "")
        if cgroup in known:
            return cgroup
    return None


@dataclass
class View:
    """The shown rows and their order; the period is in seconds."""

    order: str = "state"
    reverse: bool = False
    filter: str = ""
    active: bool = False
    tree: bool = False
    depth: int | None = None
    period_s: float = 1.0
    of_device: bool = False  # the rows are those of one device

    page: str = TABLE
    help: bool = False
    paused: bool = False
    ended: bool = False
    typing: bool = False
    step: int = 0  # in a recording: records to go on, or back
    selected: Place | None = None
    folded: set[str] = field(default_factory=set)
    shown: list[Placed] = field(default_factory=list)
    deepest: int = 1

    # Rows.

    def arrange(self, rows: list[Dict]) -> list[Placed]:
        """The rows to show, in their order."""
        order = ORDERS[self.order]
        found = sorted(
            filter(self._is_wanted, rows),
            key=lambda row: (order(row), name(row), row["device"]),
            reverse=self.reverse,
        )
        self.shown = list(self._walk(found)) if self.tree else [Placed(row) for row in found]
        return self.shown

    def _is_wanted(self, row: Dict) -> bool:
        """Does a row pass the filter?"""
        text = " ".join((row["unit"], row["cgroup"], row["device"], row["name"])).lower()
        return self.filter.lower() in text and (not self.active or is_active(row))

    def empty(self) -> str:
        """Why there is no row: a sentence."""
        device = "this device" if self.of_device else "a device"
        if self.filter:
            of = f"that used {device} in the last second " if self.active else ""
            return f"No unit {of}has '{self.filter}' in its name, nor in that of its device."
        if self.active:
            return f"No unit used {device} in the last second."
        where = " on it" if self.of_device else ""
        return f"No unit used {device} in the last second, and nothing is promised{where}."

    def _walk(self, rows: list[Dict]) -> Iterator[Placed]:
        """The rows of the tree, with folded ones counted at the row above."""
        by_cgroup: dict[str, list[Dict]] = {}
        for row in rows:
            by_cgroup.setdefault(row["cgroup"], []).append(row)
        below: dict[str | None, list[str]] = {}
        for cgroup in by_cgroup:
            below.setdefault(_above(cgroup, by_cgroup), []).append(cgroup)
        # Without recursion: a path of 4096 bytes may have 2000 levels.
        rows_below: dict[str, int] = {}
        for cgroup in sorted(by_cgroup, key=len, reverse=True):
            inner = below.get(cgroup, [])
            rows_below[cgroup] = sum(len(by_cgroup[one]) + rows_below[one] for one in inner)
        self.deepest = 1
        left = [(cgroup, 0, False) for cgroup in reversed(below.get(None, []))]
        while left:
            cgroup, depth, hidden = left.pop()
            self.deepest = max(self.deepest, depth + 1)
            ends = cgroup in self.folded or depth + 1 == self.depth
            if not hidden:
                for row in by_cgroup[cgroup]:
                    yield Placed(row, depth, rows_below[cgroup] if ends else 0)
            inner = reversed(below.get(cgroup, []))
            left += ((one, depth + 1, hidden or ends) for one in inner)

    # The selection.

    def index(self) -> int:
        """The selected row: the first one, if the former one has gone."""
        places = [placed.place for placed in self.shown]
        return places.index(self.selected) if self.selected in places else 0

    def current(self) -> Dict | None:
        """The selected row."""
        return self.shown[self.index()].row if self.shown else None

    def move(self, rows: int) -> None:
        """Select another row."""
        if self.shown:
            index = min(max(self.index() + rows, 0), len(self.shown) - 1)
            self.selected = self.shown[index].place

    # Keys.

    def press(self, key: str) -> None:
        """Change the view by a key; keys without a meaning are ignored."""
        if self.typing:
            self._type(key)
        elif self.help:
            self.help = False
        elif key in ACTIONS:
            ACTIONS[key](self)

    def sort_by(self, order: str) -> None:
        """Sort by a column; once more, in the other direction."""
        self.reverse = order == self.order and not self.reverse
        self.order = order

    def _type(self, key: str) -> None:
        """Change the filter by a key."""
        if key == "escape":
            self.filter = ""
        if key in ("escape", "enter"):
            self.typing = False
        elif key == "backspace":
            self.filter = self.filter[:-1]
        elif len(key) == 1:
            self.filter += key

    def _next_order(self, by: int) -> None:
        """Sort by the column `by` places to the right."""
        orders = list(ORDERS)
        self.order = orders[(orders.index(self.order) + by) % len(orders)]

    def _turn(self, by: int) -> None:
        """Go on to the next page, or back."""
        if by < 0 and self.page == TABLE:
            self.filter = ""
        elif self.shown or by < 0:
            pages = PAGES.index(self.page) + by
            self.page = PAGES[min(max(pages, 0), len(PAGES) - 1)]

    def _fold(self, folded: bool) -> None:
        """Fold or unfold the selected row."""
        if row := self.current():
            (self.folded.add if folded else self.folded.discard)(row["cgroup"])

    def _deepen(self, by: int) -> None:
        """Show more or fewer levels of the tree."""
        self.tree = True
        depth = max((self.depth or self.deepest) + by, 1)
        self.depth = depth if depth < self.deepest else None

    def _slow_down(self) -> None:
        """Take the next longer period."""
        longer = (period for period in PERIODS_S if period > self.period_s)
        self.period_s = min(longer, default=self.period_s)

    def _speed_up(self) -> None:
        """Take the next shorter period."""
        shorter = (period for period in PERIODS_S if period < self.period_s)
        self.period_s = max(shorter, default=self.period_s)

    def _set(self, flag: str) -> None:
        """Reverse a flag."""
        setattr(self, flag, not getattr(self, flag))

    def _step(self, by: int) -> None:
        """In a recording: pause, and go on or back."""
        self.paused, self.step = True, self.step + by


ACTIONS: dict[str, Callable[[View], None]] = {
    "q": lambda view: view._set("ended"),
    "Q": lambda view: view._set("ended"),
    "?": lambda view: view._set("help"),
    "h": lambda view: view._set("help"),
    "<": lambda view: view._next_order(-1),
    ">": lambda view: view._next_order(1),
    "r": lambda view: view._set("reverse"),
    "/": lambda view: view._set("typing"),
    "a": lambda view: view._set("active"),
    "t": lambda view: view._set("tree"),
    "left": lambda view: view._fold(True),
    "right": lambda view: view._fold(False),
    "[": lambda view: view._deepen(-1),
    "]": lambda view: view._deepen(1),
    "p": lambda view: view._set("paused"),
    " ": lambda view: view._set("paused"),
    "+": View._slow_down,
    "-": View._speed_up,
    ",": lambda view: view._step(-1),
    ".": lambda view: view._step(1),
    "up": lambda view: view.move(-1),
    "down": lambda view: view.move(1),
    "page-up": lambda view: view.move(-PAGE_ROWS),
    "page-down": lambda view: view.move(PAGE_ROWS),
    "home": lambda view: view.move(-len(view.shown)),
    "end": lambda view: view.move(len(view.shown)),
    "enter": lambda view: view._turn(1),
    "backspace": lambda view: view._turn(-1),
    "escape": lambda view: view._turn(-1),
}
HELP = (
    ("< >", "sort by the column to the left, to the right (or click on its head)"),
    ("r", "reverse the order"),
    ("/", "show only units and devices with a text; Enter ends it, Esc clears it"),
    ("a", "show only units that used a device in the last second"),
    ("t", "show units as a tree of cgroups"),
    ("Left Right", "in the tree: fold and unfold the selected unit"),
    ("[ ]", "in the tree: one level less, one level more"),
    ("Up Down", "select a unit (or click on it)"),
    ("Enter", "from the table to the leaves of the unit, and to its processes"),
    ("Esc", "back"),
    ("p", "pause, and go on"),
    ("+ -", "a longer, a shorter period"),
    (", .", "in a recording: one record back, one on"),
    ("?", "this list"),
    ("q", "quit"),
)
