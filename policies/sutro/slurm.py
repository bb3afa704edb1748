# SPDX-License-Identifier: LGPL-2.1-or-later
"""sutro-slurm: floors of Slurm jobs on a node.

    slurmctld: job_submit.lua    --extra=sutro:read=/scratch:60M  ->  gres/sutro_read:scratch:60
    slurmd: Prolog               sutro-slurm prolog /system.slice/n1_slurmstepd.scope/job_7
    sutrod                       the floor holds for that cgroup
    slurmd: Epilog               sutro-slurm epilog /system.slice/n1_slurmstepd.scope/job_7

The prolog leaves a record in /run/sutro-slurm, named after the job, with the cgroup. The epilog
adds the suffix .ended, resets the policy of that cgroup and removes the record. If sutrod does not
run, or fails, the service (sutro-slurm watch) resets the policy later. The epilog succeeds all the
same: slurmd drains the node of a failing one. Where slurmd loses a job and runs no epilog, the
service adds the suffix: the cgroup has been gone for GONE_AFTER_S, and Slurm has no such job there.

A job whose text is malformed, or names a path out of reach of sutrod (reach.py), is held with the
reason as its AdminComment. So is one whose floors sutrod refuses for lack of capacity: a service
may have got a floor since gres.conf was written. A prolog that fails would drain the node.

The service drains the node when a floor of a job is infeasible for DRAIN_AFTER_S: the disks do less
than the configuration of Slurm states, so no further job should count on them.
"""

import argparse
import asyncio
import contextlib
import ipaddress
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import __version__, reach, values
from .answer import Answer, has_cgroup
from .client import Client
from .errors import BadPolicy, NotText, OutOfReach, Overcommitted, SutroError, UsageError, of_file
from .files import replace
from .journal import JOB_REFUSED, NODE_DRAINED, NOTICE, WARNING, log_event
from .program import Program, log

Dict = dict[str, Any]

RATE = "a whole number, 1M to 1000T bytes per second"
WORDS = f"with KIND read or write, PATH of a volume, and RATE {RATE}, such as"
# Of a job, and of an argument of sutroctl slurm-gres.
FORM = f"sutro:KIND=PATH:RATE[,KIND=PATH:RATE...] {WORDS} sutro:read=/scratch:60M"
GRES_FORM = f"KIND=PATH:RATE {WORDS} read=/scratch:400M"
ROOM = "when floors of others have ended, run scontrol release; see sutroctl status on the node"
REMEDY = "mount a volume there and run scontrol release, or submit the job with another path"
PREFIX = "sutro:"
KEYS = {"read": "ReadBandwidthMin", "write": "WriteBandwidthMin"}
GRES = {"ReadBandwidthMin": "sutro_read", "WriteBandwidthMin": "sutro_write"}
# Bytes per second that one of a GRES stands for.
UNIT = 10**6

# Names of nodes as in slurm.conf, which has ranges in brackets, and commas between names.
NODE_FORM = "node names of letters, digits and ._-, such as n1, node[1-4,7] or n1,n2"
RANGES = r"\[[0-9]{1,18}(?:-[0-9]{1,18})?(?:,[0-9]{1,18}(?:-[0-9]{1,18})?)*\]"
NODE = rf"(?:[A-Za-z0-9]|{RANGES})(?:[A-Za-z0-9._-]|{RANGES})*"
NODES = re.compile(f"{NODE}(?:,{NODE})*")
# Slurm refuses larger ranges ("Too many hosts in range").
RANGE_MOST = 1 << 16

RECORDS = Path("/run/sutro-slurm")
ENDED = ".ended"
RUNTIME = "runtime"
# With and without several slurmd on a machine; the name of the node is in the first form only.
JOB = re.compile(r"/[^ ]*/(?:([^/]+)_)?slurmstepd\.scope/job_([0-9]+)")
RECORD = re.compile(r"(?:([^:]+):)?([0-9]+)")

# Commands of Slurm try again while the controller is away.
COMMAND_LIMIT_S = 60.0
LOOK_S = 5.0
DRAIN_AFTER_S = 30.0
# A job has no cgroup before its first step and, without PrologFlags=Contain, between two steps.
GONE_AFTER_S = 600.0


def gres_type(path: str, form: str) -> str:
    """The type of a GRES for a path, as sutro.lua has it; UsageError for other paths."""
    names = path.split("/")[1:] if path.startswith("/") else [""]
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*", name):
            raise UsageError(f"{path!r} is no path for Slurm", f"allowed is {form}")
    return "__".join(names)


def parse(extra: str, form: str = FORM) -> list[tuple[str, str, int]]:
    """Key, path and bytes per second of each part of a text.

    UsageError for a mistake, with the allowed form for people.
    """
    found: list[tuple[str, str, int]] = []
    for part in extra.removeprefix(PREFIX).split(","):
        match = re.fullmatch(r"([a-z]+)=([^:]+):([0-9]{1,15}[KMGT]?)", part)
        if not extra.startswith(PREFIX) or not match or match[1] not in KEYS:
            raise UsageError(f"{part!r} is malformed", f"allowed is {form}")
        key, path, rate = KEYS[match[1]], match[2], values.parse(KEYS[match[1]], match[3])
        gres_type(path, form)
        if rate < UNIT or (key, path) in [one[:2] for one in found]:
            raise UsageError(f"{part!r} is less than 1M, or stated twice", f"allowed is {form}")
        found.append((key, path, rate))
    return found


# Commands of Slurm


def _run(*command: str) -> str:
    """Run a command; return its output, or raise SutroError with its own sentence."""
    try:
        return subprocess.run(
            # Names of jobs and nodes need not be UTF-8.
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=True,
            timeout=COMMAND_LIMIT_S,
        ).stdout
    except OSError as error:
        raise SutroError(
            f"{command[0]}: {error.strerror}", "install the commands of Slurm, and add them to PATH"
        ) from None
    except subprocess.TimeoutExpired:
        raise SutroError(
            f"{command[0]} does not end within {COMMAND_LIMIT_S:g} s",
            "see whether the controller answers: scontrol ping",
        ) from None
    except subprocess.CalledProcessError as error:
        raise SutroError(
            error.stderr.strip() or str(error), f"correct this, then try: {shlex.join(command)}"
        ) from None


def drain(node: str, reason: str) -> None:
    """Let no further job start on this node; SutroError if scontrol fails."""
    try:
        _run("scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}")
    except SutroError as error:
        raise SutroError(
            f"scontrol cannot drain {node}: {error.message}",
            f"drain it: scontrol update nodename={node} state=drain reason=sutro",
        ) from None


def on_node(node: str) -> set[str]:
    """The numbers of the jobs that a node has, also of those that end; SutroError if squeue fails.

    squeue takes the name of the node or that of its host.
    """
    words = ("--all", "--noheader", f"--nodelist={node}", "--format=%A")
    return set(_run("squeue", *words).split())


def _one_task(job: str) -> str:
    """The name of one job; a task of an array may have the number that stands for the array."""
    shown = _run("scontrol", "--oneliner", "show", "job", job)
    task = re.search(rf"^JobId={job} ArrayJobId=(\d+) ArrayTaskId=(\d+) ", shown, re.MULTILINE)
    return f"{task[1]}_{task[2]}" if task else job


def hold(job: str, reason: str) -> None:
    """Put a job back into the queue and hold it there, with the reason as its AdminComment.

    A job that cannot wait there (of srun, of salloc, with --no-requeue) is cancelled. SutroError if
    Slurm does neither.
    """
    name = _one_task(job)
    try:
        _run("scontrol", "update", f"jobid={name}", f"admincomment={reason}")
    except SutroError as error:
        log(f"job {name} gets no comment: {error.message}")
    try:
        # Incomplete: success also for a job that the prolog of another of its nodes has held.
        _run("scontrol", "requeuehold", "Incomplete", name)
    except SutroError as error:
        _run("scancel", name)
        done = f"cancelled, because it cannot be held ({error.message})"
    else:
        done = "held, unless it has ended"
    fields = {"SUTRO_JOB": name, "SUTRO_REASON": reason}
    log_event(JOB_REFUSED, NOTICE, f"job {name} is {done}: {reason}", fields)


# The prolog and the epilog


def _job(cgroup: str) -> re.Match[str]:
    """Node and number of the job of a cgroup; UsageError for another cgroup."""
    job = JOB.fullmatch(cgroup)
    # Python has surrogates in the place of bytes that are not UTF-8.
    if not job or not cgroup.isprintable():
        raise UsageError(f"{cgroup!r} is no cgroup of a Slurm job", "it ends with /job_NUMBER")
    return job


def _record(cgroup: str, records: Path) -> Path:
    """The record file of a job; UsageError for another cgroup."""
    return records / ":".join(filter(None, _job(cgroup).groups()))


def _ended(record: Path) -> Path:
    """The name of a record whose job has ended, and whose floors are to be reset."""
    return record.with_name(record.name + ENDED)


def _node(job: re.Match[str]) -> str:
    """The name of the node that a job runs on."""
    return job[1] or socket.gethostname().partition(".")[0]


def _wanted(extra: str) -> list[tuple[str, str, int]]:
    """As parse(); OutOfReach for a path that can have no floor on this node."""
    found = parse(extra)
    for _, path, _ in found:
        if why := reach.obstacle(path):
            raise OutOfReach(f"'{path}' is out of reach of sutrod: {why}", REMEDY)
    return found


async def prolog(cgroup: str, extra: str, records: Path = RECORDS) -> None:
    """Set the floors of a job; without a text for Sutro there are none.

    A job with a mistake in its text, or beyond the capacity of a device, is held. SutroError if the
    daemon fails.
    """
    if not extra.startswith(PREFIX):
        return
    job = _job(cgroup)
    try:
        await _promise(cgroup, _wanted(extra), _record(cgroup, records))
    except (OutOfReach, Overcommitted, UsageError) as error:
        # Of Overcommitted, the message itself has the remedies of an administrator.
        why = error.message.rstrip(".")
        hold(job[2], f"sutro on {_node(job)}: {why}; {error.hint or ROOM}")


async def _promise(cgroup: str, wanted: list[tuple[str, str, int]], record: Path) -> None:
    """Set floors, and leave a record; none is left where the daemon refuses them."""
    floors = [(key, f"{values.quoted(path)} {rate}") for key, path, rate in wanted]
    record.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # Before the policy: a prolog that is killed between the two leaves nothing in force.
    replace(record, f"{cgroup}\n".encode())
    # Of an earlier run of a job that was requeued: the service would reset the new floors.
    _ended(record).unlink(missing_ok=True)
    try:
        async with Client() as client:
            await client.set_policy(cgroup, floors, RUNTIME)
    except Overcommitted:
        record.unlink()
        raise


def _found(cgroup: str, records: Path) -> Path | None:
    """The record of a job, whatever the form of its cgroup; None without floors.

    Without a node in the cgroup, it is that of a node if there is one only.
    """
    job, record = _job(cgroup), _record(cgroup, records)
    others = [records / job[2]] if job[1] else sorted(records.glob(f"*:{job[2]}"))
    if record.exists():
        return record
    return others[0] if len(others) == 1 and others[0].exists() else None


async def epilog(cgroup: str, records: Path = RECORDS) -> None:
    """Reset the floors that the prolog set, now or as soon as sutrod does it.

    The record has the cgroup of the floors: the epilog may see no scope, or one of the other form.
    """
    record = _found(cgroup, records)
    if not record:
        return
    try:
        cgroup = record.read_text(errors="replace").strip()
        # Before the reset: an epilog that is killed after it leaves a record for the service.
        ended = record.rename(_ended(record))
    except FileNotFoundError:
        return  # another program takes care of it
    try:
        async with Client() as client:
            await client.reset_policy(cgroup, RUNTIME)
    except SutroError as error:
        log(f"{cgroup}: {error.message}; its floors are reset later")
    else:
        # The service may have been first.
        ended.unlink(missing_ok=True)


async def reset(records: Path = RECORDS) -> None:
    """Reset the floors of all jobs, before the package is removed."""
    found = sorted(records.glob("*"))
    if not found:
        return
    async with Client() as client:
        for record in found:
            await _reset(client, record)


async def _reset(client: Client, record: Path) -> None:
    """Reset the floors of the cgroup of a record, and remove the record."""
    try:
        cgroup = record.read_text(errors="replace").strip()
    except FileNotFoundError:
        return  # the epilog was first, or the job runs again
    try:
        await client.reset_policy(cgroup, RUNTIME)
        log(f"{cgroup}: its floors are reset now")
    except (BadPolicy, NotText) as error:
        log(f"{record} names no cgroup and is removed: {error.message}")
    record.unlink(missing_ok=True)


# The service


class Watch(Program):
    """Resets the floors of ended jobs, and drains the node of a floor that stays infeasible."""

    name = "sutro-slurm"
    ending = "ending"

    def __init__(
        self,
        records: Path = RECORDS,
        drain: Callable[[str, str], None] = drain,
        now: Callable[[], float] = time.monotonic,
        on_node: Callable[[str], set[str]] = on_node,
    ) -> None:
        super().__init__()
        self._records, self._drain, self._now, self._on_node = records, drain, now, on_node
        # Records whose cgroup is gone: since when, or since Slurm had the job all the same.
        self._gone: dict[Path, float] = {}
        self._since: dict[tuple[str, str, str], float] = {}
        self._drained: set[tuple[str, str, str]] = set()

    async def step(self) -> float:
        """Read the records and the promises; return LOOK_S."""
        self._end_lost()
        await self._reset_ended()
        self._judge(await self.client.promises())
        return LOOK_S

    def _end_lost(self) -> None:
        """Take jobs for ended that slurmd has lost: no epilog runs for them."""
        gone = {}
        for record in sorted(self._records.glob("*")):
            with contextlib.suppress(FileNotFoundError):  # the epilog removes it now
                name = RECORD.fullmatch(record.name)
                if name and not has_cgroup(record.read_text(errors="replace").strip()):
                    gone[record] = name
        self._gone = {record: self._gone.get(record, self._now()) for record in gone}
        due = [one for one, since in self._gone.items() if self._now() - since >= GONE_AFTER_S]
        jobs: dict[str, set[str] | None] = {}
        for record in due:
            self._gone[record] = self._now()
            node = _node(gone[record])
            if node not in jobs:
                jobs[node] = self._jobs(node)
            known = jobs[node]
            if known is not None and gone[record][2] not in known:
                log(f"{record}: {node} has no such job, and no epilog has run; its floors end")
                with contextlib.suppress(FileNotFoundError):
                    record.rename(_ended(record))

    def _jobs(self, node: str) -> set[str] | None:
        """The jobs that Slurm has on a node; None, and a line in the log, if it does not answer."""
        try:
            return self._on_node(node)
        except SutroError as error:
            log(f"floors of jobs without a cgroup stay for now: {error.message}")
            return None

    async def _reset_ended(self) -> None:
        """Reset the floors of jobs whose epilog could not."""
        for record in sorted(self._records.glob(f"*{ENDED}")):
            await _reset(self.client, record)

    def _judge(self, promises: list[Dict]) -> None:
        """Drain the node for each floor of a job that was infeasible for DRAIN_AFTER_S."""
        bad = {
            (one["cgroup"], one["key"], one["path"]): one["cause"]
            for one in promises
            if one["state"] == "infeasible" and JOB.fullmatch(one["cgroup"])
        }
        self._since = {which: self._since.get(which, self._now()) for which in bad}
        self._drained &= bad.keys()
        for which, cause in bad.items():
            if which in self._drained or self._now() - self._since[which] < DRAIN_AFTER_S:
                continue
            cgroup, key, path = which
            job = _job(cgroup)
            node = _node(job)
            reason = f"sutro: {key}={path} of job {job[2]} is infeasible: {cause}"
            try:
                self._drain(node, reason)
            except SutroError as error:
                log(error.message)
                continue
            self._drained.add(which)
            fields = {"SUTRO_NODE": node, "SUTRO_JOB": job[2], "SUTRO_CGROUP": cgroup}
            log_event(NODE_DRAINED, WARNING, f"{node} is drained: {reason}", fields)


# sutroctl slurm-gres


def _left(row: Dict, promises: list[Dict]) -> int:
    """The part of a capacity that jobs may have: without floors of units that are no jobs."""
    of_jobs: dict[str, int] = {}
    for one in promises:
        same = (one["key"], one["device"]) == (row["key"], row["device"])
        if same and JOB.fullmatch(one["cgroup"]):
            # sutrod counts a percentage as that part of the capacity. Its value is the rate that it
            # has now.
            value = row["capacity"] * round(one["percent"] * 100) // 10000 or one["value"] or 0
            # Of several floors of a cgroup on a device, sutrod counts the largest one.
            of_jobs[one["cgroup"]] = max(of_jobs.get(one["cgroup"], 0), value)
    of_others = max(row["promised"] - sum(of_jobs.values()), 0)
    return max(row["capacity"] - of_others, 0)


async def _declared(client: Client) -> tuple[list[tuple[str, str, int]], list[str]]:
    """Key, path and rest of each declared capacity; a sentence for each that is not counted."""
    # In this order: a floor of a job that begins meanwhile is taken for that of a service.
    promises = await client.promises()
    rows = [row for row in await client.capacities() if row["key"] in GRES]
    rates, skipped = [], []
    for row in rows:
        key, path, rate = row["key"], row["path"], _left(row, promises)
        try:
            gres_type(path, GRES_FORM)
        except UsageError as error:
            name = "declare it with a path of letters, digits, '-' and single '_'"
            skipped.append(f"{key}: {error.message}; {name}")
            continue
        if not row["device"]:
            skipped.append(f"{key}: '{path}' leads to no device; mount it, then run this again")
            continue
        if rate < UNIT:
            skipped.append(f"{key}: less than 1M of '{path}' is left for jobs")
            continue
        rates.append((key, path, rate))
    return rates, skipped


async def gres(client: Client | None, args: argparse.Namespace) -> Answer:
    """Print the lines of gres.conf and slurm.conf for bandwidth that Slurm is to count."""
    skipped: list[str] = []
    if args.rate:
        rates = parse(PREFIX + ",".join(args.rate), GRES_FORM)
    else:
        assert client
        rates, skipped = await _declared(client)
    if not rates:
        raise SutroError(
            "; ".join(skipped) or "no capacity is declared",
            "declare it in sutrod.conf, or name it: sutroctl slurm-gres read=/scratch:400M",
        )
    # Less than a unit cannot be counted, so it cannot be promised.
    resources = [
        {"name": GRES[key], "type": gres_type(path, GRES_FORM), "count": rate // UNIT}
        for key, path, rate in rates
    ]
    return Answer({"node": args.node, "resources": resources, "skipped": skipped})


def check(args: argparse.Namespace) -> None:
    """Find mistakes on the command line before any call; UsageError."""
    args.node = args.node or _node_name(args.host)
    names = args.node
    ranges = ",".join(re.findall(RANGES, names)).replace("[", "").replace("]", "").split(",")
    bounds = [tuple(map(int, one.split("-"))) for one in ranges if "-" in one]
    are_ranges = all(low <= high < low + RANGE_MOST for low, high in bounds)
    # DEFAULT has the defaults of the nodes below it.
    if not NODES.fullmatch(names) or not are_ranges or "DEFAULT" in names.upper().split(","):
        raise UsageError(
            f"'{args.node}' is no name of a node for Slurm", f"allowed are {NODE_FORM}: --node NAME"
        )


def _node_name(host: str) -> str:
    """The usual name of a node, of --host ("": of this machine); UsageError for an address."""
    name = host.rpartition("@")[2] or socket.gethostname()
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name)
        raise UsageError(
            f"{name} is an address, and Slurm has names of nodes", "name it: --node NAME"
        )
    return name.partition(".")[0]


def show(out: Any, data: Dict) -> None:
    """Print the lines, each below the name of its file."""

    def line(text: str) -> None:
        out.print(text, markup=False, highlight=False, soft_wrap=True)

    resources, node = data["resources"], data["node"]
    for one in data["skipped"]:
        line(f"# not counted: {one}")
    line("# gres.conf")
    for one in resources:
        line(
            f"NodeName={node} Name={one['name']} Type={one['type']} Count={one['count']} "
            "Flags=CountOnly"
        )
    line("# slurm.conf; the last line goes into that of the node")
    line("GresTypes=" + ",".join(dict.fromkeys(one["name"] for one in resources)))
    words = [f"{one['name']}:{one['type']}:{one['count']}" for one in resources]
    line(f"NodeName={node} Gres={','.join(words)}")


@contextlib.contextmanager
def _failures_of_files() -> Iterator[None]:
    """Raise SutroError for an OSError, whose file it names."""
    try:
        yield
    except OSError as error:
        raise of_file(error.filename or "input or output", error) from None


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="sutro-slurm", description="Floors of Slurm jobs.", epilog="See sutro-slurm(8)."
    )
    parser.add_argument("--version", action="version", version=f"sutro-slurm {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb")
    for name, text in (("prolog", "set the floors of a job"), ("epilog", "reset them")):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("cgroup", metavar="CGROUP", help="the cgroup of the job")
        if name == "prolog":
            verb.add_argument("extra", metavar="EXTRA", help="the text of --extra of the job")
    verbs.add_parser("watch", help="the service: late resets, and draining")
    verbs.add_parser("reset", help="reset the floors of all jobs")
    args = parser.parse_args(argv)
    runs = {
        "prolog": lambda: prolog(args.cgroup, args.extra),
        "epilog": lambda: epilog(args.cgroup),
        "watch": lambda: Watch().run(),
        "reset": reset,
    }
    try:
        with _failures_of_files():
            asyncio.run(runs[args.verb]())
    except SutroError as error:
        print(f"sutro-slurm: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"             {error.hint}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0
