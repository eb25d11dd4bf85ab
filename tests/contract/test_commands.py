"""Slurm's commands as scripts use them."""

from __future__ import annotations

import pytest

from tests.contract.side import Side
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

NULL = ("-o", "/dev/null")


def test_a_script_from_standard_input(side: Side) -> None:
    job = side.sbatch(
        "-o", "piped.out", text='#!/bin/bash\n#SBATCH -J from-pipe\necho "$SLURM_JOB_NAME $0"\n'
    )
    assert side.end(job).state is JobState.COMPLETED
    assert side.wait_for("piped.out").startswith("from-pipe ")
    unnamed = side.sbatch(*NULL, text="#!/bin/bash\ntrue\n")
    assert side.end(unnamed).name == "sbatch"


def test_a_wrapped_command(side: Side) -> None:
    job = side.sbatch("-o", "wrapped.out", "--wrap", 'echo "a  b" | cat; echo $0 $#; exit 2')
    row = side.end(job)
    assert (row.name, row.exit_code) == ("wrap", ExitCode(2))
    assert side.wait_for("wrapped.out").startswith("a  b\n")
    refused = side.command("sbatch", *side.options, "--wrap", "true", "script.sh", check=False)
    assert refused.returncode == 1
    assert "Script arguments not permitted with --wrap option" in refused.stderr


def test_what_sbatch_says(side: Side) -> None:
    said = side.command("sbatch", *side.options, *NULL, "--wrap", "true")
    number = said.stdout.split()[-1]
    assert said.stdout == f"Submitted batch job {number}\n"
    for words, code, text in (
        (("--bogus",), 255, "unrecognized option '--bogus'"),
        (("no-such-file.sh",), 1, "Unable to open file no-such-file.sh"),
        (("--array=5-1", "--wrap", "true"), 1, "Invalid job array specification"),
    ):
        done = side.command("sbatch", *side.options, *words, check=False)
        assert (done.returncode, done.stdout) == (code, ""), done
        assert text in done.stderr


def test_sbatch_waits(side: Side) -> None:
    words = ("sbatch", *side.options, *NULL, "--wait", "--wrap")
    assert side.command(*words, "exit 3", check=False).returncode == 3
    assert side.command(*words, "true").returncode == 0


def test_settings_in_the_environment(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_JOB_NAME", "from-environment")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "7")
    job = side.sbatch(*NULL, text="#!/bin/bash\n#SBATCH -J in-script -t 3\ntrue\n")
    row = side.end(job)
    assert (row.name, row.time_limit_s) == ("from-environment", 420.0)
    named = side.sbatch(*NULL, "-J", "given", "-t", "9", text="#!/bin/bash\ntrue\n")
    row = side.end(named)
    assert (row.name, row.time_limit_s) == ("given", 540.0)


def test_a_job_submits_another_one(side: Side) -> None:
    script = side.folder / "inner.sh"
    script.write_text("#!/bin/bash\necho inner $SLURM_JOB_ID ${SLURM_ARRAY_TASK_ID-none}\n")
    extra = " ".join(side.options)
    job = side.submit(
        f"id=$(sbatch --parsable {extra} -o inner.out inner.sh)\n"
        f"sbatch --parsable {extra} -o inner2.out -d afterok:$id --wrap 'echo wrapped' >>ids\n"
        f"printf '#!/bin/sh\\necho piped\\n' | sbatch --parsable {extra} -o inner3.out >>ids\n"
        'echo "id=$id"',
        "-J", "outer", "-o", "outer.out",
    )  # fmt: skip
    assert side.end(job).state is JobState.COMPLETED
    number = side.wait_for("outer.out", "id=").split("id=")[1].strip()
    assert side.wait_for("inner.out", "inner") == f"inner {number} none\n"
    side.wait_for("inner2.out", "wrapped")
    side.wait_for("inner3.out", "piped")


def test_what_squeue_says_within_a_job(side: Side) -> None:
    body = (
        'squeue -h -o "%i|%j|%T|%t|%u|%D" -j "$SLURM_JOB_ID"; squeue -h -j "$SLURM_JOB_ID" -O "JobID:12,State:10"\n'
        'squeue -h --me -t R -o %A | grep -c "^$SLURM_JOB_ID$"; squeue -h -n "two words" -o %i\n'
        "squeue -j 999999; echo rc=$?; squeue -h -t CD,F -j $SLURM_JOB_ID; echo none"
    )
    job = side.submit(body, "-J", "two words", "-o", "squeue.out")
    row = side.end(job)
    log = side.wait_for("squeue.out", "none")
    assert [line.rstrip() for line in log.splitlines()] == [
        f"{job}|two words|RUNNING|R|{row.user}|1",
        f"{job!s:12}RUNNING",
        "1",
        str(job),
        "slurm_load_jobs error: Invalid job id specified",
        "rc=1",
        "none",
    ]


def test_what_scontrol_says_of_a_job(side: Side) -> None:
    job = side.submit(
        'scontrol show job "$SLURM_JOB_ID"',
        "-J",
        "shown",
        "-t",
        "1:10:00",
        "-o",
        "shown.out",
        arguments=("a", "b"),
    )
    row = side.end(job)
    found = dict(word.partition("=")[::2] for word in side.wait_for("shown.out").split())
    for name, value in {
        "JobId": str(job),
        "JobName": "shown",
        "JobState": "RUNNING",
        "TimeLimit": "01:10:00",
        "Requeue": "1",
        "Restarts": "0",
        "BatchFlag": "1",
        "NumNodes": "1",
        "NumCPUs": "1",
        "WorkDir": str(side.folder),
        "StdOut": str(side.folder / "shown.out"),
        "StdErr": str(side.folder / "shown.out"),
        "StdIn": "/dev/null",
        "Command": row.command.split()[0],
        "Dependency": "(null)",
    }.items():
        assert found[name] == value, name
    assert side.command("scontrol", "show", "job", "999999", check=False).returncode == 1


def test_what_sacct_says(side: Side) -> None:
    job = side.submit("srun -n1 true; srun -n1 bash -c 'exit 4'; exit 3", "-J", "counted", *NULL)
    side.end(job)
    side.accounted(job)
    form = "JobID,JobName,State,ExitCode,DerivedExitCode"

    lines = side.command("sacct", "-n", "-P", "-j", str(job), "-o", form).stdout.splitlines()
    assert lines[0] == f"{job}|counted|FAILED|3:0|4:0"
    assert {line.rstrip("|") for line in lines[1:]} == {
        f"{job}.batch|batch|FAILED|3:0",
        f"{job}.0|true|COMPLETED|0:0",
        f"{job}.1|bash|FAILED|4:0",
    }
    alone = side.command("sacct", "-n", "-X", "-P", "-j", str(job), "-o", "JobID,State").stdout
    assert alone == f"{job}|FAILED\n"


def test_scancel_by_name_and_state(side: Side) -> None:
    jobs = [side.submit("true", *NULL, "--hold", "-J", name) for name in ("by-name", "by-name", "other-name")]
    side.command("scancel", "-n", "by-name")
    for job in jobs[:2]:
        assert side.end(job).state is JobState.CANCELLED
    assert side.rows(jobs[2])[0].state is JobState.PENDING
    side.command("scancel", "-t", "PENDING", "-n", "other-name", "-u", side.rows(jobs[2])[0].user)
    assert side.end(jobs[2]).state is JobState.CANCELLED
    quiet = side.command("scancel", str(jobs[0]))
    assert (quiet.stdout, quiet.stderr) == ("", "")
    for words, code, text in (
        (("999999",), 0, ""),
        (("-v", "999999"), 0, "Kill job error on job id 999999: Invalid job id specified"),
        (("-v", str(jobs[0])), 0, "Job/step already completing or completed"),
        (("nonsense",), 1, "Invalid job id nonsense"),
        (("-s", "USR1", "999999"), 1, "Kill job error on job id 999999: Invalid job id specified"),
    ):
        done = side.command("scancel", *words, check=False)
        assert (done.returncode, bool(done.stderr)) == (code, bool(text)), done
        assert text in done.stderr


def test_the_script_is_written_out(side: Side) -> None:
    job = side.submit("echo to be written", *NULL, "--hold")
    side.command("scontrol", "write", "batch_script", str(job), "written.sh")
    assert side.wait_for("written.sh") == "#!/bin/bash\necho to be written\n"
    assert (
        side.command("scontrol", "write", "batch_script", str(job), "-").stdout
        == "#!/bin/bash\necho to be written\n"
    )
    side.command("scontrol", "update", f"JobId={job}", "TimeLimit=11", "JobName=new name")
    assert (side.rows(job)[0].name, side.rows(job)[0].time_limit_s) == ("new name", 660.0)
    side.command("scontrol", "release", str(job))
    assert side.end(job).state is JobState.COMPLETED
