# SPDX-License-Identifier: LGPL-2.1-or-later
"""Values in the text of a scrape, by name and labels.

Of the text "sutro_cgroup_reads_total{unit="db.service",leaf="/dev/sda"} 3", this is 3:

    value(samples(text), "sutro_cgroup_reads_total", unit="db.service")
"""

from conftest import sutroctl
from prometheus_client.parser import text_string_to_metric_families as parse_text

# Of sutro-exporter(1): cgroups with series, unless all have them.
CGROUPS_MOST = 200


def samples(text, parse=parse_text):
    """Values by name and labels; each series once."""
    found = [sample for family in parse(text) for sample in family.samples]
    values = {(s.name, frozenset(s.labels.items())): s.value for s in found}
    assert len(values) == len(found)
    return values


def value(values, name, **labels):
    """The one series with these labels, among others."""
    (found,) = (
        number
        for (key, has), number in values.items()
        if key == name and labels.items() <= set(has)
    )
    return found


def metrics(*args):
    """Values that the verb prints."""
    run = sutroctl("metrics", *args)
    assert (run.status, run.err) == (0, "")
    return samples(run.out)
