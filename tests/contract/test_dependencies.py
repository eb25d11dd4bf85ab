"""Jobs that wait for others."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.contract.side import Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")
MET = [
    "afterok:{good}",
    "afterany:{bad}",
    "afterany:{good}:{bad}",
    "afternotok:{bad}",
    "afternotok:{cancelled}",
    "afterany:{cancelled}",
    "after:{good}",
    "after:{bad}:{good}",
    "afterok:{good},afterany:{bad}",
    "afterok:{bad}?afterok:{good}",
    "afterok:{array}",
    "afterany:{half}",
    "afternotok:{half}",
    "afterok:{half}_1",
    "afternotok:{half}_2",
    "afterok:999999",
    "afterany:999999",
]
"""All of them come true. slurmctld forgets a job some minutes after its end; what waits for one that it does not
know is not to wait for ever."""
NEVER = [
    "afterok:{bad}",
    "afternotok:{good}",
    "afterok:{cancelled}",
    "afterok:{good}:{bad}",
    "afterok:{bad},afterany:{good}",
    "afterok:{bad}?afternotok:{good}",
    "afterok:{half}",
    "afternotok:{array}",
    "afterok:{half}_2",
]


@dataclass(frozen=True)
class Waiting:
    """The jobs that are waited for, and those that wait, by their dependency."""

    first: dict[str, JobId]
    met: dict[str, JobId]
    never: dict[str, JobId]
    killed: dict[str, JobId]


@pytest.fixture(scope="module")
def jobs(side: Side) -> Waiting:
    """Held, so that everything waits for what has not ended yet; then let go."""
    first = {
        "good": side.submit("sleep 0.5", "--hold", *NULL),
        "bad": side.submit("exit 1", "--hold", *NULL),
        "cancelled": side.submit("true", "--hold", *NULL),
        "array": side.submit("true", "--hold", "--array=1-2", *NULL),
        "half": side.submit("[[ $SLURM_ARRAY_TASK_ID == 1 ]]", "--hold", "--array=1-2", *NULL),
    }

    def after(text: str, *options: str) -> JobId:
        return side.submit("true", *NULL, f"--dependency={text.format(**first)}", *options)

    met = {text: after(text) for text in MET}
    never = {text: after(text) for text in NEVER}
    killed = {text: after(text, "--kill-on-invalid-dep=yes") for text in NEVER[:3]}
    side.waiting(met[MET[0]], "Dependency")
    for name in ("good", "bad", "array", "half"):
        assert side.act("release", first[name]).ok
    assert side.act("cancel", first["cancelled"]).ok
    return Waiting(first, met, never, killed)


@pytest.mark.parametrize("text", MET)
def test_it_comes_true(side: Side, jobs: Waiting, text: str) -> None:
    assert side.end(jobs.met[text]).state is JobState.COMPLETED


@pytest.mark.parametrize("text", NEVER)
def test_it_never_comes_true(side: Side, jobs: Waiting, text: str) -> None:
    job = jobs.never[text]
    side.waiting(job, "DependencyNeverSatisfied")
    assert side.act("cancel", job).ok


@pytest.mark.parametrize("text", NEVER[:3])
def test_it_is_cancelled_where_that_was_asked_for(side: Side, jobs: Waiting, text: str) -> None:
    assert side.end(jobs.killed[text]).state is JobState.CANCELLED


def test_nothing_starts_too_early(side: Side, jobs: Waiting) -> None:
    first = side.end(jobs.first["good"]).end_time_s
    later = side.end(jobs.met["afterok:{good}"]).start_time_s
    assert first is not None
    assert later is not None
    assert later >= first


def test_a_dependency_is_changed(side: Side) -> None:
    other = side.submit("true", "--hold", *NULL)
    job = side.submit("true", *NULL, f"--dependency=afterok:{other}")
    side.waiting(job, "Dependency")
    assert f"afterok:{other}(unfulfilled)" in side.details(job).get("Dependency")
    assert side.update(job, Dependency="").ok
    assert side.end(job).state is JobState.COMPLETED
    again = side.submit("true", "--hold", *NULL)
    assert side.update(again, Dependency=f"afterok:{other}").ok
    assert side.act("release", again).ok
    side.waiting(again, "Dependency")
    assert side.act("release", other).ok
    assert side.end(again).state is JobState.COMPLETED


def test_a_chain(side: Side) -> None:
    jobs = [side.submit("true", "--hold", *NULL)]
    for number in range(4):
        jobs.append(side.submit(f"echo {number} >>chain.log", *NULL, f"--dependency=afterok:{jobs[-1]}"))
    assert side.act("release", jobs[0]).ok
    assert side.end(jobs[-1]).state is JobState.COMPLETED
    assert (side.folder / "chain.log").read_text() == "0\n1\n2\n3\n"


def test_singletons_run_one_after_the_other(side: Side) -> None:
    body = 'echo "begin $SLURM_JOB_ID" >>single.log; sleep 0.4; echo "end $SLURM_JOB_ID" >>single.log'
    jobs = [side.submit(body, *NULL, "-J", "alone", "--dependency=singleton") for _ in range(3)]
    for job in jobs:
        assert side.end(job).state is JobState.COMPLETED
    lines = (side.folder / "single.log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["begin", "end"] * 3


def test_a_requeued_job_is_waited_for(side: Side) -> None:
    again = '[[ -n ${SLURM_RESTART_COUNT:-} ]] || { scontrol requeue "$SLURM_JOB_ID"; sleep 60; }'
    body = f"{again}; echo twice >>again.log"
    first = side.submit(body, *NULL)
    after = side.submit("cat again.log", "-o", "after-again.out", f"--dependency=afterany:{first}")
    side.start_now(first)
    assert side.end(after).state is JobState.COMPLETED
    assert side.wait_for("after-again.out") == "twice\n"
