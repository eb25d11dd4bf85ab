"""The fields of squeue: their names, titles and values.

Titles and values are those of squeue 22.05; what has no meaning on one machine has the value that a cluster
shows where it is not used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tfjobtui.schedulers.local.commands.forms import moment, short_clock
from tfjobtui.schedulers.local.commands.job_rows import Row
from tfjobtui.schedulers.local.environment import CLUSTER


class Field(NamedTuple):
    """A column."""

    title: str
    value: Callable[[Row], str]


def _reason_or_nodes(row: Row) -> str:
    if row.is_pending or row.state.short in ("F", "TO", "OOM", "DL"):
        return f"({row.reason})"
    return row.nodes


def _left(row: Row) -> str:
    limit = row.record.time_limit_s
    used = 0 if row.is_pending else row.elapsed_s
    if limit == float("inf"):
        return "UNLIMITED"
    return short_clock(max(0.0, limit - used))


def _start(row: Row) -> str:
    begin_s = row.record.request.begin_s if row.is_pending else None
    return moment(row.record.start_s if row.has_begun else begin_s, "N/A")


def _end(row: Row) -> str:
    return moment(row.due_s, "N/A")


def _eligible(row: Row) -> str:
    return moment(row.eligible_s, "N/A")


def _stdout(row: Row) -> str:
    """The pattern as it is, or the name that a job without one gets."""
    request = row.record.request
    if not request.stdout and row.record.array_tasks is not None:
        return f"{request.work_dir}/slurm-%A_%a.out"
    return request.stdout or row.file("")


def _stderr(row: Row) -> str:
    return row.record.request.stderr or _stdout(row)


def _or_null(name: str) -> Callable[[Row], str]:
    return lambda row: str(getattr(row.record.request, name)) or "(null)"


def _always(text: str) -> Callable[[Row], str]:
    return lambda _: text


def _tres_per(what: str) -> Callable[[Row], str]:
    return lambda row: row.tres_per(what) or "N/A"


FIELDS: Mapping[str, Field] = {
    "account": Field("ACCOUNT", _or_null("account")),
    "accruetime": Field("ACCRUE_TIME", _eligible),
    "admin_comment": Field("ADMIN_COMMENT", _always("(null)")),
    "allocnodes": Field("ALLOC_NODES", lambda row: row.around.host),
    "arrayjobid": Field("ARRAY_JOB_ID", lambda row: str(row.record.array_job_id or row.record.id)),
    "arraytaskid": Field("ARRAY_TASK_ID", lambda row: row.array_task),
    "batchflag": Field("BATCH_FLAG", _always("1")),
    "batchhost": Field("EXEC_HOST", lambda row: row.nodes or "n/a"),
    "cluster": Field("CLUSTER", _always(CLUSTER)),
    "command": Field("COMMAND", lambda row: row.command),
    "comment": Field("COMMENT", _or_null("comment")),
    "contiguous": Field("CONTIGUOUS", _always("0")),
    "cores": Field("CORES_PER_SOCKET", _always("*")),
    "corespec": Field("CORE_SPEC", _always("N/A")),
    "cpuspertask": Field("CPUS_PER_TASK", lambda row: str(row.record.request.cpus_per_task or 1)),
    "deadline": Field("DEADLINE", lambda row: moment(row.record.request.deadline_s, "N/A")),
    "dependency": Field("DEPENDENCY", lambda row: row.dependency),
    "eligibletime": Field("ELIGIBLE_TIME", _eligible),
    "endtime": Field("END_TIME", _end),
    "exit_code": Field("EXIT_CODE", lambda row: str(_wait_status(row))),
    "feature": Field("FEATURES", _always("(null)")),
    "groupid": Field("GROUP", lambda _: str(os.getgid())),
    "groupname": Field("GROUP", lambda row: row.around.group),
    "hetjobid": Field("HET_JOB_ID", _always("N/A")),
    "hetjobidset": Field("HET_JOB_ID_SET", _always("N/A")),
    "hetjoboffset": Field("HET_JOB_OFFSET", _always("N/A")),
    "jobarrayid": Field("JOBID", lambda row: row.array_id),
    "jobid": Field("JOBID", lambda row: str(row.record.id)),
    "licenses": Field("LICENSES", _always("(null)")),
    "maxcpus": Field("MAX_CPUS", lambda row: str(row.cpus)),
    "maxnodes": Field("MAX_NODES", _always("1")),
    "mincpus": Field("MIN_CPUS", lambda row: str(row.record.request.cpus_per_task or 1)),
    "minmemory": Field("MIN_MEMORY", lambda row: row.least_memory[1]),
    "mintmpdisk": Field("MIN_TMP_DISK", _always("0")),
    "name": Field("NAME", lambda row: row.record.request.name),
    "network": Field("NETWORK", _always("(null)")),
    "nice": Field("NICE", lambda row: str(row.record.request.nice)),
    "nodelist": Field("NODELIST", lambda row: row.nodes),
    "ntpernode": Field("NTASKS_PER_NODE", lambda row: str(row.record.request.ntasks_per_node or 0)),
    "numcpus": Field("CPUS", lambda row: str(row.cpus)),
    "numnodes": Field("NODES", _always("1")),
    "numtasks": Field("TASKS", lambda row: str(row.record.request.task_count)),
    "oversubscribe": Field("OVER_SUBSCRIBE", lambda row: "NO" if row.record.request.exclusive else "OK"),
    "partition": Field("PARTITION", lambda row: row.partition),
    "pendingtime": Field("PENDING_TIME", lambda row: str(_waited_s(row))),
    "priority": Field("PRIORITY", lambda row: f"{row.priority / 2**32:.14f}"),
    "prioritylong": Field("PRIORITY", lambda row: str(row.priority)),
    "qos": Field("QOS", lambda row: row.record.request.qos or "normal"),
    "reason": Field("REASON", lambda row: row.reason),
    "reasonlist": Field("NODELIST(REASON)", _reason_or_nodes),
    "reboot": Field("REBOOT", _always("0")),
    "reqnodes": Field("REQ_NODES", _always("")),
    "requeue": Field("REQUEUE", lambda row: "0" if row.record.request.requeue is False else "1"),
    "reservation": Field("RESERVATION", _always("(null)")),
    "restartcnt": Field("RESTART_COUNT", lambda row: str(row.record.restarts)),
    "schednodes": Field("SCHEDNODES", _always("(null)")),
    "sct": Field("S:C:T", _always("*:*:*")),
    "sockets": Field("SOCKETS_PER_NODE", _always("*")),
    "starttime": Field("START_TIME", _start),
    "state": Field("STATE", lambda row: row.state.long),
    "statecompact": Field("ST", lambda row: row.state.short),
    "stderr": Field("STDERR", _stderr),
    "stdin": Field("STDIN", lambda row: row.record.request.stdin or os.devnull),
    "stdout": Field("STDOUT", _stdout),
    "submittime": Field("SUBMIT_TIME", lambda row: moment(row.record.submit_s)),
    "system_comment": Field("SYSTEM_COMMENT", _always("(null)")),
    "threads": Field("THREADS_PER_CORE", _always("*")),
    "timeleft": Field("TIME_LEFT", _left),
    "timelimit": Field("TIME_LIMIT", lambda row: short_clock(row.record.time_limit_s)),
    "timeused": Field("TIME", lambda row: short_clock(0 if row.is_pending else row.elapsed_s)),
    "tres-alloc": Field("TRES_ALLOC", lambda row: ",".join(row.tres)),
    "tres-per-job": Field("TRES_PER_JOB", _tres_per("job")),
    "tres-per-node": Field("TRES_PER_NODE", _tres_per("node")),
    "tres-per-socket": Field("TRES_PER_SOCKET", _tres_per("socket")),
    "tres-per-task": Field("TRES_PER_TASK", _tres_per("task")),
    "userid": Field("UID", lambda _: str(os.getuid())),
    "username": Field("USER", lambda row: row.around.user),
    "wckey": Field("WCKEY", _always("(null)")),
    "workdir": Field("WORK_DIR", lambda row: row.record.request.work_dir),
}
"""By the names that `-O` has for them, in small letters."""
SAME = {
    "gres": "tres-per-node", "shared": "oversubscribe", "cpus-per-task": "cpuspertask", "tres": "tres-alloc",
    "packjobid": "hetjobid", "packjobidset": "hetjobidset", "packjoboffset": "hetjoboffset", "tasks": "numtasks",
}  # fmt: skip
"""Other names of the same fields."""
LETTERS: Mapping[str, str] = {
    "a": "account", "A": "jobid", "b": "tres-per-node", "B": "batchhost", "c": "mincpus", "C": "numcpus",
    "d": "mintmpdisk", "D": "numnodes", "e": "endtime", "E": "dependency", "f": "feature", "F": "arrayjobid",
    "g": "groupname", "G": "groupid", "h": "oversubscribe", "H": "sockets", "i": "jobarrayid", "I": "cores",
    "j": "name", "J": "threads", "k": "comment", "K": "arraytaskid", "l": "timelimit", "L": "timeleft",
    "m": "minmemory", "M": "timeused", "n": "reqnodes", "N": "nodelist", "o": "command", "O": "contiguous",
    "p": "priority", "P": "partition", "q": "qos", "Q": "prioritylong", "r": "reason", "R": "reasonlist",
    "S": "starttime", "t": "statecompact", "T": "state", "u": "username", "U": "userid", "v": "reservation",
    "V": "submittime", "w": "wckey", "W": "licenses", "x": "exc_nodes", "X": "corespec", "y": "nice",
    "Y": "schednodes", "z": "sct", "Z": "workdir",
}  # fmt: skip
"""The letters of `-o`."""
UNCUT_TITLES = frozenset({"nodelist", "reasonlist", "schednodes"})
UNCUT = UNCUT_TITLES | {"timeleft", "timelimit", "timeused"}
"""Columns that stay whole where they are right-aligned."""


def _wait_status(row: Row) -> int:
    """The exit code as waitpid has it, as squeue shows it up to 22.05."""
    code = row.record.exit_code
    return 0 if code is None else code.code << 8 | code.signal


def _waited_s(row: Row) -> int:
    end_s = row.record.start_s if row.has_begun else row.around.now_s
    return max(0, int((end_s or 0) - row.record.submit_s))
