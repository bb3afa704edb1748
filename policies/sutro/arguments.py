# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line of sutroctl: its verbs in groups, their arguments, and the common options.

One table of functions below lists the verbs: the parser, the help, and the checks of the shells'
completions use it.
"""

import argparse
import importlib
import re
from collections.abc import Callable
from typing import Any

from . import __version__
from .view import ORDERS

UNIT = "a unit (.service may be left out)"
SUBJECT = UNIT + " or /a/cgroup"
PLOT_FILE = "sutro.html"
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
JSON_MODES = ("pretty", "short", "off")
# The common options where they are not given.
DEFAULTS = {"json": "off", "no_legend": False, "no_pager": False, "host": ""}
# Columns of the help for people, as of systemctl.
INDENT, NAME_WIDTH = 2, 24


def verb_function(name: str) -> Any:
    """The function `MODULE.FUNCTION`: a command imports the module of its verb only."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module("." + module, __package__), function)


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with the description of its verb."""

    def format_help(self) -> str:
        """The help, with the docstring of the function of the verb as its description."""
        if run := self.get_default("run"):
            self.description = verb_function(run).__doc__
        return super().format_help()


class _Verbs:
    """The verbs of the parser, and their lines in its help."""

    def __init__(self, verbs: Any, common: argparse.ArgumentParser) -> None:
        self._verbs, self._common = verbs, common
        self._family = self._prefix = None
        self.help = ""

    def group(self, title: str) -> None:
        """The verbs from here on have this title in the help."""
        self.help += f"\n{title}:\n"

    def family(self, name: str) -> None:
        """The verbs from here on follow the verb `name`, as in `policy set`."""
        below = self._verbs.add_parser(name, help=f"verbs about {name}", parents=[self._common])
        self._family, self._prefix = below.add_subparsers(metavar="VERB", required=True), name

    def add(self, name: str, run: str, show: str, text: str) -> argparse.ArgumentParser:
        """Add a verb: `run` names its coroutine, `show` the function that prints the answer."""
        full = f"{self._prefix} {name}" if self._prefix else name
        where = self._family if self._family else self._verbs
        verb = where.add_parser(name, help=text, parents=[self._common])
        verb.set_defaults(verb=full, run=run, show=show)
        self.help += f"{'':{INDENT}}{full:{NAME_WIDTH}} {text}\n"
        return verb


def _named(what: str) -> Callable[[str], str]:
    """The type of the name of a host, a file and the like.

    "" is refused: as of a variable that is not set, it would mean the same as no argument.
    """

    def check(name: str) -> str:
        if not name:
            raise argparse.ArgumentTypeError(f"the name of the {what} is empty")
        return name

    return check


FILE = _named("file")


def _common() -> argparse.ArgumentParser:
    """Options before and after the verb; with SUPPRESS, neither place resets the other."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "-H",
        "--host",
        type=_named("host"),
        metavar="[USER@]HOST",
        help="operate on another machine",
    )
    common.add_argument(
        "--json", choices=JSON_MODES, metavar="MODE", help="print JSON: pretty, short, off"
    )
    common.add_argument(
        "-j",
        dest="json",
        action="store_const",
        const="auto",
        help="the same: pretty on a terminal, else short",
    )
    common.add_argument(
        "--no-legend", action="store_true", help="print no heads of columns, and no hints"
    )
    common.add_argument("--no-pager", action="store_true", help="do not pipe the output to a pager")
    common.add_argument("--version", action="version", version=f"sutroctl {__version__}")
    return common


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    common = _common()
    made = _Parser(
        prog="sutroctl",
        usage="sutroctl [OPTION...] VERB ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="sutroctl(1) explains each verb with examples.",
        parents=[common],
    )
    below = made.add_subparsers(
        prog="sutroctl", metavar="VERB", help=argparse.SUPPRESS, required=True, parser_class=_Parser
    )
    verbs = _Verbs(below, common)
    for add in (_add_views, _add_weights, _add_measurements, _add_test, _add_daemon, _add_policies):
        add(verbs)
    about = "Show and set I/O weights, guarantees and limits on stacked block devices."
    made.description = about + "\n" + verbs.help.rstrip()
    return made


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments of a command line; --json alone is --json=pretty."""
    made = parser()
    for word in argv:
        # Python has surrogates in the place of other bytes, which the bus cannot carry.
        if re.search(r"[\ud800-\udfff]", word):
            made.error(f"the argument {word!r} is not UTF-8")
        # The root slice and the root mount.
        if word.startswith("-.") and "--" not in argv:
            made.error(f"'{word}' begins with '-': write -- before it")
    words = ["--json=pretty" if word == "--json" else word for word in argv]
    return made.parse_args(words, argparse.Namespace(**DEFAULTS))


def _add_views(verbs: _Verbs) -> None:
    """Verbs that show the present state."""
    verbs.group("Present state")
    add = verbs.add
    add("status", "daemon.status", "show.status", "the daemon, promises, leaf disks, weights")

    text = "the stacks, with weights and shares on the leaves"
    verb = add("tree", "stacks.tree", "show.tree", text)
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="only the stack of this device")

    text = "weights of a unit on its disks, and the state of its promises"
    verb = add("explain", "statements.explain", "show.explain", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("path", nargs="?", metavar="PATH", help="a device, mount point or file")

    text = "latencies of a unit with a latency target"
    verb = add("latency", "latency.latency", "show_latency.latency", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)

    _add_top(add("top", "top.top", "show_top.top", "present use of devices by units"))

    add("watch", "watch.watch", "", "a line per second and promise")

    text = "rates of promises over time, as a picture"
    verb = add("plot", "plot.plot", "show_promises.plot", text)
    verb.add_argument("unit", nargs="*", metavar="UNIT", help="only these units")
    verb.add_argument(
        "-o",
        "--output",
        type=FILE,
        metavar="FILE",
        default=PLOT_FILE,
        help=f"a .html or .png file ({PLOT_FILE})",
    )
    verb.add_argument(
        "--from", dest="source", type=FILE, metavar="FILE", help="a file of watch --json"
    )


def _add_top(verb: argparse.ArgumentParser) -> None:
    """The options of top; seconds are fractions, and counts begin at 1."""
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="only this device")
    verb.add_argument(
        "--order",
        choices=ORDERS,
        metavar="COLUMN",
        default="state",
        help="sort by a column: " + ", ".join(ORDERS),
    )
    verb.add_argument("-r", "--reverse", action="store_true", help="sort in the other direction")
    verb.add_argument(
        "--filter", default="", metavar="TEXT", help="only units and devices with this text"
    )
    verb.add_argument(
        "--active", action="store_true", help="only units that used a device in the last second"
    )
    verb.add_argument("--tree", action="store_true", help="a tree of cgroups")
    verb.add_argument("--depth", type=int, metavar="N", help="a tree of N levels")
    verb.add_argument(
        "-d", "--delay", type=float, default=1.0, metavar="SECONDS", help="the period (1)"
    )
    verb.add_argument("-n", "--iterations", type=int, metavar="N", help="end after N tables")
    verb.add_argument(
        "-b", "--batch", action="store_true", help="one table after the other, without keys"
    )
    verb.add_argument("--once", action="store_true", help="one table, then end")
    verb.add_argument("--record", type=FILE, metavar="FILE", help="write each look to a file")
    verb.add_argument("--from", dest="source", type=FILE, metavar="FILE", help="replay such a file")


def _add_weights(verbs: _Verbs) -> None:
    """Verbs that set weights and schedulers."""
    verbs.group("Weights and schedulers")
    add = verbs.add
    verb = add("set", "statements.set_", "show.set_", "set the weight of a unit, or for a device")
    verb.add_argument("unit", metavar="UNIT", help=UNIT)
    verb.add_argument("weight", metavar="WEIGHT", help="1 to 10000; 'default' removes it")
    verb.add_argument("--device", metavar="PATH", help="only for this device, mount point or path")
    verb.add_argument("--runtime", action="store_true", help="only until the next boot")

    text = "switch the leaves of devices to the sutro scheduler"
    verb = add("use", "stacks.use", "show.switched", text)
    verb.add_argument("device", nargs="+", metavar="DEVICE")

    text = "switch leaves back to their former scheduler"
    verb = add("release", "stacks.release", "show.switched", text)
    verb.add_argument("device", nargs="*", metavar="DEVICE")
    verb.add_argument("--all", action="store_true", help="all leaves that Sutro switched")


def _add_measurements(verbs: _Verbs) -> None:
    """Verbs for capacities and metrics."""
    verbs.group("Capacity and metrics")
    add = verbs.add
    text = "measure what a device can promise, and keep it as its capacity"
    verb = add("measure", "measure.measure", "show_promises.measured", text)
    verb.add_argument("device", metavar="DEVICE")
    verb.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    verb.add_argument("--dry-run", action="store_true", help="measure, but keep nothing")
    verb.add_argument(
        "--seconds", type=int, default=10, metavar="N", help="for each of the rates (10)"
    )
    verb.add_argument(
        "--write", type=FILE, metavar="FILE", help="a new file on the device, to measure writes"
    )

    text = "counters and promises in the text format of Prometheus"
    verb = add("metrics", "textfile.metrics", "", text)
    verb.add_argument("--all", action="store_true", help="all cgroups, not 200 at the most")
    verb.add_argument(
        "-o", "--output", type=FILE, metavar="FILE", help="replace this file by the text"
    )

    text = "lines of Slurm's configuration for bandwidth that it is to count"
    verb = add("slurm-gres", "slurm.gres", "slurm.show", text)
    verb.add_argument("rate", nargs="*", metavar="KIND=PATH:RATE", help="read=/scratch:400M")
    verb.add_argument(
        "--node", type=_named("node"), metavar="NAME", help="its name, or node[1-4] (the host's)"
    )


def _add_test(verbs: _Verbs) -> None:
    text = "fairness tests on a device, with its schedulers side by side"
    verb = verbs.add("test", "fairness.test", "fairness.show", text)
    verb.add_argument("device", nargs="?", metavar="DEVICE", help="a device, mount point or path")
    verb.add_argument("--list", action="store_true", help="list the experiments")
    verb.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this experiment"
    )
    verb.add_argument(
        "--schedulers", default="", metavar="NAME,...", help="only these, of those in the kernel"
    )
    verb.add_argument(
        "--duration", type=int, default=10, metavar="SECONDS", help="of each measurement (10)"
    )
    verb.add_argument(
        "--write", type=FILE, metavar="FILE", help="a new file on the device, for writes"
    )
    verb.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    verb.add_argument("--report", action="store_true", help="print a text to send in")
    verb.add_argument("--plot", type=FILE, metavar="FILE", help="draw a .png or .svg file, too")
    verb.add_argument(
        "--from", dest="source", type=FILE, metavar="FILE", help="results of test --json"
    )
    verb.add_argument(
        "--restore", action="store_true", help="restore what a killed test has left behind"
    )


def _add_daemon(verbs: _Verbs) -> None:
    """Verbs about the daemon itself."""
    verbs.group("The daemon")
    verb = verbs.add(
        "log-level", "daemon.log_level", "show.log_level", "show or set the level of its log"
    )
    verb.add_argument(
        "level",
        nargs="?",
        type=_named("level"),
        choices=LEVELS,
        metavar="LEVEL",
        help="err, info, debug, ...",
    )
    verbs.add("dump", "daemon.dump", "show.dump", "its whole state, for bug reports")


def _add_policies(verbs: _Verbs) -> None:
    """Verbs below `policy`."""
    verbs.group("Policies")
    verbs.family("policy")
    add = verbs.add
    text = "find mistakes in policy files; --fits: compare floors with the capacity of devices"
    verb = add("check", "policy.check", "show_promises.fits", text)
    verb.add_argument("file", nargs="*", type=FILE, metavar="FILE")
    verb.set_defaults(refuse=verb.error)
    verb.add_argument(
        "--fits", action="store_true", help="check whether the devices have room for the floors"
    )

    text = "settings, their sources, and those in force"
    verb = add("show", "policy.show", "show_promises.policy", text)
    verb.add_argument("unit", nargs="?", metavar="UNIT", help=SUBJECT)

    verb = add("cat", "policy_files.cat", "show_promises.files", "the files that set them")
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)

    text = "edit a file of settings of a unit, check it, and put it in force"
    verb = add("edit", "policy_files.edit", "show_promises.policy", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)

    verb = add("set", "policy.set_", "show_promises.policy_set", "set policy keys of a unit")
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("assignment", nargs="+", metavar="KEY=VALUE", help="see sutro.policy(5)")
    how_long = verb.add_mutually_exclusive_group()
    how_long.add_argument("--runtime", action="store_true", help="only until the next boot")
    how_long.add_argument("--client", action="store_true", help="only until Ctrl-C")

    text = "remove settings of a unit"
    verb = add("reset", "policy.reset", "show_promises.policy_set", text)
    verb.add_argument("unit", metavar="UNIT", help=SUBJECT)
    verb.add_argument("key", nargs="*", type=_named("key"), metavar="KEY", help="only these keys")
    verb.add_argument("--runtime", action="store_true", help="only those of set --runtime")

    text = "let the daemon read all policy files again"
    add("reload", "policy.reload", "show_promises.policy_reload", text)
