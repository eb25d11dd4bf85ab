"""Every command that the client wraps, on the test cluster."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tfjobtui.logs.location import LogQuery, locate
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import EndedJob, SubmitRequest, Submitted, Target
from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.sacct import parse_script
from tfjobtui.schedulers.slurm.settings import SlurmSettings

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_env")]

SMALL = ("--partition=cpu", "--mem=16M", "--time=10")
PATIENCE_S = 30.0


class Bench:
    """The client and what a test has submitted with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slurm = SlurmScheduler()
        self.taken: list[JobId] = []

    async def submit(self, *options: str, body: str = "sleep 300", head: str = "") -> Submitted:
        script = self.folder / "job.sh"
        script.write_text(f"#!/bin/bash\n{head}{body}\n")
        taken = await self.slurm.submit(SubmitRequest(str(script), options, work_dir=str(self.folder)))
        self.taken.append(taken.id)
        return taken

    async def rows(self, job: JobId) -> list[Job]:
        """The rows of a job, array or het job."""
        answer = await self.slurm.jobs()
        assert answer.problems == ()
        return [row for row in answer.jobs if row.id.job == job.job]

    async def until(self, job: JobId, holds: Callable[[list[Job]], bool]) -> list[Job]:
        """Its rows once a condition holds for them."""
        end = time.monotonic() + PATIENCE_S
        while not holds(rows := await self.rows(job)):
            assert time.monotonic() < end, rows
            await asyncio.sleep(0.1)
        return rows

    async def running(self, job: JobId) -> Job:
        rows = await self.until(job, lambda rows: any(row.state is JobState.RUNNING for row in rows))
        return next(row for row in rows if row.state is JobState.RUNNING)

    async def ended(self, target: Target) -> EndedJob:
        end = time.monotonic() + PATIENCE_S
        while not (found := await self.slurm.ended([target])):
            assert time.monotonic() < end
            await asyncio.sleep(0.2)
        return found[0]


@pytest.fixture
async def bench(tmp_path: Path, slurm_env: dict[str, str]) -> AsyncIterator[Bench]:
    """A client; what was submitted is cancelled at the end."""
    made = Bench(tmp_path)
    try:
        yield made
    finally:
        left = [Target(job, None, "", "", None) for job in made.taken]
        if left:
            await made.slurm.cancel(left)
        await made.slurm.close()


async def test_a_job_from_submission_to_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SQUEUE_FORMAT": "%j %u",
        "SQUEUE_STATES": "CD",
        "SACCT_FORMAT": "jobid",
        "SLURM_TIME_FORMAT": "relative",
        "SLURM_CLUSTERS": "nowhere",
        "SLURM_JOB_ID": "1",
    }.items():
        monkeypatch.setenv(name, value)
    name = "odd|name = [red]ÿ x"
    before = time.time()
    taken = await bench.submit(f"--job-name={name}", "--gres=gpu:a100:1", "--mem=32M", "--time=20", "-c2")
    job = await bench.running(taken.id)
    assert job.name == name
    assert job.user == pwd.getpwuid(os.getuid()).pw_name
    assert job.user_id == os.getuid()
    assert job.gpus.by_type == (("a100", 1),)
    assert (job.cpus, job.memory_bytes, job.time_limit_s, job.node_count) == (2, 32 * 1024**2, 1200, 1)
    assert job.submit_time_s is not None
    assert abs(job.submit_time_s - before) < 60
    assert job.nodes.startswith("gpu")
    assert job.work_dir == str(bench.folder)
    assert job.command == str(bench.folder / "job.sh")
    # As 22.05 to 23.11, 24.05 to 25.05, and later releases tell the default.
    forms = (f"{bench.folder}/slurm-{taken.id.job}.out", f"{bench.folder}/slurm-%j.out", "slurm-%j.out")
    assert job.stdout_pattern in forms
    log = bench.folder / f"slurm-{taken.id.job}.out"
    assert await asyncio.to_thread(located, job, log)
    target = Target.of(job)
    details = await bench.slurm.details(target)
    assert details is not None
    assert details.get("JobName") == name
    assert details.get("NodeList") == job.nodes
    assert details.gpu_indexes[0].startswith(f"{job.nodes}: a100 ")
    (result,) = await bench.slurm.cancel([target])
    assert result.ok
    assert result.command.argv[-1] == str(taken.id)
    (row,) = await bench.until(taken.id, lambda rows: rows[0].state is JobState.CANCELLED)
    assert row.exit_code is not None
    ended = await bench.ended(target)
    assert (ended.state, ended.name) == (JobState.CANCELLED, name)
    assert ended.cancelled_by_uid == os.getuid()
    assert ended.submit_time_s == job.submit_time_s
    (again,) = await bench.slurm.cancel([target])
    assert (again.ok, again.message) == (True, "It had already ended.")


def located(job: Job, log: Path) -> bool:
    """Whether a file of that name is taken for the job's log."""
    until = time.monotonic() + PATIENCE_S
    while not (found := locate(LogQuery.of(job))).exists and time.monotonic() < until:
        time.sleep(0.1)
    return (found.path, found.exists, found.note) == (log, True, "")


async def test_a_job_that_fails(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, body="exit 3")
    (row,) = await bench.until(taken.id, lambda rows: rows[0].state.is_terminal)
    assert (row.state, row.exit_code) == (JobState.FAILED, ExitCode(3))
    ended = await bench.ended(Target.of(row))
    assert (ended.state, ended.exit_code) == (JobState.FAILED, ExitCode(3))
    assert ended.work_dir == str(bench.folder)
    assert "sbatch --parsable --partition=cpu" in ended.submit_line


async def test_cancelling_what_waits_spares_what_has_started(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, "--hold", "--array=2-6%2")
    (folded,) = await bench.rows(taken.id)
    assert folded.id.tasks is not None
    assert (folded.task_count, folded.id.tasks.throttle) == (5, 2)
    assert folded.stdout_pattern.rpartition("/")[2] == "slurm-%A_%a.out"
    target = Target.of(folded, pending_only=True)
    whole = Target.of(folded, whole=True)
    assert all(result.ok for result in await bench.slurm.release([whole]))
    rows = await bench.until(taken.id, lambda rows: sum(row.state is JobState.RUNNING for row in rows) == 2)
    task = next(row for row in rows if row.id.task == 3)
    assert task.raw_id != taken.id.job
    details = await bench.slurm.details(Target.of(task))
    assert details is not None
    assert (details.get("ArrayTaskId"), details.get("JobId")) == ("3", str(task.raw_id))
    (result,) = await bench.slurm.cancel([target])
    assert result.ok
    rows = await bench.until(taken.id, lambda rows: not any(row.state.is_waiting for row in rows))
    assert {row.id.task for row in rows if row.state is JobState.RUNNING} == {2, 3}
    (late,) = await bench.slurm.cancel([target])
    assert late.ok
    assert "waiting any more" in late.message
    (changed,) = await bench.slurm.cancel([Target.of(task)])
    assert changed.ok
    assert (await bench.ended(Target.of(task))).raw_id == task.raw_id


async def test_a_het_job(bench: Bench) -> None:
    head = (
        "#SBATCH --partition=cpu --mem=16M --time=10\n#SBATCH hetjob\n"
        "#SBATCH --partition=gpu --gres=gpu:a100:1 --mem=16M --time=10\n"
    )
    taken = await bench.submit(head=head)
    rows = await bench.until(
        taken.id, lambda rows: len(rows) == 2 and all(row.state is JobState.RUNNING for row in rows)
    )
    first, second = sorted(rows, key=lambda row: row.id.het_offset or 0)
    assert (first.key, second.key) == (f"{taken.id}+0", f"{taken.id}+1")
    assert (first.gpus.count, second.gpus.count) == (0, 1)
    details = await bench.slurm.details(Target.of(second))
    assert details is not None
    assert details.get("HetJobOffset") == "1"
    assert b"gpu" in await shell(bench, Target.of(second), "echo $SLURMD_NODENAME")
    (result,) = await bench.slurm.cancel([Target.of(second, whole=True)])
    assert result.ok
    await bench.until(taken.id, lambda rows: all(row.state.is_terminal for row in rows))
    ended = await bench.ended(Target.of(second))
    assert (str(ended.id), ended.raw_id, ended.state) == (f"{taken.id}+1", second.raw_id, JobState.CANCELLED)


async def test_a_het_job_cancelled_while_it_waits(bench: Bench) -> None:
    head = "#SBATCH -p cpu --mem=16M --hold\n#SBATCH hetjob\n#SBATCH -p cpu --mem=16M --hold\n"
    taken = await bench.submit(head=head)
    rows = await bench.until(taken.id, lambda rows: len(rows) == 2)
    (result, *_) = await bench.slurm.cancel([Target.of(row, whole=True) for row in rows[:1]])
    assert result.ok
    for row in rows:
        ended = await bench.ended(Target.of(row))
        assert (ended.id, ended.raw_id, ended.state) == (row.id, row.raw_id, JobState.CANCELLED)


async def test_hold_release_change_and_priority(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, "--hold")
    (row,) = await bench.rows(taken.id)
    target = Target.of(row)
    assert (row.state, row.reason) == (JobState.PENDING, "JobHeldUser")
    result = await bench.slurm.update(target, {"TimeLimit": "5", "JobName": "new name", "Nice": "10"})
    assert result.ok, result.message
    (row,) = await bench.rows(taken.id)
    assert (row.name, row.time_limit_s) == ("new name", 300)
    refused = await bench.slurm.update(target, {"Partition": "nowhere"})
    assert not refused.ok
    assert "no such partition" in refused.message
    (refused,) = await bench.slurm.requeue([target])
    assert not refused.ok
    assert "waiting already" in refused.message
    end = time.monotonic() + PATIENCE_S
    # From 24.11 on this is "temporarily unavailable" most times to users without an account.
    while not (moved := await bench.slurm.update(target, {"Partition": "closed"})).ok:
        assert "temporarily unavailable" in moved.message
        assert time.monotonic() < end
        await asyncio.sleep(0.1)
    (released,) = await bench.slurm.release([target])
    assert released.ok
    (row,) = await bench.rows(taken.id)
    assert row.reason != "JobHeldUser"
    end = time.monotonic() + PATIENCE_S
    while not (factors := await bench.slurm.priority(target)):  # the scheduler has to see it first
        assert time.monotonic() < end
        await asyncio.sleep(0.2)
    assert {"Age", "Job size", "Partition", "QOS", "Nice"} <= {factor.name for factor in factors}
    (held,) = await bench.slurm.hold([target])
    assert held.ok
    (row,) = await bench.until(taken.id, lambda rows: rows[0].reason == "JobHeldUser")


async def test_a_requeued_job_keeps_its_id(bench: Bench, cluster: Cluster) -> None:
    taken = await bench.submit(*SMALL, "--requeue")
    target = Target.of(await bench.running(taken.id))
    (result,) = await bench.slurm.requeue([target])
    assert result.ok, result.message
    (row,) = await bench.until(taken.id, lambda rows: rows[0].state is JobState.PENDING)
    assert row.restarts == 1
    assert row.key == str(taken.id)
    assert await bench.slurm.ended([target]) == ()
    await asyncio.sleep(2)  # slurmd refuses what is started in the second in which it was killed
    cluster.root("scontrol", "update", f"JobId={taken.id}", "StartTime=now")
    assert (await bench.running(taken.id)).restarts == 1


async def test_a_refusal_of_some_tasks_does_not_hide_what_was_done(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, "--array=1-4%1")
    job = await bench.running(taken.id)
    (result,) = await bench.slurm.requeue([Target.of(job, whole=True)])
    assert result.ok
    said = result.message.replace("[", "").replace("]", "")  # 26.05 puts brackets around them
    assert said.startswith(f"Not for {taken.id}_2-4: Job is pending execution")
    last = Target(JobId(taken.id.job, task=4), None, "job.sh", job.user, None)
    (refused,) = await bench.slurm.requeue([last])
    assert not refused.ok
    await bench.until(taken.id, lambda rows: any(row.id.tasks and 1 in row.id.tasks for row in rows))


async def test_another_users_job(bench: Bench, cluster: Cluster) -> None:
    said = cluster.as_second("sbatch", "--parsable", "--hold", "--wrap", "true", *SMALL).stdout
    number = int(said.split(";")[0])
    try:
        assert await bench.rows(JobId(number)) == []
        everyone = (await bench.slurm.jobs(everyone=True)).jobs
        (row,) = [job for job in everyone if job.id.job == number]
        assert row.user == cluster.second_user
        target = Target.of(row)
        mine = await bench.submit(*SMALL, "--hold")
        own = Target.of((await bench.rows(mine.id))[0])
        first, second = await bench.slurm.cancel([target, own])
        assert (first.ok, second.ok) == (False, True)
        assert "Access/permission denied" in first.message
        assert "somebody else's" in first.message
        refused = [
            *await bench.slurm.hold([target]),
            *await bench.slurm.release([target]),
            *await bench.slurm.requeue([target]),
            await bench.slurm.update(target, {"TimeLimit": "1"}),
        ]
        assert [result.ok for result in refused] == [False] * 4
        assert all("somebody else's" in result.message for result in refused), refused
        assert await bench.slurm.details(target) is not None
        assert await bench.slurm.stored_script(target) is None
    finally:
        cluster.as_second("scancel", str(number))


async def test_what_never_was(bench: Bench) -> None:
    target = Target(JobId(60000000), None, "n", "u", None)
    assert await bench.slurm.details(target) is None
    assert await bench.slurm.priority(target) == ()
    assert await bench.slurm.ended([target]) == ()
    assert await bench.slurm.stored_script(target) is None
    (result,) = await bench.slurm.cancel([target])
    assert not result.ok
    assert "no longer has this job" in result.message
    assert await bench.slurm.step_usage(target) == ()


async def test_the_script_comes_back(bench: Bench, cluster: Cluster) -> None:
    taken = await bench.submit(*SMALL, "--hold", body="# über\nsleep 1 # a|b")
    (row,) = await bench.rows(taken.id)
    stored = await bench.slurm.stored_script(Target.of(row))
    assert stored is not None
    assert stored.text == (bench.folder / "job.sh").read_text()
    end = time.monotonic() + PATIENCE_S
    while not (text := parse_script(cluster.root("sacct", "-B", "-j", str(taken.id)).stdout)):
        assert time.monotonic() < end
        await asyncio.sleep(0.3)
    assert text == stored.text
    stored = await bench.slurm.stored_script(Target.of(row))
    assert stored is not None
    assert "--hold" in stored.submit_line


async def test_refused_submissions_are_explained(bench: Bench) -> None:
    from tfjobtui.errors import SubmissionError

    for option, part in (("--partition=nowhere", "no such partition"), ("--gres=gpu:h900:1", "GPU")):
        with pytest.raises(SubmissionError) as caught:
            await bench.submit(option)
        assert part in str(caught.value)


async def test_partitions_and_nodes(bench: Bench) -> None:
    partitions = {partition.name: partition for partition in await bench.slurm.partitions()}
    assert partitions["gpu"].gpu_types == (("a100", 8), ("v100", 2))
    assert partitions["gpu"].is_default
    assert partitions["cpu"].gpu_types == ()
    nodes = await bench.slurm.nodes()
    assert sorted(node.name for node in nodes) == ["cpu01", "cpu02", "gpu01", "gpu02", "v100"]
    assert sum(node.gpus.count for node in nodes) == 10
    gpu01 = next(node for node in nodes if node.name == "gpu01")
    assert (gpu01.cpus, gpu01.memory_bytes, gpu01.features) == (16, 256000 << 20, "a100")
    assert all(node.state.takes_jobs and not node.reason for node in nodes)


async def test_usage_of_a_running_job(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, "--array=7-8", body="while :; do :; done & sleep 300")
    target = Target.of(await bench.running(taken.id))
    assert target.id.task is not None
    end = time.monotonic() + PATIENCE_S
    measured: list[str] = []
    while not measured:
        assert time.monotonic() < end
        await asyncio.sleep(0.3)
        steps = await bench.slurm.step_usage(target)
        measured = [step.step for step in steps if step.peak_rss_bytes]
    assert measured == ["batch"]


async def shell(bench: Bench, target: Target, script: str) -> bytes:
    """What a script prints in a shell inside the job, run on a terminal as the program runs it."""
    command = bench.folder / "shell"
    command.write_text(f"#!/bin/bash\n{script}\n")
    command.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHELL", str(command))
        argv = bench.slurm.shell_argv(target)
    return await asyncio.to_thread(on_terminal, argv, dict(bench.slurm.foreground_environment()))


def on_terminal(argv: tuple[str, ...], env: dict[str, str]) -> bytes:
    """Run a command with a terminal of its own; gives what it wrote there."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
    )
    os.close(theirs)
    try:
        child.wait(PATIENCE_S)
        return os.read(ours, 65536)
    finally:
        child.kill()
        child.wait()
        os.close(ours)


async def test_a_shell_sees_the_jobs_gpus_and_is_a_terminal(bench: Bench) -> None:
    taken = await bench.submit("--gres=gpu:a100:2", "--mem=64M", "--time=10", "--array=4")
    job = await bench.running(taken.id)
    said = await shell(
        bench, Target.of(job), 'test -t 0 && echo "tty $CUDA_VISIBLE_DEVICES $SLURMD_NODENAME $SLURM_JOB_ID"'
    )
    words = said.decode().split()
    assert words[0] == "tty", said
    assert len(words[1].split(",")) == 2
    assert words[2:] == [job.nodes, str(job.raw_id)]


async def test_a_wrapper_without_the_long_form(bench: Bench) -> None:
    taken = await bench.submit(*SMALL, "--hold", "--array=1-3", "--job-name=a|b c")
    (row,) = await bench.rows(taken.id)
    real = shutil.which("squeue")
    wrapper = bench.folder / "squeue"
    wrapper.write_text(
        f'#!/bin/bash\nfor a; do [ "$a" = -O ] && {{ echo "squeue: -O is not supported" >&2; exit 1; }}; done\n'
        f'exec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    slurm = SlurmScheduler(SlurmSettings(commands={"squeue": str(wrapper)}))
    answer = await slurm.jobs()
    await slurm.close()
    assert answer.problems == ()
    (short,) = [job for job in answer.jobs if job.id.job == taken.id.job]
    for name in ("id", "key", "raw_id", "name", "state", "user", "user_id", "reason", "partition", "priority",
                 "submit_time_s", "time_limit_s", "cpus", "node_count", "work_dir", "command"):  # fmt: skip
        assert getattr(short, name) == getattr(row, name), name
    assert slurm.notes


async def test_a_named_cluster(bench: Bench, cluster: Cluster) -> None:
    config = cluster.root("scontrol", "show", "config").stdout
    name = next(line.split("=")[1].strip() for line in config.splitlines() if line.startswith("ClusterName"))
    taken = await bench.submit(*SMALL, "--hold")
    slurm = SlurmScheduler(SlurmSettings(clusters=(name,)))
    (row,) = [job for job in (await slurm.jobs()).jobs if job.id.job == taken.id.job]
    assert (row.cluster, row.key) == (name, f"{name}/{taken.id}")
    target = Target.of(row)
    details = await slurm.details(target)
    assert details is not None
    assert details.get("JobId") == str(taken.id)
    (result,) = await slurm.cancel([target])
    assert result.ok
    assert f"-M {name}" in " ".join(result.command.argv)
    assert (await bench.ended(target)).state is JobState.CANCELLED
    await slurm.close()


async def test_what_is_learnt_of_this_cluster(bench: Bench) -> None:
    await bench.slurm.learn()
    have = bench.slurm.capabilities
    assert have.version[:2].isdigit()
    assert have.accounting
    assert have.everyone
    assert have.priority
    assert bench.slurm.notes == ()
