# SPDX-License-Identifier: LGPL-2.1-or-later
"""The text of a reading for Prometheus, in a format of prometheus_client.

The library takes 12 us for a line, most of it for labels that are the same in each reading. So it
writes the head of each family, and each set of labels once, which is kept while readings have it.
The lines of a family are one format then, which is kept while they have the same labels:

    sutro_cgroup_reads_total{cgroup="/a",leaf="/dev/sda",unit="a.service"} %a
    sutro_cgroup_reads_total{cgroup="/b",leaf="/dev/sda",unit="b.service"} %a

To fill it takes 0.05 us for each number. The counters of cgroups and the values of promises, which
are most of the lines, do not become samples of the library before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

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
    promise_places,
    promise_states,
    promise_values,
)

Encode = Callable[..., bytes]
Words = tuple[str, ...]
END = b"# EOF\n"  # of OpenMetrics
LINE = ("} %a\n",)


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
        self._end = END if encode(_Families([])).endswith(END) else b""
        self._heads: dict[str, bytes] = {}
        # Of a family in the last reading: sets of labels, and the text of each.
        self._texts: dict[str, tuple[Sequence[Words], list[str]]] = {}
        # Of the lines of a family: the texts of their labels, and the format.
        self._formats: dict[str, tuple[Words, bytes]] = {}

    def of(self, scrape: Scrape) -> bytes:
        """The text of a reading; labels that it does not have are forgotten."""
        parts = [*self._cgroups(scrape.state.uses), *self._others(scrape.others())]
        return b"".join([*parts, *self._promises(scrape.state), self._end])

    def _library(self, families: Iterable[Metric]) -> bytes:
        """The text of families by the library, without the end."""
        return self._encode(_Families(families)).removesuffix(END)

    def _labels(self, family: str, names: Words, wanted: Sequence[Words]) -> list[str]:
        """The text of each set of labels, without its last brace; "" without labels.

        They are kept until the next call for the family.
        """
        if not names:
            return [""] * len(wanted)
        before = self._texts.get(family, ((), []))
        if before[0] == wanted:
            return before[1]
        texts = dict(zip(*before, strict=True))
        new = [values for values in dict.fromkeys(wanted) if values not in texts]
        if new:
            made = GaugeMetricFamily("x", "", labels=names)
            for values in new:
                made.add_metric(values, 1)
            # Line breaks in a value are escaped, but not all that splitlines() would split at.
            lines = self._library([made]).decode().split("\n")
            found = [line[1 : line.rindex("}")] for line in lines if line.startswith("x{")]
            texts.update(zip(new, found, strict=True))
        labels = [texts[values] for values in wanted]
        self._texts[family] = (wanted, labels)
        return labels

    def _family(self, family: Metric, lines: bytes) -> Iterator[bytes]:
        """The head of a family and its lines; nothing without lines."""
        if lines:
            if family.name not in self._heads:
                empty = Metric(family.name, family.documentation, family.type)
                self._heads[family.name] = self._library([empty])
            yield self._heads[family.name]
            yield lines

    def _format(self, name: str, labels: Words, ends: Sequence[str]) -> bytes:
        """A format with a line for each end of each set of labels."""
        kept = self._formats.get(name)
        if kept is None or kept[0] != labels:
            starts = [f"{name}{one}".replace("%", "%%") for one in labels]
            text = "".join([start + end for start in starts for end in ends])
            kept = self._formats[name] = (labels, text.encode())
        return kept[1]

    def _others(self, families: Iterable[Metric]) -> Iterator[bytes]:
        """Any families, whose samples have labels of the same names."""
        for family in families:
            names = next((tuple(sample.labels) for sample in family.samples), ())
            wanted = [tuple(sample.labels.values()) for sample in family.samples]
            lines = [
                f"{sample.name}{labels and labels + '}'} {floatToGoString(sample.value)}\n"
                for labels, sample in zip(
                    self._labels(family.name, names, wanted), family.samples, strict=True
                )
            ]
            yield from self._family(family, "".join(lines).encode())

    def _cgroups(self, uses: list[counters.Use]) -> Iterator[bytes]:
        """The families of cgroups."""
        units = {name: counters.unit_of(name) for name in {use.cgroup for use in uses}}
        places = [(use.cgroup, units[use.cgroup], use.leaf) for use in uses]
        labels = tuple(self._labels(CGROUPS, CGROUP_LABELS, places))
        families = cgroup_families()
        columns = zip(*(use.counts for use in uses), strict=True)
        for key, column in zip(counters.KEYS, columns, strict=bool(uses)):
            short, _, factor = COUNTERS[key]
            lines = self._column(f"{CGROUPS}{short}_total", labels, column, factor)
            yield from self._family(families[key], lines)
        reads = families["reads"]
        yield from self._family(reads, self._buckets(f"{reads.name}_bucket", labels, uses))
        weight = families["weight"]
        weights = [use.weight for use in uses]
        yield from self._family(weight, self._column(weight.name, labels, weights, 1))

    def _column(
        self, name: str, labels: Words, numbers: Sequence[int | None], factor: float
    ) -> bytes:
        """A line for each number that is not None, times the factor."""
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            pairs = zip(labels, numbers, strict=True)
            labels = tuple(one for one, number in pairs if number is not None)
        if factor != 1:
            known = [number * factor for number in known]
        return self._format(name, labels, LINE) % tuple(known)

    def _buckets(self, name: str, labels: Words, uses: list[counters.Use]) -> bytes:
        """The lines of histograms, all buckets of a use together."""
        ends = [f',le="{le}"}} %a\n' for le in bounds()]
        counted = tuple(one for one, use in zip(labels, uses, strict=True) if use.reads)
        numbers = tuple(chain.from_iterable(use.reads for use in uses if use.reads))
        return self._format(name, counted, ends) % numbers

    def _promises(self, state: State) -> Iterator[bytes]:
        """The families of promises."""
        labels = self._labels("promises", PROMISE_LABELS, promise_places(state))
        families = promise_families()
        found: dict[str, tuple[list[str], list[float]]] = {name: ([], []) for name in families}
        for name, where, numbers in promise_values(state.promises, labels):
            found[name][0].extend(where)
            found[name][1].extend(numbers)
        where, words = promise_states(state.promises, labels)
        known = list(dict.fromkeys(words))
        texts = self._labels(PROMISE_STATE, ("state",), [(word,) for word in known])
        ends = dict(zip(known, texts, strict=True))
        pairs = zip(where, words, strict=True)
        of_states = [f"{one},{ends[word][1:]}" for one, word in pairs]
        found[PROMISE_STATE] = (of_states, [1] * len(of_states))
        for name, (places, numbers) in found.items():
            lines = self._format(name, tuple(places), LINE) % tuple(numbers)
            yield from self._family(families[name], lines)
