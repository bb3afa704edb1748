# SPDX-License-Identifier: LGPL-2.1-or-later
"""Documentation/results.md and the table of README.md, made from results of the benches.

    Documentation/results/BENCH.json    runs of a bench, the oldest first: command, commit, date,
                                        kernel, and results as the bench wrote them
    Documentation/results/page.toml     the page: sections, conclusions, rows and columns of tables,
                                        and the parts of README.md that lie between marks

The newest result of each figure counts; an older one of the same figure leaves the file, and so do
the older figures of a scenario that failed. A row and a column of a table select results by their
keys, and a cell shows all that both select:

    column { head = "Sutro", scheduler = "sutro" }
    row    { head = "ratio: hdd; ssd", metric = "ratio", scenario = ["hdd", "ssd"] }
    cell   1.99; 2

A result that is judged and misses its goal is bold. Numbers have three digits, or as many as it
takes to show on which side of the goal they are. A text of the page has figures as {NAME}; NAME
selects a result in the same way. With pick = "lowest" or "highest" it is that one of all that are
selected, with "missed" the number of those that miss their goal, and with "number" that of all.
"""

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rig.result import Goal

from bench.applications import page as applications
from bench.applications.scenario import SHIPPED, Book
from bench.read import load

PAGE = "results.md"
LICENCE = "<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->"
# Around a part of README.md.
BEGIN, END = "<!-- begin of {} -->", "<!-- end of {} -->"
NOTICE = "<!-- Made by ./lab report from results/*.json and results/page.toml. -->"
# Keys of a row, column or figure that do not select results.
SHOWN = ("head", "unit", "percent", "places", "goal", "pick")
# Details of a result that belong to the name of its figure.
SUBJECT = ("scenario", "scheduler", "metric", "of", "beside", "at", "part", "state", "size",
           "groups")  # fmt: skip
# Those of them that a failure has, too.
WHOLE = ("scenario", "scheduler", "beside")
DIGITS = (3, 4, 5, 6)
# Metrics that some schedulers do not have: only sutro charges device time.
UNKNOWN = ("charge_error",)
# Of all results that a row or a figure selects, one. Each is the newest of its figure.
PICKS: Mapping[str, Callable] = {"lowest": min, "highest": max}
# Of all results that a figure selects, the number of those with a property.
COUNTS: Mapping[str, Callable] = {
    "number": lambda _: True,
    "missed": lambda one: one["judged"] and not one["met"],
}
Object = Mapping[str, object]


@dataclass(frozen=True)
class Run:
    """Results that one command gave; published: the commit is that which published them."""

    command: str
    commit: str
    date: str
    kernel: str
    results: Sequence[Object]
    published: bool = False

    def source(self) -> str:
        """Where the figures come from."""
        how = "Published with" if self.published else "Measured at"
        return f"{how} commit {self.commit} on {self.date[:10]}, Linux {self.kernel}"


@dataclass(frozen=True)
class Found:
    """A result, and the run that gave it."""

    one: Object
    run: Run

    def has(self, where: Mapping[str, object]) -> bool:
        """Do all keys of the result have these values?"""
        return all(_text(self.one.get(key, "")) == _text(value) for key, value in where.items())


def read(file: Path) -> list[Run]:
    """The runs of a bench; none if there is no file yet."""
    return [Run(**one) for one in json.loads(file.read_text())["runs"]] if file.exists() else []


def write(runs: Iterable[Run], file: Path) -> None:
    """Write runs: a line for each result."""
    texts = []
    for run in runs:
        head = json.dumps({key: value for key, value in vars(run).items() if key != "results"})
        lines = ",\n".join(json.dumps(one) for one in run.results)
        texts.append(f'{head[:-1]}, "results": [\n{lines}\n]}}')
    file.write_text('{"runs": [\n' + ",\n".join(texts) + "\n]}\n")


def merged(runs: Sequence[Run]) -> list[Run]:
    """The runs with the newest result of each figure, without details that no page shows.

    A failure of a scenario replaces all its older figures, and newer figures replace a failure.
    """
    newest = sorted(runs, key=lambda run: run.date)
    figure, whole, failure = {}, {}, {}  # the number of the last run that has it
    for number, run in enumerate(newest):
        for one in run.results:
            figure[_name(one, run)] = whole[_whole(one, run)] = number
            if "why" in one:
                failure[_whole(one, run)] = number

    def counts(one: Object, run: Run, number: int) -> bool:
        if "why" in one:
            return whole[_whole(one, run)] == number
        return figure[_name(one, run)] == number >= failure.get(_whole(one, run), 0)

    kept = []
    for number, run in enumerate(newest):
        mine = [_plain(one) for one in run.results if counts(one, run, number)]
        if mine:
            kept.append(Run(**{**vars(run), "results": mine}))
    return kept


def _name(one: Object, run: Run) -> tuple[str, ...]:
    """The figure that a result is for: its subject, and the kernel series."""
    return (_series(run), *(_text(one.get(key, "")) for key in SUBJECT))


def _whole(one: Object, run: Run) -> tuple[str, ...]:
    """The measurement that a result belongs to, which fails as a whole."""
    return (_series(run), *(_text(one.get(key, "")) for key in WHOLE))


def _plain(one: Object) -> Object:
    """A result without tables and multi-line texts."""
    return {
        key: value
        for key, value in one.items()
        if not isinstance(value, dict) and "\n" not in str(value)
    }


def _text(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def benches(folder: Path) -> set[str]:
    """The benches that the page has figures of."""
    return {name for one in _page(folder)["section"] for name in _benches(one)}


def _benches(section: Mapping) -> list[str]:
    names = section.get("bench", [])
    return names if isinstance(names, list) else [names]


def _page(folder: Path) -> Mapping:
    return tomllib.loads((folder / "page.toml").read_text())


def render(folder: Path) -> str:
    """The page that belongs to the files of a folder."""
    page = _page(folder)
    sections = [Section(one, folder).render() for one in page["section"]]
    return "\n\n".join([f"{LICENCE}\n{NOTICE}\n# Results", page["intro"].strip(), *sections]) + "\n"


def readme(folder: Path, text: str) -> str:
    """The text of README.md with its table and its list of limits."""
    spec = _page(folder)["readme"]
    section = Section(spec, folder)
    text = _between(text, "figures", section.table(spec, sources=False))
    return _between(text, "limits", section.text("limits"))


def _between(text: str, name: str, part: str) -> str:
    """A text with another part between the marks of a name."""
    before, begin, rest = text.partition(BEGIN.format(name))
    _, end, after = rest.partition(END.format(name))
    if not begin or not end:
        raise ValueError(
            f"README.md has no {BEGIN.format(name)!r} and {END.format(name)!r} around its {name}"
        )
    return f"{before}{begin}\n{part}\n{end}{after}"


class Section:
    """A section of the page: one command, its conclusion, tables and notes.

    Results have the keys `bench` and `kernel`, too.
    """

    def __init__(self, spec: Mapping, folder: Path):
        self.spec = spec
        self.results = [
            Found({**one, "bench": name, "kernel": _series(run)}, run)
            for name in _benches(spec)
            for run in read(folder / f"{name}.json")
            for one in run.results
        ]
        self.used: dict[str, Run] = {}

    def render(self) -> str:
        """The section as Markdown."""
        body = [self.text(key) for key in ("conclusion", "before") if key in self.spec]
        for table in self.spec.get("table", ()):
            body += [self._filled(line) for line in [table["title"]] if line]
            body.append(self.table(table))
        body += [self.text(key) for key in ("after",) if key in self.spec]
        commands = "\n".join(f"    {line}" for line in self.spec["command"])
        sources = ". ".join(sorted(run.source() for run in self.used.values()))
        source = [f"{sources}."] if sources else []
        return "\n\n".join([f"## {self.spec['title']}", commands, *source, *body])

    def text(self, key: str) -> str:
        """A text of the section with its figures."""
        return self._filled(self.spec[key].strip())

    def _filled(self, text: str) -> str:
        figures = self.spec.get("figure", {})
        return text.format(**{name: self._figure(of) for name, of in figures.items()})

    def _matching(self, where: Mapping[str, object]) -> Iterator[list[Found]]:
        """All results for each combination of values."""
        keys = [key for key in where if key not in SHOWN]
        values = [where[key] if isinstance(where[key], list) else [where[key]] for key in keys]
        for chosen in product(*values):
            wanted = dict(zip(keys, chosen, strict=True))
            yield [one for one in self.results if one.has(wanted)]

    def _select(self, where: Mapping[str, object]) -> Iterator[Found]:
        """The newest result for each combination of values, or the picked one of all."""
        if "pick" in where:
            found = sum(self._matching(where), [])
            pick = PICKS[str(where["pick"])]
            yield from [pick(found, key=lambda one: _order(one.one["value"]))] if found else ()
            return
        yield from (mine[-1] for mine in self._matching(where) if mine)

    def _figure(self, where: Mapping[str, object]) -> str:
        counted = COUNTS.get(str(where.get("pick")))
        found = sum(self._matching(where), []) if counted else list(self._select(where))
        if not found:
            raise ValueError(f"{self.spec['title']}: no result has {where}")
        if not counted:
            return self._shown(found, where)
        for one in found:
            self.used[one.run.source()] = one.run
        return str(sum(bool(counted(one.one)) for one in found))

    def _shown(self, found: Sequence[Found], how: Mapping[str, object]) -> str:
        """Values, bold where they miss their goal, and the unit after the last one."""
        for one in found:
            self.used[one.run.source()] = one.run
        values = [_value(one.one, how) for one in found]
        if not any(values):
            return ""
        unit = str(how.get("unit", "%" if how.get("percent") else ""))
        return "; ".join(values) + (f" {unit}" if unit and values[-1].strip("*") != "never" else "")

    def table(self, table: Mapping, sources: bool = True) -> str:
        """A table; if its rows are of several runs, with the commit of each row."""
        if table.get("form") == "applications":
            return self._applications()
        columns = table["column"]
        lines = [["", *(column["head"] for column in columns)], ["---"] * (len(columns) + 1)]
        commits = []
        for row in table["row"]:
            used, self.used = self.used, {}
            lines.append([row["head"], *(self._cell({**column, **row}) for column in columns)])
            commits.append(", ".join(run.commit for run in self.used.values()))
            self.used = used | self.used
        if sources and len(set(commits)) > 1:
            for line, last in zip(lines, ["commit", "---", *commits], strict=True):
                line.append(last)
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def _cell(self, where: Mapping[str, object]) -> str:
        found = list(self._select(where))
        if where.get("goal"):
            goals = dict.fromkeys(_goal(one.one, where) for one in found)
            return "; ".join(filter(None, goals))
        return self._shown(found, where) if found else ""

    def _applications(self) -> str:
        for found in self.results:
            self.used[found.run.source()] = found.run
        chosen = [found.one for found in self.results if "beside" in found.one]
        return applications.table(chosen, load(Book, SHIPPED).scenario).strip()


def _series(run: Run) -> str:
    return ".".join(run.kernel.split(".")[:2])


def _order(value: object) -> float:
    """`never` is more than any number."""
    return math.inf if value is None else float(str(value))


def _value(one: Object, how: Mapping[str, object]) -> str:
    """A result as text: bold if it misses its goal."""
    if "why" in one:
        return "**failed**"
    missed = one["judged"] and not one["met"]
    if one["value"] is None and one["metric"] in UNKNOWN:
        return ""
    text = "never" if one["value"] is None else number(float(str(one["value"])), one["goal"], how)
    return f"**{text}**" if missed else text


def number(value: float, goal: object, how: Mapping[str, object]) -> str:
    """Three digits, or as many as it takes to be on the same side of a bound as the value."""
    scale = 100 if how.get("percent") else 1
    if "places" in how:
        return f"{value * scale:,.{how['places']}f}"
    bounds = _bounds(goal)
    texts = [_digits(value * scale, digits) for digits in DIGITS]
    for text in texts:
        if not bounds or bounds.met(float(text.replace(",", "")) / scale) == bounds.met(value):
            return text
    return texts[-1]


def _digits(value: float, digits: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def _bounds(goal: object) -> Goal | None:
    if not goal:
        return None
    found = {key: one for key, one in Goal.parse(f"m {goal}").items() if key in ("min", "max")}
    return Goal("m", **found)  # type: ignore[arg-type]


def _goal(one: Object, how: Mapping[str, object]) -> str:
    """The bounds of a result as text, in the unit of its row."""
    bounds = _bounds(one["goal"])
    if not bounds:
        return ""
    scale = 100 if how.get("percent") else 1
    sides = (None if side is None else side * scale for side in (bounds.min, bounds.max))
    unit = str(how.get("unit", "%" if how.get("percent") else ""))
    text = str(Goal("m", *sides)).replace(">=", "at least").replace("<=", "at most")
    return f"{text} {unit}".strip()
