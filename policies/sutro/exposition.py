# SPDX-License-Identifier: LGPL-2.1-or-later
"""The text of a reading for Prometheus, in a format of prometheus_client.

The library takes 12 us for a line, most of it for labels that are the same in each reading. So it
writes the head of each family, and each set of labels once, which is kept while readings have it.
A line is a concatenation then:

    sutro_cgroup_reads_total{ + cgroup="/a",leaf="/dev/sda",unit="a.service" + } + 120

The lines of a histogram are one format string, which is kept, too. The counters of cgroups and the
values of promises, which are most of the lines, do not become samples of the library before.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from . import counters
from .metrics import (
    CGROUP_LABELS,
    CGROUPS,
    COUNTERS,
    PROMISE_LABELS,
    PROMISE_STATE,
    Scrape,
    State,
    bounds,
    cgroup_families,
    promise_families,
    promise_values,
)

Encode = Callable[..., bytes]
Labels = tuple[tuple[str, str], ...]
END = "# EOF\n"  # of OpenMetrics


def _place(use: counters.Use) -> Labels:
    """The labels of a use."""
    where = (use.cgroup, counters.unit_of(use.cgroup), use.leaf)
    return tuple(zip(CGROUP_LABELS, where, strict=True))


class _Families:
    """Some families, as the library takes them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """The families."""
        yield from self._families


class Text:
    """Writes readings, one after the other, by a function of prometheus_client."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._end = END if encode(_Families([])).decode().endswith(END) else ""
        self._heads: dict[str, str] = {}
        self._labels: dict[Labels, str] = {}
        self._before: dict[Labels, str] = {}
        self._histograms: dict[str, str] = {}  # by the text of the labels

    def of(self, scrape: Scrape) -> bytes:
        """The text of a reading; labels that it does not have are forgotten."""
        self._before, self._labels = self._labels, {}
        parts = [*self._cgroups(scrape.state.uses), *self._others(scrape.others())]
        parts += self._promises(scrape.state)
        return "".join([*parts, self._end]).encode()

    def _library(self, families: Iterable[Metric]) -> str:
        """The text of families by the library, without the end."""
        return self._encode(_Families(families)).decode().removesuffix(END)

    def _learn(self, wanted: Iterable[Labels]) -> None:
        """Keep the text of all these sets of labels, which have the same names."""
        new = []
        for labels in dict.fromkeys(wanted):
            if known := self._labels.get(labels) or self._before.get(labels):
                self._labels[labels] = known
            elif labels:
                new.append(labels)
            else:
                self._labels[labels] = ""
        if not new:
            return
        family = GaugeMetricFamily("x", "", labels=[name for name, _ in new[0]])
        for labels in new:
            family.add_metric([value for _, value in labels], 1)
        # Line breaks in a value are escaped, but not all that splitlines() would split at.
        lines = (line for line in self._library([family]).split("\n") if line.startswith("x{"))
        for labels, line in zip(new, lines, strict=True):
            self._labels[labels] = line[1 : line.rindex("}") + 1]

    def _family(self, family: Metric, lines: list[str]) -> Iterator[str]:
        """The head of a family and its lines; nothing without lines."""
        if lines:
            if family.name not in self._heads:
                empty = Metric(family.name, family.documentation, family.type)
                self._heads[family.name] = self._library([empty])
            yield self._heads[family.name]
            yield from lines

    def _others(self, families: Iterable[Metric]) -> Iterator[str]:
        """Any families."""
        for family in families:
            placed = [(tuple(sample.labels.items()), sample) for sample in family.samples]
            self._learn(labels for labels, _ in placed)
            lines = [
                f"{sample.name}{self._labels[labels]} {floatToGoString(sample.value)}\n"
                for labels, sample in placed
            ]
            yield from self._family(family, lines)

    def _cgroups(self, uses: list[counters.Use]) -> Iterator[str]:
        """The families of cgroups."""
        places = [_place(use) for use in uses]
        self._learn(places)
        labelled = [(self._labels[place], use) for place, use in zip(places, uses, strict=True)]
        families = cgroup_families()
        for key, (short, _, factor) in COUNTERS.items():
            name = f"{CGROUPS}{short}_total"
            lines = [
                f"{name}{labels} {use.values[key] * factor!r}\n"
                for labels, use in labelled
                if key in use.values
            ]
            yield from self._family(families[key], lines)
        yield from self._family(families["reads"], self._buckets(families["reads"].name, labelled))
        name = families["weight"].name
        lines = [
            f"{name}{labels} {use.weight}\n" for labels, use in labelled if use.weight is not None
        ]
        yield from self._family(families["weight"], lines)

    def _buckets(self, name: str, labelled: list[tuple[str, counters.Use]]) -> list[str]:
        """The lines of histograms, all buckets of a use together."""
        ends = [f',le="{le}"}} %d\n' for le in bounds()]
        formats: dict[str, str] = {}
        found = []
        for labels, use in labelled:
            if use.reads:
                line = self._histograms.get(labels)
                if line is None:
                    start = f"{name}_bucket{labels[:-1]}".replace("%", "%%")
                    line = "".join(start + end for end in ends)
                formats[labels] = line
                found.append(line % tuple(use.reads))
        self._histograms = formats
        return found

    def _promises(self, state: State) -> Iterator[str]:
        """The families of promises."""
        rows = list(promise_values(state))
        places = [tuple(zip(PROMISE_LABELS, where, strict=True)) for where, _, _ in rows]
        words = {word: (("state", word),) for _, word, _ in rows}
        self._learn(places)
        self._learn(words.values())
        ends = {word: "," + self._labels[place][1:] for word, place in words.items()}
        families = promise_families()
        lines: dict[str, list[str]] = {name: [] for name in families}
        for place, (_, word, found) in zip(places, rows, strict=True):
            labels = self._labels[place]
            for name, number in found.items():
                lines[name].append(f"{name}{labels} {number!r}\n")
            lines[PROMISE_STATE].append(f"{PROMISE_STATE}{labels[:-1]}{ends[word]} 1\n")
        for name, family in families.items():
            yield from self._family(family, lines[name])
