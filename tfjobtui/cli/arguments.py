"""The options and arguments of every command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from tfjobtui import __version__
from tfjobtui.cli.choice import NAMES
from tfjobtui.errors import UsageError

_JOB_HELP = "a job: 123, 123_4, 123_[5-9] or 123+1"


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, so that every message has the same form."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"`{self.prog} --help` shows the usage.")


SBATCH_OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("-t", "--time", "time limit: 30 (minutes), 1:30:00, 2-12 (2 days, 12 hours)"),
    ("-p", "--partition", "partition"),
    ("-G", "--gpus", "GPUs in all: 2, a100:2"),
    ("", "--gpus-per-node", "GPUs on each node"),
    ("", "--gpus-per-task", "GPUs for each task"),
    ("", "--gres", "generic resources on each node: gpu:a100:2"),
    ("-c", "--cpus-per-task", "CPUs for each task"),
    ("", "--mem", "memory on each node: 64G"),
    ("", "--mem-per-cpu", "memory for each CPU"),
    ("", "--mem-per-gpu", "memory for each GPU"),
    ("-N", "--nodes", "nodes"),
    ("", "--ntasks", "tasks"),
    ("", "--ntasks-per-node", "tasks on each node"),
    ("-J", "--job-name", "name"),
    ("-A", "--account", "account"),
    ("-q", "--qos", "quality of service"),
    ("-C", "--constraint", "features that the nodes must have"),
    ("", "--reservation", "reservation"),
    ("-a", "--array", "array of tasks: 0-15%%4"),
    ("-d", "--dependency", "jobs to wait for: afterok:123"),
    ("-b", "--begin", "not before: now+1hour, 16:00"),
    ("", "--deadline", "to be ended by"),
    ("-w", "--nodelist", "nodes to use"),
    ("-x", "--exclude", "nodes not to use"),
    ("-o", "--output", "file for the output"),
    ("-e", "--error", "file for the errors"),
    ("", "--open-mode", "append or truncate"),
    ("-D", "--chdir", "folder to run in"),
    ("", "--signal", "signal before the time limit: B:USR1@300"),
    ("", "--mail-type", "when to send mail"),
    ("", "--mail-user", "whom to send mail"),
    ("", "--comment", "comment"),
    ("", "--nice", "numbers of priority to give away"),
    ("", "--export", "environment for the job"),
)
"""Options of sbatch that are handed through, with a value."""
SBATCH_FLAGS: tuple[tuple[str, str, str], ...] = (
    ("-H", "--hold", "submit it held"),
    ("", "--exclusive", "whole nodes"),
    ("", "--requeue", "let it be requeued"),
    ("", "--no-requeue", "never requeue it"),
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line. `script_arguments` are those after `--` of `submit`.

    Raises:
        UsageError: it is wrong.
    """
    before, after = _split(words)
    options = build().parse_args(before)
    options.script_arguments = after
    return options


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of `submit`, what follows `--` belongs to the script; elsewhere it is ours."""
    words = list(words)
    if "--" not in words or "submit" not in words[: words.index("--")]:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def build() -> argparse.ArgumentParser:
    """The whole parser; without a command the screens are opened."""
    parser = _Parser(
        prog="tfjobtui",
        description="Watch, submit and change jobs of a Slurm cluster, or of this machine where there is no Slurm, "
        "and see how their training goes. "
        "Without a command the screens are opened.",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"tfjobtui {__version__}")
    _add_common(parser, {"config": None, "clusters": None, "scheduler": None})
    parser.set_defaults(command=None)
    # The same options after the command; SUPPRESS, so that they do not undo those before it.
    common = _Parser(add_help=False, allow_abbrev=False)
    _add_common(common, dict.fromkeys(("config", "clusters", "scheduler"), argparse.SUPPRESS))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common], allow_abbrev=False)

    _add_reading(add)
    _add_cluster(add)
    _add_submission(add)
    _add_control(add)
    _add_local(add)
    _json(add("doctor", "what was found on this machine, what is missing, and what to do"))
    return parser


def _add_common(parser: argparse.ArgumentParser, defaults: dict[str, Any]) -> None:
    parser.add_argument(
        "--config", metavar="FILE", default=defaults["config"], help="the configuration file to use as yours"
    )
    parser.add_argument(
        "-M",
        "--clusters",
        metavar="NAMES",
        default=defaults["clusters"],
        help="clusters, with commas between them",
    )
    parser.add_argument(
        "--scheduler",
        choices=NAMES,
        default=defaults["scheduler"],
        help="auto (Slurm where it is, else this machine's own), slurm, or local",
    )


def _add_reading(add: Any) -> None:
    jobs = add("jobs", "list your jobs")
    jobs.add_argument(
        "filter", nargs="*", metavar="FILTER", help="state:run, part:gpu, name:…, gpu:>0, words"
    )
    jobs.add_argument("--all", action="store_true", help="everybody's jobs")
    jobs.add_argument("--columns", metavar="NAMES", help="columns to show, with commas between them")
    _json(jobs)
    show = add("show", "everything about one job: why it waits, or how it ended")
    show.add_argument("job", metavar="JOB", help=_JOB_HELP)
    _json(show)
    logs = add("logs", "the output of a job, or any log file")
    logs.add_argument("job", metavar="JOB|FILE", help="a job, or a file")
    logs.add_argument("-f", "--follow", action="store_true", help="go on as it grows, until the job ends")
    logs.add_argument("--stderr", action="store_true", help="the error output in place of the output")
    logs.add_argument(
        "-n", "--lines", type=_count, metavar="N", help="the last N lines only (10 with --follow, else all)"
    )


def _add_cluster(add: Any) -> None:
    cluster = add("cluster", "partitions and nodes: what is free, and whose jobs hold the rest")
    cluster.add_argument(
        "--who", action="store_true", help="everybody's jobs beside the nodes, not only yours"
    )
    _json(cluster)


def _add_submission(add: Any) -> None:
    submit = add("submit", "submit a template or a script; arguments for it follow after --")
    submit.add_argument(
        "what", metavar="TEMPLATE|SCRIPT", help="a template's name (see `templates`), or a file"
    )
    submit.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="a template's parameter",
    )
    submit.add_argument(
        "--set-up",
        action="store_true",
        help="where jobs run on this machine and TensorFlow is missing: install it first, as a job",
    )
    _dry_run(submit)
    group = submit.add_argument_group("options of sbatch")
    for short, long, text in SBATCH_OPTIONS:
        names = [name for name in (short, long) if name]
        group.add_argument(*names, dest=_dest(long), metavar="…", default=None, help=text)
    for short, long, text in SBATCH_FLAGS:
        names = [name for name in (short, long) if name]
        group.add_argument(*names, dest=_dest(long), action="store_true", help=text)
    resubmit = add("resubmit", "submit the same job again: same script, options and folder")
    resubmit.add_argument("job", metavar="JOB", help=_JOB_HELP)
    _dry_run(resubmit)
    _yes(resubmit)
    _json(add("templates", "list the templates"))


def _add_local(add: Any) -> None:
    local = add(
        "local", "the local scheduler's own commands: sbatch, squeue, scancel, scontrol, srun, sacct …"
    )
    local.add_argument(
        "local_command", metavar="COMMAND", help="a command, or `path`: the folder that has them"
    )
    local.add_argument(
        "local_arguments", nargs=argparse.REMAINDER, metavar="…", help="its options and arguments"
    )


def _add_control(add: Any) -> None:
    cancel = add("cancel", "cancel jobs, or send them a signal")
    _jobs(cancel)
    cancel.add_argument("-s", "--signal", metavar="NAME", help="send this signal instead: USR1, TERM, KILL …")
    cancel.add_argument("--pending", action="store_true", help="only what has not started yet")
    _yes(cancel)
    _jobs(add("hold", "keep waiting jobs from starting"))
    _jobs(add("release", "let held jobs start"))
    requeue = add("requeue", "end jobs and put them back into the queue")
    _jobs(requeue)
    _yes(requeue)


def sbatch_options(options: argparse.Namespace) -> tuple[str, ...]:
    """The options of sbatch that were given, as `--name=value`."""
    found = [
        f"{long}={value}"
        for _, long, _ in SBATCH_OPTIONS
        if (value := getattr(options, _dest(long))) is not None
    ]
    found.extend(long for _, long, _ in SBATCH_FLAGS if getattr(options, _dest(long)))
    return tuple(found)


def _dest(long: str) -> str:
    return "sbatch_" + long.removeprefix("--").replace("-", "_")


def _jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", nargs="+", metavar="JOB", help=_JOB_HELP)


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: one JSON object")


def _dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only show what would be submitted")


def _yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a number of lines: {text!r}")
    return int(text)
