"""Scripts given to the real sbatch and to the reader of the embedded scheduler: both take them alike.

What scontrol shows of the job that sbatch made (held, so that nothing runs) has to be what was read. Answers of
Slurm depend on who asks, so these tests run as an ordinary user.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tfjobtui.errors import SubmissionError
from tfjobtui.schedulers.local.moments import size_bytes
from tfjobtui.schedulers.local.options import ParsedJob, parse_job
from tfjobtui.schedulers.local.request import JobRequest

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_env")]

NAME = "job.sh"
HELD = ("--hold", "--parsable")


@dataclass(frozen=True)
class Case:
    """A submission: the script's text, words of the command line before it and after it, variables."""

    script: str
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    title: str = ""


def case(
    *directives: str,
    options: str = "",
    arguments: str = "",
    environment: Mapping[str, str] | None = None,
    head: str = "#!/bin/bash\n",
    rest: str = "true\n",
) -> Case:
    """Directives without their `#SBATCH`."""
    script = head + "".join(f"#SBATCH {line}\n" for line in directives) + rest
    given = dict(environment or {})
    title = " ".join([*directives, options, *(f"{name}={value}" for name, value in given.items())])
    return Case(
        script, tuple(options.split()), tuple(arguments.split()), given, title.strip() or repr(script)
    )


def text(script: str) -> Case:
    return Case(script, title=repr(script[:60]))


# ---- What real sbatch said


class Desk:
    """The real sbatch."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self._usual: dict[str, str] | None = None

    def submit(self, submission: Case, folder: Path) -> tuple[str, str]:
        """The id, empty if it was refused, and what was said."""
        (folder / NAME).write_bytes(submission.script.encode("utf-8", "surrogateescape"))
        done = subprocess.run(
            ["sbatch", *HELD, *submission.options, NAME, *submission.arguments],
            cwd=folder,
            env={**plain_environment(), **submission.environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        match = re.search(r"^(\d+)(?:;\S+)?$", done.stdout, re.MULTILINE)
        assert (match is not None) == (done.returncode == 0), done
        if match is None:
            return "", done.stderr
        self.taken.append(match[1])
        return match[1], done.stderr

    def usual(self, folder: Path) -> dict[str, str]:
        """What scontrol shows of a job that asks for nothing."""
        if self._usual is None:
            number, said = self.submit(case(), folder)
            assert number, said
            self._usual = shown(number)
        return self._usual


def plain_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "SLURM_CONF") if name in os.environ}


def shown(number: str) -> dict[str, str]:
    """The fields of `scontrol show job`."""
    done = subprocess.run(
        ["scontrol", "show", "job", number], capture_output=True, text=True, check=True, timeout=60
    )
    record = done.stdout.rstrip("\n")
    fields = dict(re.findall(r"(?:^|(?<=\s))([A-Za-z:/]+)=(\S*)", record))
    # Free text has a line of its own, or is the last of one.
    for name in ("JobName", "Comment", "Command", "WorkDir", "StdErr", "StdIn", "StdOut"):
        match = re.search(rf"(?:^|\s){name}=(.*)$", record, re.MULTILINE)
        fields[name] = match[1] if match else ""
    return fields


@pytest.fixture(scope="module")
def desk(cluster: Cluster) -> Iterator[Desk]:
    """The real sbatch; what was submitted is cancelled at the end."""
    assert os.getuid() != 0, "Slurm lets root do what it refuses others"
    made = Desk()
    try:
        yield made
    finally:
        if made.taken:
            environment = {**os.environ, **cluster.env}
            subprocess.run(["scancel", *made.taken], env=environment, check=False, timeout=60)


def parsed(submission: Case, folder: Path) -> ParsedJob:
    return parse_job(
        submission.script,
        command_line=[*HELD, *submission.options, NAME, *submission.arguments],
        environment=submission.environment,
        script_path=str(folder / NAME),
        arguments=submission.arguments,
        submit_dir=str(folder),
        now_s=time.time(),
    )


def refusal(submission: Case, folder: Path) -> str | None:
    """Why we refuse it, if we do."""
    try:
        parsed(submission, folder)
    except SubmissionError as error:
        return error.message
    return None


# ---- Comparing them


def differences(
    request: JobRequest, fields: Mapping[str, str], usual: Mapping[str, str], number: str
) -> dict[str, object]:
    """Each field that differs, with both values."""
    return {
        name: (theirs, ours)
        for name, (theirs, ours) in {
            **_texts(request, fields, number),
            **_sizes(request, fields, usual),
            **_times(request, fields, usual),
            **_array(request, fields),
        }.items()
        if theirs != ours
    }


_Pairs = dict[str, tuple[object, object]]


def _texts(request: JobRequest, fields: Mapping[str, str], number: str) -> _Pairs:
    default = f"{request.work_dir}/slurm-{'%A_%a' if request.array else '%j'}.out"
    names = {"%j": number, "%A": number, "%x": request.name, "%a": "4294967294"}
    expand = _expander(names)
    output = expand(request.stdout or default)
    dependency = re.sub(r"\(\w+\)|_\*", "", fields["Dependency"])
    return {
        "name": (fields["JobName"], request.name),
        "command": (fields["Command"], " ".join([request.command, *request.arguments])),
        "folder": (fields["WorkDir"], request.work_dir),
        "output": (fields["StdOut"], output),
        "error": (fields["StdErr"] or output, expand(request.stderr) if request.stderr else output),
        "input": (fields["StdIn"], request.stdin or "/dev/null"),
        "comment": (fields["Comment"].removesuffix(" "), request.comment),
        "partition": (fields["Partition"] if request.partition else "", request.partition),
        "account": (fields["Account"] if request.account else "", request.account),
        "dependency": ("" if dependency == "null" or dependency == "" else dependency, request.dependency),
        "requeue": (fields["Requeue"], "0" if request.requeue is False else "1"),
        "nice": (fields["Nice"], str(request.nice)),
        "exclusive": (fields["OverSubscribe"] == "NO", request.exclusive),
        "hold": (fields["Reason"] == "JobHeldUser", request.hold),
    }


def _expander(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda pattern: re.sub(r"%[jAxa]", lambda match: names[match[0]], pattern)


def _sizes(request: JobRequest, fields: Mapping[str, str], usual: Mapping[str, str]) -> _Pairs:
    tres = dict(re.findall(r"([a-z/:0-9]+)=([^,]+)", fields.get("ReqTRES") or fields["TRES"]))
    pairs: _Pairs = {
        "gpus": (int(tres.get("gres/gpu", 0)), request.gpus),
        "gpu type": (
            next((name[9:] for name in tres if name.startswith("gres/gpu:")), None),
            request.gpu_type,
        ),
        "tasks": (fields["NumTasks"], str(request.task_count)),
        "cpus per task": (fields["CPUs/Task"], str(request.cpus_per_task or 1)),
        "tasks per node": (fields["NtasksPerN:B:S:C"].split(":")[0], str(request.ntasks_per_node or 0)),
    }
    if not request.min_cpus:
        pairs["cpus"] = (fields["NumCPUs"].split("-")[0], str(request.cpus))
    if request.memory_per_gpu is not None:
        pairs["memory"] = (size_bytes(tres["mem"]), request.memory_bytes)
    elif request.memory_per_node is not None:
        pairs["memory"] = (_bytes(fields["MinMemoryNode"]), request.memory_per_node)
    elif request.memory_per_cpu is not None:
        pairs["memory"] = (_bytes(fields["MinMemoryCPU"]), request.memory_per_cpu)
    else:
        pairs["memory"] = (fields.get("MinMemoryCPU"), usual.get("MinMemoryCPU"))
    if request.gpu_type not in (None, "a100", "v100"):
        del pairs["gpu type"]  # scontrol counts the types that are configured only
    return pairs


def _bytes(shown_size: str) -> int:
    """`4G`, `1.50T`."""
    match = re.fullmatch(r"([\d.]+)([MGTP]?)", shown_size)
    assert match is not None, shown_size
    return int(float(match[1]) * {"": 1, "M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}[match[2]]) << 20


def _times(request: JobRequest, fields: Mapping[str, str], usual: Mapping[str, str]) -> _Pairs:
    pairs: _Pairs = {}
    if math.isinf(request.time_limit_s):
        pairs["time"] = (fields["TimeLimit"] in ("UNLIMITED", usual["TimeLimit"]), True)
    else:
        pairs["time"] = (_seconds(fields["TimeLimit"]), request.time_limit_s)
    for name, moment in (("EligibleTime", request.begin_s), ("Deadline", request.deadline_s)):
        if moment is not None and moment > time.time():
            pairs[name] = (abs(_moment(fields[name]) - moment) <= 5, True)
    return pairs


def _seconds(limit: str) -> float:
    days, _, clock = limit.rpartition("-")
    hours, minutes, seconds = map(int, clock.split(":"))
    return float(int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds)


def _moment(shown_time: str) -> float:
    return time.mktime(time.strptime(shown_time, "%Y-%m-%dT%H:%M:%S"))


def _array(request: JobRequest, fields: Mapping[str, str]) -> _Pairs:
    tasks, _, throttle = fields.get("ArrayTaskId", "").partition("%")
    theirs: set[int] = set()
    for part in filter(None, tasks.split(",")):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part).groups()  # type: ignore[union-attr]
        theirs |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    ours = request.array
    return {
        "tasks of the array": (theirs, set(ours or ())),
        "throttle": (throttle, str(ours.throttle or "") if ours else ""),
    }


# ---- The submissions

BODY = "#!/bin/bash\n"

SCRIPTS = [
    # Where directives stop, and which lines are some.
    text(BODY + "#SBATCH --comment=a\n\n  # remark\n#SBATCH -n 2\nset -e\n#SBATCH -n 3\n"),
    text(BODY + "#SBATCH-n 2\n"),
    text(BODY + " #SBATCH -n 2\n"),
    text(BODY + "# SBATCH -n 2\n"),
    text(BODY + "##SBATCH -n 2\n"),
    text(BODY + "#sbatch -n 2\n"),
    text(BODY + "#SLURM -n 2\n"),
    text(BODY + "\t\n#SBATCH -n 2\n: \n#SBATCH -n 3\n"),
    text(BODY + "#SBATCH\n#SBATCH \t\n#SBATCH -n\n#SBATCH 2\ntrue\n"),
    text("#!/bin/bash #SBATCH -n 3\n#SBATCH -n 2\n"),
    text(BODY + "#SBATCH -n 2"),
    text("#!/bin/bash"),
    text("#! /usr/bin/env python3\n#SBATCH -n 2\nprint()\n"),
    # Quotes, backslashes, comments, several on a line.
    case('-J "Big simulation" --comment=\'it is "so"\''),
    case(r"--comment=a\\c -n 2"),
    case(r'--comment="a\ b\\c" -n 2'),
    case(r'--comment="a\"b" -J "it' "'" 's"'),
    case("--comment=a#b -n 2"),
    case('--comment="a#b" # why -n 2'),
    case(r"--comment=a\#b"),
    case("--comment=$HOME -J `x`"),
    case("--comment= -n 2"),
    case('--comment=""'),
    case('"" -n 2'),
    case("-n 2 -c3 -J x --mem=64M"),
    case("-HQ -n 2"),
    case("-J", "name"),
    case("-J ''", "-n 2"),
    case("-n 3 hetjob"),
    case("-J 'ä ö' --comment='=, |'"),
    case("-J Big simulation"),
    case('-J "Big'),
    case("-J 'Big"),
    case("--bogus=1"),
    case("-j 1"),
    case(": -n 1"),
    case("stop-here"),
    case("--"),
    case("-- -n 2"),
    case("-"),
    # Scripts that are none.
    text(""),
    text(" \n\t\n"),
    text("echo hello\n"),
    text("\n#!/bin/bash\n"),
    text(BODY + "echo a\0b\n"),
    text("\0"),
    text(BODY + "#SBATCH -n 2\r\ntrue\r\n"),
    text(BODY + "#SBATCH --comment=a\rb\n"),
    text("#!/bin/bash\n# \xff\udcff\n#SBATCH -n 2\n"),
    # Names of options.
    case("--part=cpu"),
    case("--ntasks-per-n=2"),
    case("--mem-=2"),
    case("--no"),
    case("--time"),
    case("--hold=1"),
    case("--tasks-per-node=2"),
    case("--x11"),
    case("--partition cpu --ntasks 2"),
    case("-t90"),
    case("--wrap=true"),
    case("--help --version -v"),
    # Time limits.
    *(case(f"--time={limit}") for limit in "90 1:30 1:30:00 2-12 2-12:30 2-0:0:1 0:1 0 -1 1-".split()),
    *(case(f"--time={limit}") for limit in "INFINITE unlimited 007 5:90 0-0:30".split()),
    *(case(f"--time={limit}") for limit in ["abc", "1:2:3:4", "1-2-3", ":30", "5:", "1.5", "30m", "", "5 "]),
    case("--time-min=5 --time=10"),
    case("--time-min=15 --time=10"),
    # Moments.
    *(case(f"--begin={begin}") for begin in "now now+1hour now+90 now+2days now-1hour tomorrow".split()),
    *(
        case(f"--begin={begin}")
        for begin in "23:59 4:00pm midnight noon teatime fika 0131 12/24 12.24.30".split()
    ),
    *(
        case(f"--begin={begin}")
        for begin in "2035-12-01 2035-12-01T10:00 2035-12-01T10:00:30 2035-02-31".split()
    ),
    *(
        case(f"--begin='{begin}'")
        for begin in ["now + 2 hours", "noon tomorrow", "12:30 am", "uts2000000000"]
    ),
    *(
        case(f"--begin='{begin}'")
        for begin in ["now+1h", "nowx", "Tomorrow", "4pm", "25:00", "131", "1331", ""]
    ),
    *(case(f"--begin='{begin}'") for begin in ["2035-13-01", "12:60", "uts5", "x", "now+", "now+hour"]),
    case("--deadline=now+1hour"),
    case("--deadline=now-1hour"),
    case("--deadline=now+1hour --begin=now+2hours"),
    # Sizes.
    *(case(f"--mem={size}") for size in "64 64M 2048K 2049K 4G 4GB 1T 0 +64 4g 4gb".split()),
    *(
        case(f"--mem={size}")
        for size in ["1P", "1.5G", "4B", "-1", "", "4 G", "G", "0x40", "99999999999999999999"]
    ),
    case("--mem-per-cpu=64M -n 2 -c 2"),
    case("--mem-per-cpu=0"),
    case("--mem=1G --mem-per-cpu=1G"),
    case("--mem=1G --mem=2G"),
    case("--mem=1G", options="--mem-per-cpu=1G"),
    case("--mem=1G", options="--mem=2G"),
    case("--mem-per-gpu=64M --gpus=2"),
    case("--mem-per-gpu=64M"),
    case("--tmp=1G --mem=64"),
    case("--tmp=x"),
    # Counts.
    case("-n 2 -c 3"),
    case("--ntasks=+2"),
    *(case(f"--ntasks={count}") for count in ["0", "-1", "2k", "x", "", "1.5", "9223372036854775807"]),
    *(case(f"--cpus-per-task={count}") for count in ["0", "-4", "4x", ""]),
    case("--ntasks-per-node=3"),
    case("-N1 --ntasks-per-node=3"),
    case("-n2 --ntasks-per-node=4"),
    case("-n4 -O"),
    case("--mincpus=4 -n 2"),
    case("-N1 -B 1:2:2"),
    case("-N1 --threads-per-core=2"),
    *(case(f"--nodes={nodes}") for nodes in ["1", "1-1", "1-4", "-4", "1-", "4-1", "x", "1x", "", "1--4"]),
    case("-N 4 -n 1"),
    case("--exclusive"),
    case("--exclusive=user"),
    case("--exclusive --oversubscribe"),
    case("--exclusive=1"),
    # GPUs.
    *(
        case(f"--gres={gres}")
        for gres in "gpu gpu:2 gpu:a100:2 gpu:a100 gpu:0 none gpu:1,gpu:2 gpu:a100:0".split()
    ),
    *(
        case(f"--gres={gres}")
        for gres in "gpu: gpu:a100: gpu::1 gpu:1.5 shard:1 gpu:1,shard:1 licence:1".split()
    ),
    case("--gres=gpu:a100:2,shard:1"),
    case("--gres=gpu:2,gpu:a100:1"),
    case("--gres="),
    *(case(f"--gpus={gpus}") for gpus in "1 a100:2 a100 0 nonsense:1 2k".split()),
    *(case(f"--gpus={gpus}") for gpus in ["a:b:1", ":1", "a100:", "1.5"]),
    case("--gpus-per-node=a100:1"),
    case("--gpus-per-task=1"),
    case("-n2 --gpus-per-task=1"),
    case("-N1 --gpus-per-task=1"),
    case("-N1 -c4 --gpus-per-task=1"),
    case("--gpus=4 --gpus-per-task=2"),
    case("--gpus=3 --gpus-per-task=2"),
    case("--gpus=4 --gpus-per-task=2 -n 3"),
    case("--gpus=1 --gpus-per-node=2"),
    case("--gpus=2 --gres=gpu:a100:1"),
    case("--gpus-per-socket=1"),
    case("--gpus-per-socket=1 --sockets-per-node=1"),
    case("--gpus=2 --cpus-per-gpu=3"),
    case("--gpus=2 --cpus-per-gpu=3 -c 3"),
    case("--gpus=2 --ntasks-per-gpu=2"),
    case("-n 4 --ntasks-per-gpu=2"),
    case("--ntasks-per-gpu=2"),
    case("--gpus=2 --ntasks-per-gpu=2 --ntasks-per-node=2"),
    # Arrays.
    *(
        case(f"--array={array}")
        for array in "0-9 1,3,5 0-30:10 1-5%2 [1-3]%2 1,1-3 9,1-3 %5 1-3%x 0- 1-1".split()
    ),
    *(case(f"--array={array}") for array in ["", ",", "1,,2", "1-9:3,20", "0-1000", "5-9:100", "1-5%2,7"]),
    *(
        case(f"--array={array}")
        for array in ["a", "1-5:0", "5-1", "-3", "1-x", "1;2", "1 2", "99999999", "1-5:"]
    ),
    case("--array=1-4 -o %A_%a.out -e %x-%j.err"),
    # Dependencies.
    *(
        case(f"--dependency={what}")
        for what in ["", "0", "12", "12,13", "singleton", "afterok:1:2,singleton"]
    ),
    *(
        case(f"--dependency={what}")
        for what in ["afterany:1?afterok:2", "AFTEROK:5", "aftercorr:5", "after:1+5"]
    ),
    *(case(f"--dependency={what}") for what in ["afterok:5_2:6_*", "afternotok:7"]),
    *(
        case(f"--dependency={what}")
        for what in ["afterok:0", "afterok", "afterok:", "afterok:x", "bogus:5", "x"]
    ),
    *(case(f"--dependency={what}") for what in ["after:1+0", "expand:1"]),
    # Signals.
    *(
        case(f"--signal={signal}")
        for signal in "USR1 10 SIGUSR1 usr1@5 B:USR1@120 R:10 RB:TERM@1 BTERM USR1@".split()
    ),
    *(
        case(f"--signal={signal}")
        for signal in ["BUS", "WINCH", "sigusr1@70000", "USR1@x", "", "@5", "X:USR1", "0"]
    ),
    # Files and folders.
    case("-o out.txt"),
    case("-o /tmp/%j.out -e err"),
    case("-o %j/%x.%A"),
    case("-o none -i none"),
    case("-i in.txt"),
    case("--output="),
    case("-D sub"),
    case("-D sub -o out -i in"),
    case("-D ."),
    case("-D /tmp"),
    case("-D ../up"),
    case("--open-mode=append"),
    case("--open-mode=Truncate"),
    case("--open-mode=x"),
    case("-J 'a/b c'"),
    case("--job-name="),
    case("-J %j"),
    case(arguments="one -n 2 --three"),
    # Text that is too long.
    case("--comment=" + "x" * 1024),
    case("--comment=" + "x" * 1025),
    case("-J " + "x" * 1025),
    case("-o " + "x" * 4096),
    # All others.
    *(case(f"--nice{value}") for value in ["", "=5", "=abc", "=-5", "=99999999999"]),
    *(case(f"--kill-on-invalid-dep={value}") for value in ["yes", "no", "y"]),
    *(case(f"--mail-type={value}") for value in ["NONE", "END,FAIL", "BAD"]),
    *(case(f"--propagate{value}") for value in ["", "=NONE", "=STACK,RLIMIT_CORE", "=BAD"]),
    *(case(f"--get-user-env{value}") for value in ["", "=10L", "=x"]),
    *(case(f"--no-kill{value}") for value in ["", "=off", "=maybe"]),
    *(case(f"--wait-all-nodes={value}") for value in ["0", "2"]),
    *(case(f"--distribution={value}") for value in ["block:cyclic", "*:block", "plane=2", "plane", "bad"]),
    *(case(f"--hint={value}") for value in ["bad", "nomultithread"]),
    *(case(f"--export={value}") for value in ["ALL", "NONE", "NIL", "A=1,B", "ALL,A=1", "", "A='1,2'"]),
    *(
        case(f"--{name}=bad")
        for name in "mem-bind gpu-bind gpu-freq cpu-freq profile gres-flags acctg-freq".split()
    ),
    *(case(f"--{name}=bad") for name in "switches delay-boot core-spec thread-spec uid gid".split()),
    case("--mem-bind=local --gpu-bind=single:1 --gpu-freq=high,memory=low --cpu-freq=low-high:perf"),
    case("--profile=task --gres-flags=enforce-binding --acctg-freq=task=1 --switches=1@5"),
    case("--no-requeue"),
    case("--no-requeue --requeue"),
    case("--requeue=x"),
    case("--account=ABC --wckey=x"),
    case("--reboot"),
    case("--clusters=other"),
    case("--priority=5 --contiguous --spread-job --use-min-nodes -k"),
    case("--bbf=/nowhere/at-all"),
    case("--export-file=/nowhere/at-all"),
    # Precedence: command line, then environment, then script.
    case("-n 2 --time=5", options="-n 3", environment={"SBATCH_TIMELIMIT": "10"}),
    case("--time=5", options="-t 20", environment={"SBATCH_TIMELIMIT": "10"}),
    case("-n 2", environment={"SBATCH_JOB_NAME": "by environment", "SBATCH_ARRAY_INX": "1-3"}),
    case("-p gpu", environment={"SBATCH_PARTITION": "cpu", "SBATCH_OUTPUT": "out-%j", "SBATCH_ERROR": "err"}),
    case("--mem=1G", environment={"SBATCH_MEM_PER_CPU": "64M"}),
    case(environment={"SBATCH_MEM_PER_CPU": "64M"}),
    case(environment={"SBATCH_MEM_PER_CPU": "64M", "SBATCH_MEM_PER_NODE": "64M"}),
    case("--requeue", environment={"SBATCH_NO_REQUEUE": ""}),
    case("--requeue", environment={"SBATCH_NO_REQUEUE": "1"}),
    case("--no-requeue", environment={"SBATCH_REQUEUE": "no"}),
    case("--no-requeue", environment={"SBATCH_REQUEUE": "yes"}),
    case(environment={"SBATCH_EXCLUSIVE": ""}),
    case(environment={"SBATCH_EXCLUSIVE": "yes"}),
    case(environment={"SBATCH_GPUS": "2", "SBATCH_CPUS_PER_GPU": "1"}),
    case(environment={"SBATCH_GRES": "gpu:1", "SBATCH_SIGNAL": "USR1@5", "SBATCH_OPEN_MODE": "a"}),
    case(environment={"SBATCH_TIMELIMIT": "soon"}),
    case("--time=soon", options="--time=5"),
    case(environment={"SBATCH_OVERCOMMIT": "1", "SBATCH_ACCOUNT": "x"}, options="-n 4"),
]

OURS_ALONE = [
    (case("--nodes=2"), "line 2: --nodes=2: this machine is one node; several nodes need Slurm"),
    (case("-N 2-4"), "this machine is one node"),
    (case("-w cpu01,cpu02"), "this machine is one node"),
    (case("-n4 --ntasks-per-node=2"), "4 tasks need several nodes"),
    (case("--gpus=2 --gpus-per-node=1"), "this machine is one node"),
    (case("-n 1", "hetjob"), "line 3: a heterogeneous job"),
    (case("-n 1", "hetjob", "-n 1"), "line 3: a heterogeneous job"),
    (text(BODY + "#SBATCH -n 1\n#SBATCH packjob\n#SBATCH -n 1\n"), "line 3: a heterogeneous job"),
    (case("--gpus=a100:1,v100:1"), "GPUs of several types"),
    (case("--bb=x"), "burst buffers need Slurm"),
    (case("--container=/x"), "containers are not started here"),
    # Slurm takes these for thousands of years, or for a signal that cannot be sent.
    (case("--time=-5"), "'-5' is no time"),
    (case("--signal=99"), "there is no signal '99'"),
    # The test cluster allows larger arrays than Slurm's default.
    (case("--array=1001"), "Invalid job array specification"),
]


def test_there_are_enough_of_them() -> None:
    assert len(SCRIPTS) >= 80
    assert len({(item.script, item.options, item.title) for item in SCRIPTS}) == len(SCRIPTS)


@pytest.mark.parametrize("submission", SCRIPTS, ids=lambda item: item.title[:70])
def test_both_take_a_script_alike(submission: Case, desk: Desk, tmp_path: Path) -> None:
    usual = desk.usual(tmp_path)
    number, said = desk.submit(submission, tmp_path)
    refused = refusal(submission, tmp_path)
    assert bool(number) == (refused is None), f"sbatch said {said!r}, and we {refused!r}"
    if number:
        request = parsed(submission, tmp_path).request
        assert differences(request, shown(number), usual, number) == {}


@pytest.mark.parametrize(
    ("submission", "words"), OURS_ALONE, ids=lambda item: item.title[:70] if isinstance(item, Case) else ""
)
def test_what_one_machine_refuses_is_right_for_slurm(
    submission: Case, words: str, desk: Desk, tmp_path: Path
) -> None:
    number, said = desk.submit(submission, tmp_path)
    assert number, said
    assert words in (refusal(submission, tmp_path) or "")
