"""What a job sees on the real cluster, and what the embedded scheduler gives the same job."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.environment import bare_login, batch_environment, exported, step_environment
from tfjobtui.schedulers.local.options import parse_job
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.records import Allocation, JobRecord

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_env")]

PATIENCE_S = 120.0
MINE = {"MINE": "yes", "OTHER": "a b\n=", "SBATCH_COMMENT_LIKE": "kept"}
SMALL = ("--mem=16M", "--time=5")

NOT_HERE = {
    "SLURM_SCRIPT_CONTEXT": "set by a task prolog, which the test cluster has",
    "SLURM_TASK_PID": "known only to the process itself",
    "SLURM_WORKING_CLUSTER": "says where a controller listens",
    "SLURM_SRUN_COMM_PORT": "nothing listens there",
    "SLURM_STEP_LAUNCHER_PORT": "nothing listens there",
    "SLURM_JOB_SLUID": "an id of 25.11 and later",
    "SLURM_OOM_KILL_STEP": "of 23.11 and later",
    "SLURM_STEPMGR": "of 24.05 and later",
    "SLURM_JOB_RESERVATION": "there are none",
}
ONLY_HERE = {
    "SLURM_JOB_START_TIME": "23.02 and later set it",
    "SLURM_JOB_END_TIME": "23.02 and later set it",
    "SLURM_NODE_ALIASES": "of releases before 26.05",
}
NAMES = re.compile(r"[\w.-]+")
OTHERS = {
    "SLURM_CLUSTER_NAME": re.compile(r"\w+"),
    "SLURM_CONF": re.compile(r"/\S+"),
    "SLURM_JOB_START_TIME": re.compile(r"\d{10}"),
    "SLURM_JOB_END_TIME": re.compile(r"\d{10}"),
    "SLURM_JOB_NODELIST": NAMES,
    "SLURM_LAUNCH_NODE_IPADDR": re.compile(r"[\d.:a-f]+"),
    "SLURM_NODELIST": NAMES,
    "SLURM_SRUN_COMM_HOST": re.compile(r"[\d.:a-f]+"),
    "SLURM_STEP_NODELIST": NAMES,
    "SLURM_TOPOLOGY_ADDR": NAMES,
    "SLURMD_NODENAME": NAMES,
    "HOSTNAME": NAMES,
}
"""Those whose value differs from machine to machine, and its form."""
COMPARED = re.compile(r"SLURM|CUDA_VISIBLE|GPU_DEVICE|ENVIRONMENT$|HOSTNAME$|TMPDIR$|SRUN_DEBUG$")


@dataclass(frozen=True)
class Case:
    """A job; with `steps`, the environments of its tasks of srun are looked at too."""

    name: str
    options: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    requeue: bool = False
    rows: int = 1
    user: tuple[str, ...] = ("MINE", "OTHER", "SBATCH_COMMENT_LIKE")


def case(name: str, options: str, **more: object) -> Case:
    return Case(name, tuple(options.split()), **more)  # type: ignore[arg-type]


CASES = [
    case("plain", "-p cpu"),
    case("array", "-p cpu --array=3-9:3%2", rows=3),
    case("array of odd tasks", "-p cpu --array=1,4-5", rows=3),
    case("tasks", "-p cpu --ntasks=2 --cpus-per-task=2 -J my_job -A x --comment=c"),
    case("CPUs", "-p cpu --cpus-per-task=3"),
    case("tasks on a node", "-p cpu --ntasks-per-node=3"),
    case("memory of a CPU", "-p cpu --mem-per-cpu=16M -n 2"),
    case("GPUs by gres", "-p gpu --gres=gpu:a100:2"),
    case("GPUs", "-p gpu --gpus=2 --cpus-per-gpu=2 --mem-per-gpu=16M"),
    case("GPUs of tasks", "-p gpu -n2 --gpus-per-task=1"),
    case("tasks of GPUs", "-p gpu --gpus=2 --ntasks-per-gpu=2"),
    case("GPUs of a node", "-p gpu --gpus-per-node=a100:1"),
    case("overcommitted", "-p cpu -n 3 -O"),
    case("planes", "-p cpu -n 4 -m plane=2"),
    case("append", "-p cpu --open-mode=append -m cyclic:block --hint=compute_bound"),
    case("threads", "-p cpu -N1 --threads-per-core=1 --ntasks-per-core=1"),
    case("whole node", "-p cpu --exclusive -c 4"),
    case("after another", "-p cpu --dependency=afterany:1"),
    case("requeued", "-p cpu --requeue", requeue=True),
    case("two tasks", "-p cpu -n 2 -c 2", steps=(2,)),
    case("steps", "-p cpu -n 3", steps=(3, 1, 2)),
    case("tasks with GPUs", "-p gpu -n 2 --gres=gpu:a100:2", steps=(2,)),
    case("export all", "-p cpu --export=ALL"),
    case("export none", "-p cpu --export=NONE", user=()),
    case("export nothing", "-p cpu --export=", user=()),
    case("export some", "-p cpu --export=MINE,A=1,UNSET,B=", user=("MINE", "A", "B")),
    case(
        "export all and some", "-p cpu --export=ALL,A=1", user=("MINE", "OTHER", "SBATCH_COMMENT_LIKE", "A")
    ),
    case("export quoted", "-p cpu --export='A=x,y',B=\"1,2\"", user=("A", "B")),
]

SCRIPT = """#!/bin/bash
me=$SLURM_ARRAY_TASK_ID:$SLURM_JOB_ID
if [ -n "{requeue}" ] && [ -z "$SLURM_RESTART_COUNT" ]; then scontrol requeue $SLURM_JOB_ID; sleep 600; fi
number=0
for tasks in {steps}; do
    srun --overlap -n $tasks bash -c 'env -0 > '"step.$number"'.$SLURM_PROCID'
    number=$((number + 1))
done
env -0 > part.$me
mv part.$me env.$me
"""


@dataclass
class Run:
    """A job of the cluster, and what it saw."""

    case: Case
    folder: Path
    number: str
    seen: list[dict[str, str]] = field(default_factory=list)

    def look(self) -> bool:
        """Whether all is there."""
        found = sorted(self.folder.glob("env.*"))
        self.seen = [_read(path) for path in found]
        return len(found) == self.case.rows


def _read(path: Path) -> dict[str, str]:
    pairs = (item.partition("=") for item in os.fsdecode(path.read_bytes()).split("\0") if item)
    return {name: value for name, _, value in pairs}


def surroundings() -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "SLURM_CONF")},
        **bare_login_names(),
        **MINE,
    }


def bare_login_names() -> dict[str, str]:
    return {name: value for name, value in bare_login().items() if name in ("USER", "LOGNAME")}


def script(of: Case) -> str:
    return SCRIPT.format(requeue="yes" if of.requeue else "", steps=" ".join(map(str, of.steps)))


@pytest.fixture(scope="module")
def runs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """All the jobs, run at once."""
    base = tmp_path_factory.mktemp("environments")
    made: dict[str, Run] = {}
    try:
        for of in CASES:
            folder = base / re.sub(r"\W", "-", of.name)
            folder.mkdir()
            (folder / "job.sh").write_text(script(of))
            done = subprocess.run(
                ["sbatch", "--parsable", *options(of), "job.sh"],
                cwd=folder,
                env={**surroundings(), **cluster.env},
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            made[of.name] = Run(of, folder, done.stdout.split(";")[0].strip())
        _wait(list(made.values()), cluster)
        yield made
    finally:
        numbers = [run.number for run in made.values()]
        subprocess.run(["scancel", *numbers], env={**os.environ, **cluster.env}, check=False, timeout=60)


def options(of: Case) -> tuple[str, ...]:
    memory = any(word.startswith("--mem-per") for word in of.options)
    return (*(SMALL[1:] if memory else SMALL), *of.options)


def _wait(runs: list[Run], cluster: Cluster) -> None:
    end = time.monotonic() + PATIENCE_S
    while waiting := [run for run in runs if not run.look()]:
        assert time.monotonic() < end, [
            (run.case.name, run.number, list(run.folder.iterdir())) for run in waiting
        ]
        for run in waiting:
            if run.case.requeue:  # Slurm would wait for two minutes
                cluster.root("scontrol", "update", f"JobId={run.number}", "StartTime=now", check=False)
        time.sleep(0.5)


def record(run: Run, theirs: Mapping[str, str]) -> JobRecord:
    """The same job in the embedded scheduler, with as much as the cluster gave it."""
    parsed = parse_job(
        script(run.case),
        command_line=[*options(run.case), "job.sh"],
        environment=surroundings(),
        script_path=str(run.folder / "job.sh"),
        arguments=(),
        submit_dir=str(run.folder),
        now_s=time.time(),
    )
    gpus = tuple(int(index) for index in theirs.get("SLURM_JOB_GPUS", "").split(",") if index)
    task = theirs.get("SLURM_ARRAY_TASK_ID")
    return JobRecord(
        id=int(theirs["SLURM_JOB_ID"]),
        request=parsed.request,
        state=JobState.RUNNING,
        reason="",
        submit_s=time.time(),
        array_job_id=None if task is None else int(run.number),
        array_task_id=None if task is None else int(task),
        start_s=time.time(),
        time_limit_s=parsed.request.time_limit_s,
        restarts=int(theirs.get("SLURM_RESTART_COUNT", 0)),
        allocation=Allocation(tuple(range(int(theirs["SLURM_CPUS_ON_NODE"]))), 1 << 24, gpus),
    )


def ours(run: Run, theirs: Mapping[str, str]) -> dict[str, str]:
    job = record(run, theirs)
    base = exported(job.request.export, surroundings(), bare_login())
    return batch_environment(job, Place(Path("/nowhere")), base, node_memory_bytes=1 << 30)


def compared(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: "a name" if name in OTHERS and OTHERS[name].fullmatch(value) else value
        for name, value in environment.items()
        if COMPARED.match(name) and name not in NOT_HERE and name not in ONLY_HERE
    }


@pytest.mark.parametrize("name", [of.name for of in CASES])
def test_the_script_sees_what_slurm_shows(name: str, runs: Mapping[str, Run]) -> None:
    run = runs[name]
    for theirs in run.seen:
        expected, found = compared(theirs), compared(ours(run, theirs))
        if "CUDA_VISIBLE_DEVICES" not in theirs:  # the GPUs of others are hidden here
            assert found.pop("CUDA_VISIBLE_DEVICES") == ""
        assert found == expected


@pytest.mark.parametrize("name", [of.name for of in CASES if "export" in of.name or of.name == "plain"])
def test_the_users_variables_come_through_alike(name: str, runs: Mapping[str, Run]) -> None:
    run = runs[name]
    (theirs,) = run.seen
    wanted = (*MINE, "A", "B", "UNSET")
    expected = {name: theirs[name] for name in wanted if name in theirs}
    found = ours(run, theirs)
    assert {name: found[name] for name in wanted if name in found} == expected
    assert set(expected) == set(run.case.user)
    assert found["HOME"] == theirs["HOME"]


@pytest.mark.parametrize("name", [of.name for of in CASES if of.steps])
def test_the_tasks_of_a_step_see_what_slurm_shows(name: str, runs: Mapping[str, Run]) -> None:
    run = runs[name]
    (batch,) = run.seen
    base = ours(run, batch)
    per_task = record(run, batch).request.cpus_per_task
    for step, tasks in enumerate(run.case.steps):
        for task in range(tasks):
            theirs = _read(run.folder / f"step.{step}.{task}")
            found = step_environment(base, step=step, ntasks=tasks, task=task, cpus_per_task=per_task)
            expected, mine = compared(theirs), compared(found)
            if "CUDA_VISIBLE_DEVICES" not in theirs:
                assert mine.pop("CUDA_VISIBLE_DEVICES") == ""
            assert mine == expected
