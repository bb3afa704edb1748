# SPDX-License-Identifier: LGPL-2.1-or-later
"""Results as a picture: for each experiment the shares of its units under each scheduler, beside
the entitled ones, and P99 of its first unit. matplotlib is optional.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sutro.errors import SutroError, UsageError, of_file

from .show import values

Dict = dict[str, Any]

SUFFIXES = (".png", ".svg")
LARGEST_BYTES = 32 << 20


def check_output(name: str) -> None:
    """Refuse a file that cannot be drawn, before anything is run."""
    if Path(name).suffix not in SUFFIXES:
        allowed = " or ".join(SUFFIXES)
        raise UsageError(f"'{name}' is no name for a picture: allowed is one in {allowed}")
    if not Path(name).absolute().parent.is_dir():
        parent = Path(name).parent
        raise SutroError(
            f"--plot={name}: there is no directory {parent}", f"make it: mkdir -p {parent}"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SutroError(
            "a picture needs matplotlib, which is not installed",
            "install it: apt install python3-matplotlib",
        ) from None


def draw(data: Dict, file: str) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    shown = [one for one in data["experiments"] if _records(data, one)]
    if not shown:
        raise SutroError(
            "there is nothing to draw: no run came to its end",
            "correct what the failed runs name, then run the test again",
        )
    size = (10, 0.6 + 2.3 * len(shown))
    figure, axes = pyplot.subplots(
        len(shown), 2, squeeze=False, figsize=size, width_ratios=(3, 1), layout="constrained"
    )
    for (left, right), one in zip(axes, shown, strict=True):
        records = _records(data, one)
        # A dollar would begin a formula.
        left.set_title(f"{one['name']}: {one['title']}".replace("$", r"\$"), fontsize=8, loc="left")
        _shares(left, one["units"], values(records, "share"), data["schedulers"])
        _latencies(right, one["units"][0], values(records, "p99_us"), data["schedulers"])
    handles, labels = axes[0][0].get_legend_handles_labels()
    by_label = dict(zip(labels, handles, strict=True))
    figure.legend(
        by_label.values(), by_label, fontsize=7, ncols=len(by_label), loc="outside upper right"
    )
    try:
        figure.savefig(file, dpi=100)
    except OSError as error:
        raise of_file(f"--plot={file}", error) from None
    finally:
        pyplot.close(figure)


def _records(data: Dict, experiment: Dict) -> list[Dict]:
    return [
        one for one in data["results"] if one["scenario"] == experiment["name"] and "why" not in one
    ]


def _shares(
    axis: Any, names: Sequence[str], shares: Mapping[tuple[str, str], Dict], schedulers: list[str]
) -> None:
    """Bars side by side for each unit; a line where its share should be."""
    width = 0.8 / max(len(schedulers), 1)
    for number, scheduler in enumerate(schedulers):
        heights = [shares.get((scheduler, name), {}).get("value") or 0 for name in names]
        places = [place + width * (number + 0.5) - 0.4 for place in range(len(names))]
        axis.bar(places, heights, width, label=scheduler, color=f"C{number}")
    for place, name in enumerate(names):
        due = next((one["due"] for (_, of), one in shares.items() if of == name), None)
        if due is not None:
            axis.plot(
                (place - 0.45, place + 0.45),
                (due, due),
                color="black",
                linewidth=1,
                label="entitled",
            )
    axis.set_xticks(range(len(names)), names, fontsize=7)
    axis.set_ylabel("share", fontsize=7)
    axis.tick_params(axis="y", labelsize=7)


def _latencies(
    axis: Any, name: str, latencies: Mapping[tuple[str, str], Dict], schedulers: list[str]
) -> None:
    """P99 of a unit in milliseconds."""
    found = [(latencies.get((one, name), {}).get("value") or 0) / 1000 for one in schedulers]
    colours = [f"C{number}" for number in range(len(schedulers))]
    bars = axis.bar(range(len(schedulers)), found, 0.8, color=colours)
    axis.bar_label(bars, [f"{value:.3g}" if value else "-" for value in found], fontsize=6)
    axis.margins(y=0.15)
    axis.set_xticks(range(len(schedulers)), schedulers, fontsize=6, rotation=30)
    axis.tick_params(axis="y", labelsize=7)
    axis.set_title(f"P99 of {name}, ms", fontsize=7, loc="left")
