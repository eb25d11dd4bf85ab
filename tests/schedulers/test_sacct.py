"""What sacct prints."""

import math

from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.slurm.sacct import FIELDS, known_fields, latest, parse_rows, parse_script

USUAL = {
    "JobIDRaw": "1166",
    "JobID": "1043_91",
    "User": "u1",
    "State": "COMPLETED",
    "Submit": "1796072000",
    "Start": "1796072010",
    "End": "1796072030",
    "Timelimit": "01:00:00",
    "ExitCode": "0:0",
    "NodeList": "gpu01",
    "Account": "",
    "Partition": "gpu",
    "JobName": "train",
    "WorkDir": "/w",
    "SubmitLine": "sbatch t.sh",
    "StdOut": "",
    "StdErr": "",
    "Cluster": "slate",
}


def row(**changed: str) -> str:
    return "\x1f".join({**USUAL, **changed}[name] for name in FIELDS) + "\n"


def test_a_cancelled_job_that_never_had_a_limit() -> None:
    text = row(
        JobName="prep . | grep hot", State="CANCELLED by 1001", Timelimit="Partition_Limit", Start="None"
    )
    (job,) = parse_rows(text)
    assert job.name == "prep . | grep hot"
    assert job.state is JobState.CANCELLED
    assert job.state.is_terminal
    assert job.cancelled_by_uid == 1001
    assert job.time_limit_s is None
    assert job.start_time_s is None
    assert job.end_time_s == 1796072030


def test_the_waiting_rest_of_an_array_that_was_cancelled() -> None:
    """As 24.11.5 and 26.05.5 print it; only the default's folder differs."""
    for stdout in ("/tmp/rs/slurm-%A_%a.out", "slurm-%A_%a.out"):
        text = row(
            JobIDRaw="10", JobID="10_[5,7-9]", State="CANCELLED by 1001", Start="None", ExitCode="0:0",
            NodeList="None assigned", StdOut=stdout,
        )  # fmt: skip
        (job,) = parse_rows(text)
        assert job.id == JobId.parse("10_[5,7-9]")
        assert (job.raw_id, job.state, job.cancelled_by_uid) == (10, JobState.CANCELLED, 1001)
        assert (job.start_time_s, job.nodes, job.stdout_pattern, job.stderr_pattern) == (None, "", stdout, "")


def test_values() -> None:
    (job,) = parse_rows(row(Timelimit="UNLIMITED", State="FAILED", ExitCode="2:0", NodeList="None assigned"))
    assert job.time_limit_s == math.inf
    assert job.exit_code == ExitCode(2, 0)
    assert job.nodes == ""
    assert job.cancelled_by_uid is None
    assert job.id == JobId(1043, task=91)
    assert job.raw_id == 1166


def test_steps_are_no_jobs() -> None:
    text = row() + row(JobID="1043_91.batch") + row(JobID="1043_91.extern") + row(JobID="1043_91.0")
    assert [str(job.id) for job in parse_rows(text)] == ["1043_91"]


def test_lines_within_a_submit_line() -> None:
    text = row(JobID="7", SubmitLine="sbatch --wrap echo a\n12\nsleep 3\n\n") + row(JobID="8")
    jobs = parse_rows(text)
    assert [str(job.id) for job in jobs] == ["7", "8"]
    assert jobs[0].submit_line == "sbatch --wrap echo a\n12\nsleep 3\n\n"


LINES = st.text(st.characters(exclude_characters="\x1f", codec="utf-8"))


@given(name=LINES, line=LINES)
def test_any_text(name: str, line: str) -> None:
    problems: list[str] = []
    jobs = parse_rows(row(JobName=name, SubmitLine=line) + row(JobID="8"), problems=problems)
    assert problems == []
    assert [str(job.id) for job in jobs] == ["1043_91", "8"]
    assert (jobs[0].name, jobs[0].submit_line) == (name, line)


def test_a_bad_row_costs_one_row() -> None:
    problems: list[str] = []
    jobs = parse_rows(row(JobID="1") + "5\x1f6\x1fu1\n" + row(JobID="3"), problems=problems)
    assert [str(job.id) for job in jobs] == ["1", "3"]
    assert len(problems) == 1


def test_the_latest_run_of_a_requeued_job() -> None:
    text = (
        row(JobID="5", State="PREEMPTED", Submit="1796072000")
        + row(JobID="5", State="COMPLETED", Submit="1796072500")
        + row(JobID="5", State="REQUEUED", Submit="1796072200")
    )
    (job,) = latest(parse_rows(text))
    assert job.state is JobState.COMPLETED


def test_fields_of_a_version() -> None:
    help_22_05 = "Account   AdminComment  Cluster  JobID JobIDRaw\nState SubmitLine User"
    expected = ("JobIDRaw", "JobID", "User", "State", "Account", "SubmitLine", "Cluster")
    assert known_fields(help_22_05) == expected


def test_stored_scripts() -> None:
    rule = "-" * 80
    assert parse_script(f"Batch Script for 24\n{rule}\n#!/bin/sh\nsleep 3\n\n") == "#!/bin/sh\nsleep 3\n"
    assert parse_script(f"Batch Script for 24\n{rule}\nNONE\n") is None
    assert parse_script("") is None
