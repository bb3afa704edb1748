# SPDX-License-Identifier: LGPL-2.1-or-later
"""Text for people: aligned, without lines and boxes, sentences in at most 100 columns.

Colours appear on a terminal only (rich sees to that, and obeys NO_COLOR). On a terminal, long names
fold instead of being cut, because readers copy them. A number is never cut: 30 in the place of 300
is a wrong one. A table that is wider than the window goes on in the next line of the terminal.

In a pipe no cell folds: a search for a name finds the whole line of its row, however long.
"""

import sys
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

Dict = dict[str, Any]

WIDTH = 100
# No table is wider.
WIDEST = 10_000
# Of a name in a table, at least this many letters, or all of it, are in one line.
NAME_LETTERS = 6
GOOD, BAD, FAINT, NAME = "green", "bold red", "dim", "bold"


class Output(Console):
    """A console with or without a legend: heads of columns, and hints below them.

    `folds`: names in tables fold to the width of the window.
    """

    legend = True
    folds = True
    _least = 0

    @property
    def width(self) -> int:
        """The columns of the window, or those that the tables need that are being printed."""
        return max(super().width, self._least)

    def needs(self, *shown: Any) -> int:
        """The columns that the widest of the tables and trees needs; 0 without any."""
        wide = self.options.update_width(WIDEST)
        tables = [one for one in shown if isinstance(one, (Table, Tree))]
        return max((Measurement.get(self, wide, one).minimum for one in tables), default=0)

    def print(self, *shown: Any, **options: Any) -> None:
        """As a console of rich, but no number in a table is cut."""
        self._least = self.needs(*shown)
        try:
            super().print(*shown, **options)
        finally:
            self._least = 0

    def hint(self, text: str) -> None:
        """Print a line of the legend."""
        if self.legend:
            self.print(text, style=FAINT)


class _Columns(Table):
    """A table that has heads where its console has a legend, and cuts no number."""

    def _prepare(self, console: Console) -> int:
        """Decide on the heads, and on the least width of each column; return that of the table."""
        self.show_header = getattr(console, "legend", True)
        folds = getattr(console, "folds", True)
        for column in self.columns:
            cells = [*column.cells, *([column.header] if self.show_header else [])]
            whole = max((cell_len(str(cell)) for cell in cells), default=0)
            blanks = self.padding[1]
            # The last one has no blanks behind it, and rich adds them to its least width. Rich
            # makes all that fold equally wide, so the last one has letters in their place.
            is_last = column is self.columns[-1]
            letters = NAME_LETTERS + blanks * is_last
            is_whole = column.no_wrap or not folds
            column.min_width = whole if is_whole else min(whole, letters)
            if is_last:
                column.min_width = max(column.min_width - blanks, 0)
        return sum((column.min_width or 0) + self.padding[1] for column in self.columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As a table of rich."""
        self._prepare(console)
        return super().__rich_console__(console, options)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As a table of rich, but names fold."""
        least = self._prepare(console)
        return Measurement(least, super().__rich_measure__(console, options).maximum).normalize()


def console(legend: bool = True) -> Output:
    """A console on stdout; sentences in a pipe have WIDTH columns, whatever COLUMNS is."""
    width = None if sys.stdout.isatty() else WIDTH
    out = Output(width=width, highlight=False, markup=False, emoji=False)
    out.legend, out.folds = legend, width is None
    return out


def trimmed(text: str) -> str:
    """Lines without blanks at their ends: rich fills each line of a table to its full width."""
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def size(count: float) -> str:
    """A number of bytes in three digits: 1.95 GiB, 20.0 GiB, 512 B."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        count /= 1024
        if count < 999.5 or unit == "EiB":
            break
    digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
    return f"{count:.{digits}f} {unit}"


def used(count: int) -> str:
    """Bytes as text; a dash for none."""
    return size(count) if count else "-"


def columns(*headers: str) -> Table:
    """A table without lines. A header that begins with > has its column aligned to the right."""
    table = _Columns(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=FAINT)
    for header in headers:
        justify = "right" if header.startswith(">") else "left"
        table.add_column(
            header.lstrip(">"), justify=justify, overflow="fold", no_wrap=justify == "right"
        )
    return table


def scheduler(device: Dict) -> Text:
    """The scheduler of a leaf, marked when Sutro put it there, and whether the leaf hangs."""
    name = device.get("scheduler") or "-"
    text = Text(
        name + ("*" if device.get("managed") else ""), style=GOOD if name == "sutro" else ""
    )
    # A daemon that is older than sutroctl does not report it.
    return text.append(" (hung)", style=BAD) if device.get("hung") else text
