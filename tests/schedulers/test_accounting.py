"""How jobs ended: what accounting says, and what its silence means."""

from __future__ import annotations

from dataclasses import replace

from tests.schedulers.standins import StandIns, closing, standins
from tests.schedulers.test_sacct import row as accounted
from tests.schedulers.test_squeue import row as queued
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.monitor.store import JobStore
from tfjobtui.schedulers.scheduler import Target
from tfjobtui.schedulers.slurm.form import layout
from tfjobtui.schedulers.slurm.sacct import FIELDS, parse_rows

__all__ = ["standins"]

TARGET = Target(JobId(901), None, "train", "u1", 1796072000, raw_id=901)


def sacct(standins: StandIns, text: str = "") -> None:
    """A sacct that knows its fields and gives these rows."""
    path = standins.folder / "rows"
    path.write_text(text)
    standins.make("sacct", f"[ $1 = --helpformat ] && echo {' '.join(FIELDS)} && exit\ncat {path}")


def squeue(standins: StandIns, data: bytes = b"") -> None:
    path = standins.folder / "queue"
    path.write_bytes(data)
    standins.make("squeue", f"cat {path}")


def test_a_row_with_every_oddity_leaves_its_neighbours_whole() -> None:
    odd = accounted(
        JobID="2", JobIDRaw="2", JobName="prep . | grep hot", State="CANCELLED by 1001",
        Timelimit="Partition_Limit", Start="None", SubmitLine="sbatch --wrap a\n2\x1e|b",
    )  # fmt: skip
    jobs = parse_rows(accounted(JobID="1", JobIDRaw="1") + odd + accounted(JobID="3", JobIDRaw="3"))
    assert [(job.id.job, job.name, job.state) for job in jobs] == [
        (1, "train", JobState.COMPLETED),
        (2, "prep . | grep hot", JobState.CANCELLED),
        (3, "train", JobState.COMPLETED),
    ]
    assert (jobs[1].cancelled_by_uid, jobs[1].time_limit_s) == (1001, None)
    assert jobs[2].time_limit_s == 3600


async def test_a_het_job_that_was_cancelled_while_it_waited(standins: StandIns) -> None:
    """24.11.5 and 26.05.5 keep one record of it (`sacct -j 181+1` finds none), 22.05.8 one for each part."""
    parts = [
        Target(JobId(181, het_offset=part), None, "train", "u1", 1796072000, raw_id=181 + part)
        for part in (0, 1)
    ]
    ends = {"State": "CANCELLED by 1001", "NodeList": "None assigned", "Start": "None"}
    newer = accounted(JobIDRaw="181", JobID="181", **ends)
    older = "".join(accounted(JobIDRaw=f"{181 + part}", JobID=f"181+{part}", **ends) for part in (0, 1))
    for text in (newer, older):
        sacct(standins, text)
        async with closing(standins.scheduler()) as slurm:
            both = await slurm.ended(parts)
            (second,) = await slurm.ended(parts[1:])
        assert [(str(end.id), end.raw_id) for end in both] == [("181+0", 181), ("181+1", 182)]
        assert (str(second.id), second.state, second.cancelled_by_uid) == ("181+1", JobState.CANCELLED, 1001)
    assert all(" -j 181" in call and "+" not in call for call in standins.calls if "-j" in call)


async def test_accounting_that_knows_nothing_yet_says_of_no_job_that_it_ended(standins: StandIns) -> None:
    squeue(standins, queued(layout()))
    sacct(standins)
    store = JobStore()
    async with closing(standins.scheduler()) as slurm:
        store.apply(await slurm.jobs())
        assert await slurm.ended([TARGET]) == ()
        sacct(standins, accounted(JobID="901", JobIDRaw="901", State="PENDING"))
        store.ended(await slurm.ended([TARGET]))
    job = store.get("901")
    assert job is not None
    assert job.state is JobState.RUNNING, "the queue is trusted"


async def test_a_job_that_the_queue_no_longer_knows_is_asked_of_accounting(standins: StandIns) -> None:
    sacct(standins, accounted(JobID="901", JobIDRaw="901", State="FAILED", ExitCode="2:0"))
    standins.make("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    squeue(standins, queued(layout()))
    store = JobStore()
    async with closing(standins.scheduler()) as slurm:
        store.apply(await slurm.jobs())
        squeue(standins)
        vanished = store.apply(await slurm.jobs()).vanished
        assert [job.key for job in vanished] == ["901"]
        assert await slurm.details(TARGET) is None
        store.ended(await slurm.ended([Target.of(job) for job in vanished]))
    job = store.get("901")
    assert job is not None
    assert job.state is JobState.FAILED


async def test_a_task_is_found_by_either_of_its_ids(standins: StandIns) -> None:
    sacct(standins, accounted() + accounted(JobID="1043_91.batch"))
    task, raw = replace(TARGET, id=JobId(1043, task=91)), replace(TARGET, id=JobId(1166))
    async with closing(standins.scheduler()) as slurm:
        (by_task,) = await slurm.ended([task])
        (by_raw,) = await slurm.ended([raw])
    assert by_task == by_raw
    assert (str(by_task.id), by_task.raw_id) == ("1043_91", 1166)
