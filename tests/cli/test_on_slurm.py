"""Every one-shot command on a real cluster, as an ordinary user."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import Answer, environment, tfjobtui
from tests.cluster.client import Cluster

pytestmark = [pytest.mark.slurm, pytest.mark.usefixtures("slurm_env")]


@pytest.fixture(autouse=True)
def _empty_queue(cluster: Cluster) -> Iterator[None]:
    """Leave no job behind."""
    yield
    for user in (cluster.user, cluster.second_user):
        cluster.root("scancel", "-u", user, check=False)


def eventually(check: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Wait until `check` holds."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.1)


def sbatch(folder: Path, *words: str) -> str:
    """Submit past the program; give the id."""
    argv = ["sbatch", "--parsable", *words]
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def field(job_id: str, name: str) -> str:
    """A field of `scontrol show job`."""
    out = subprocess.run(
        ["scontrol", "-o", "show", "job", job_id], capture_output=True, text=True, check=False
    ).stdout
    return next((word.partition("=")[2] for word in out.split() if word.startswith(f"{name}=")), "")


def state(job_id: str) -> str:
    return field(job_id, "JobState")


def has_state(job_id: str, *states: str) -> None:
    eventually(lambda: state(job_id) in states, f"{job_id} is {' or '.join(states)}, not {state(job_id)}")


def submitted_id(answer: Answer) -> str:
    assert answer.code == 0, answer.err
    return answer.out.split()[-1]


def test_jobs_lists_names_as_they_are(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-H", "-J", "odd|na me=[red]", "--gres=gpu:a100:2", "--wrap", "true")
    array = sbatch(tmp_path, "-H", "-p", "cpu", "-a", "5-100%4", "--wrap", "true")
    answer = tfjobtui("jobs")
    assert answer.code == 0
    assert "odd|na me=[red]" in answer.out
    assert f"{array}_[5-100%4]" in answer.out
    assert "2×a100" in answer.out
    listed = tfjobtui("jobs", "--json").json
    assert listed["version"] == 1
    jobs = {job["id"]: job for job in listed["jobs"]}
    assert jobs[job_id]["gpus"] == {"count": 2, "by_type": [{"type": "a100", "count": 2}]}
    assert jobs[job_id]["explanation"]["word"] == "JobHeldUser"
    assert jobs[f"{array}_[5-100]"]["task_count"] == 96
    assert jobs[f"{array}_[5-100]"]["task_throttle"] == 4
    assert [job["id"] for job in tfjobtui("jobs", "--json", "gpu:>0", "state:PD").json["jobs"]] == [job_id]


def test_jobs_of_everybody(cluster: Cluster, tmp_path: Path) -> None:
    theirs = cluster.as_second(
        "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true"
    ).stdout.strip()
    assert theirs not in [job["id"] for job in tfjobtui("jobs", "--json").json["jobs"]]
    everybody = tfjobtui("jobs", "--all")
    assert theirs in everybody.out
    assert cluster.second_user in everybody.out


def test_the_users_own_formats_change_nothing(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-H", "--wrap", "true")
    answer = tfjobtui(
        "jobs",
        "--json",
        SQUEUE_FORMAT="%j %u",
        SLURM_TIME_FORMAT="relative",
        SLURM_CLUSTERS="none",
        SQUEUE_STATES="R",
    )
    assert [job["id"] for job in answer.json["jobs"] if not job["is_ended"]] == [job_id]


def test_show_tells_why_a_job_waits(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-H", "-J", "waits", "--wrap", "true")
    answer = tfjobtui("show", job_id)
    assert answer.code == 0
    assert "You hold it." in answer.out
    assert f"scontrol release {job_id}" in answer.out
    shown = tfjobtui("show", job_id, "--json").json
    assert shown["job"]["name"] == "waits"
    assert shown["details"]["JobName"] == "waits"


def test_show_tells_how_a_job_ended(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-p", "cpu", "-o", "/proc/none/x.out", "--wrap", "true")
    has_state(job_id, "FAILED")
    answer = tfjobtui("show", job_id)
    assert "The output file could not be created" in answer.out
    answer = tfjobtui("logs", job_id)
    assert answer.code == 1
    assert "could not be created" in answer.err


def test_an_unknown_job() -> None:
    for command in ("show", "logs"):
        answer = tfjobtui(command, "999999")
        assert answer.code == 1
        assert "there is no job 999999" in answer.err


def test_logs_of_a_job_and_of_an_array_task(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-p", "cpu", "--wrap", "echo out; echo err >&2", "-e", "%x-%j.err")
    array = sbatch(tmp_path, "-p", "cpu", "-a", "3", "--wrap", "echo task $SLURM_ARRAY_TASK_ID")
    has_state(job_id, "COMPLETED")
    eventually(lambda: (tmp_path / f"slurm-{array}_3.out").exists(), "the task's log")
    assert tfjobtui("logs", job_id).out == "out\n"
    assert tfjobtui("logs", job_id, "--stderr").out == "err\n"
    has_state(f"{array}_3", "COMPLETED")
    assert tfjobtui("logs", f"{array}_3").out == "task 3\n"


def test_logs_are_followed_to_the_end_of_the_job(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do echo line $i; sleep 0.5; done"
    config = tmp_path / "config.toml"
    config.write_text("[poll]\ninterval_s = 2\n")
    job_id = sbatch(tmp_path, "-p", "cpu", "-o", "log-%j.txt", "--wrap", script)
    answer = tfjobtui("--config", str(config), "logs", "-f", job_id)
    assert answer.code == 0
    assert answer.out == "line 1\nline 2\nline 3\n"


def test_submit_a_script_with_options_and_arguments(tmp_path: Path) -> None:
    script = tmp_path / "my job.sh"
    script.write_text('#!/bin/bash\n#SBATCH -o logs/out-%j.txt\nprintf "%s|" "$@"\n')
    words = ("submit", str(script), "--partition", "cpu", "--time=5", "-J", "a name", "--", "one two", "-x")
    job_id = submitted_id(tfjobtui(*words, "--", cwd=tmp_path))
    has_state(job_id, "COMPLETED")
    assert (tmp_path / "logs" / f"out-{job_id}.txt").read_text() == "one two|-x|--|"
    assert field(job_id, "Partition") == "cpu"
    assert field(job_id, "TimeLimit") == "00:05:00"


def test_personal_defaults_are_options_that_are_seen(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --mem=20M\ntrue\n")
    defaults = {
        "SBATCH_PARTITION": "cpu",
        "SBATCH_TIMELIMIT": "5",
        "SBATCH_MEM_PER_CPU": "1G",
        "SBATCH_ARRAY_INX": "1-3",
        "SBATCH_JOB_NAME": "mine",
    }
    words = ("submit", str(script), "--time=7", "--hold")
    shown = tfjobtui(*words, "--dry-run", cwd=tmp_path, **defaults)
    assert "sbatch --time=7 --hold --job-name=mine --partition=cpu " in shown.err
    answer = tfjobtui(*words, cwd=tmp_path, **defaults)
    job_id = submitted_id(answer)
    assert "SBATCH_MEM_PER_CPU=1G is not used: the script says --mem=20M." in answer.err
    assert "SBATCH_ARRAY_INX is not used" in answer.err
    assert (field(job_id, "Partition"), field(job_id, "TimeLimit")) == ("cpu", "00:07:00")
    assert (field(job_id, "JobName"), field(job_id, "ArrayJobId")) == ("mine", "")
    second = submitted_id(tfjobtui("resubmit", "-y", job_id))
    assert (field(second, "Partition"), field(second, "TimeLimit")) == ("cpu", "00:07:00")
    assert field(second, "JobName") == "mine"


def test_a_dry_run_submits_nothing(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    answer = tfjobtui("submit", "--dry-run", str(script), "--time=5", cwd=tmp_path)
    assert (answer.code, answer.out) == (0, script.read_text())
    assert "--time=5" in answer.err
    assert [job for job in tfjobtui("jobs", "--json").json["jobs"] if not job["is_ended"]] == []


def test_submit_the_shipped_template(tmp_path: Path) -> None:
    assert "train" in tfjobtui("templates").out
    listed = {item["name"]: item for item in tfjobtui("templates", "--json").json["templates"]}
    assert "EPOCHS" in [parameter["name"] for parameter in listed["train"]["parameters"]]
    words = ("submit", "train", "--set", "EPOCHS=3", "--partition=cpu", "--hold", "--job-name=digits")
    shown = tfjobtui(*words, "--dry-run", cwd=tmp_path)
    assert "\nEPOCHS=3\n" in shown.out
    assert "#SBATCH --partition=cpu\n" in shown.out
    job_id = submitted_id(tfjobtui(*words, cwd=tmp_path))
    assert field(job_id, "JobName") == "digits"
    assert field(job_id, "WorkDir") == str(tmp_path)
    assert field(job_id, "Partition") == "cpu"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("submit", "trian"), "train"),
        (("submit", "train", "--set", "EPOCHS=many"), "EPOCHS"),
        (("submit", "train", "--set", "EPOCSH=1"), "EPOCHS"),
        (("submit", "./none.sh"), "none.sh"),
    ],
)
def test_what_cannot_be_submitted(tmp_path: Path, words: tuple[str, ...], text: str) -> None:
    answer = tfjobtui(*words, cwd=tmp_path)
    assert answer.code == 2
    assert text in answer.err


def test_a_refused_submission_gives_slurms_words(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    answer = tfjobtui("submit", str(script), "--partition=nopart", cwd=tmp_path)
    assert answer.code == 1
    assert "invalid partition" in answer.err.lower()
    assert "Traceback" not in answer.err


def test_cancel_asks_first(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-H", "--wrap", "true")
    answer = tfjobtui("cancel", job_id)
    assert answer.code == 2
    assert "--yes" in answer.err
    assert state(job_id) == "PENDING"
    answer = tfjobtui("cancel", "--yes", job_id)
    assert (answer.code, answer.out) == (0, f"cancelled {job_id}\n")
    assert state(job_id) == "CANCELLED"


def test_cancel_of_several_tells_which_were_refused(cluster: Cluster, tmp_path: Path) -> None:
    mine = sbatch(tmp_path, "-H", "--wrap", "true")
    theirs = cluster.as_second(
        "sbatch", "--parsable", "-H", "-o", "/dev/null", "--wrap", "true"
    ).stdout.strip()
    answer = tfjobtui("cancel", "-y", mine, theirs)
    assert answer.code == 1
    assert "cancelled 1 of 2 jobs" in answer.err
    assert "Access/permission denied" in answer.err
    assert state(mine) == "CANCELLED"
    assert state(theirs) == "PENDING"


def test_cancel_of_what_waits_spares_what_runs(tmp_path: Path) -> None:
    array = sbatch(tmp_path, "-p", "cpu", "-a", "0-5%1", "--wrap", "sleep 100")
    has_state(f"{array}_0", "RUNNING")
    answer = tfjobtui("cancel", "-y", "--pending", array)
    assert answer.code == 0, answer.err
    jobs = {job["id"]: job["state"] for job in tfjobtui("jobs", "--json").json["jobs"] if not job["is_ended"]}
    assert jobs == {f"{array}_0": "RUNNING"}


def test_a_signal_reaches_the_job(tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 0' USR1; echo ready; while :; do sleep 0.2; done"
    job_id = sbatch(tmp_path, "-p", "cpu", "-o", "log", "--wrap", script)
    log = tmp_path / "log"
    eventually(lambda: log.exists() and "ready" in log.read_text(), "the trap is set")
    # A signal for a job goes to its steps; the script itself gets it under the name of its own step.
    answer = tfjobtui("cancel", "-y", "--signal", "usr1", job_id)
    assert answer.code == 0, answer.err
    assert answer.out == f"sent SIGUSR1 to {job_id}\n"


def test_hold_release_and_requeue(cluster: Cluster, tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-p", "cpu", "--begin=now+1hour", "--wrap", "sleep 100")
    assert tfjobtui("hold", job_id).out == f"held {job_id}\n"
    assert field(job_id, "Reason") == "JobHeldUser"
    assert tfjobtui("release", job_id).out == f"released {job_id}\n"
    assert field(job_id, "Reason") != "JobHeldUser"
    cluster.root("scontrol", "update", f"JobId={job_id}", "StartTime=now")
    has_state(job_id, "RUNNING")
    answer = tfjobtui("requeue", "-y", job_id)
    assert (answer.code, answer.out) == (0, f"requeued {job_id}\n"), answer.err
    eventually(lambda: field(job_id, "Restarts") == "1", "it was requeued")


def test_resubmit_from_our_record(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text('#!/bin/bash\n#SBATCH --time=7\nprintf "%s|" "$@"\n')
    first = submitted_id(
        tfjobtui("submit", str(script), "-p", "cpu", "-o", "o-%j", "--", "a b", "c", cwd=tmp_path)
    )
    script.write_text("#!/bin/bash\necho changed since\n")
    has_state(first, "COMPLETED")
    answer = tfjobtui("resubmit", "-y", first, cwd=tmp_path.parent)
    second = submitted_id(answer)
    assert answer.err == ""
    has_state(second, "COMPLETED")
    assert (tmp_path / f"o-{second}").read_text() == "a b|c|"


def test_resubmit_of_a_job_from_elsewhere_takes_options_from_its_command_line(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\necho hello $1\n")
    first = sbatch(tmp_path, "-p", "cpu", "--time=9", "-o", "o-%j", "job.sh", "world")
    has_state(first, "COMPLETED")
    eventually(
        lambda: "--partition=cpu" in tfjobtui("resubmit", "--dry-run", first).err, "accounting has the line"
    )
    answer = tfjobtui("resubmit", "-y", first)
    second = submitted_id(answer)
    assert "environment" in answer.err
    has_state(second, "COMPLETED")
    assert (tmp_path / f"o-{second}").read_text() == "hello world\n"
    assert field(second, "TimeLimit") == "00:09:00"
    assert field(second, "JobName") == "job.sh"


def test_resubmit_of_a_wrapped_command(tmp_path: Path) -> None:
    first = sbatch(tmp_path, "-p", "cpu", "-o", "o-%j", "--wrap", "echo wrapped  twice")
    has_state(first, "COMPLETED")
    eventually(
        lambda: "--output=o-%j" in tfjobtui("resubmit", "--dry-run", first).err, "accounting has the line"
    )
    second = submitted_id(tfjobtui("resubmit", "-y", first))
    has_state(second, "COMPLETED")
    assert (tmp_path / f"o-{second}").read_text() == "wrapped twice\n"
    assert field(second, "JobName") == "wrap"


@pytest.mark.parametrize(
    "name", ["we|ird [red]na=me", "a\nb", "gr\u00f6\u00dfe\u65e5\u672c", "-H", "lat\udce9in\x1b[31m", "a/b"]
)
def test_resubmit_of_any_name(tmp_path: Path, name: str) -> None:
    first = sbatch(tmp_path, "-H", "-p", "cpu", "-t", "8", f"--job-name={name}", "--wrap", "true")
    eventually(
        lambda: "--partition=cpu" in tfjobtui("resubmit", "--dry-run", first).err, "accounting has the line"
    )
    second = submitted_id(tfjobtui("resubmit", "-y", first))
    jobs = {job["id"]: job for job in tfjobtui("jobs", "--json").json["jobs"]}
    assert jobs[second]["name"] == jobs[first]["name"]
    assert jobs[second]["time_limit_s"] == jobs[first]["time_limit_s"] == 480


def test_resubmit_of_a_script_from_standard_input(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sbatch", "--parsable", "-H", "-p", "cpu", "--comment", "from stdin", "-t", "8"],
        input="#!/bin/bash\ntrue\n", cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    first = done.stdout.strip()
    eventually(
        lambda: "from stdin" in tfjobtui("resubmit", "--dry-run", first).err, "accounting has the line"
    )
    answer = tfjobtui("resubmit", "--dry-run", first)
    assert "several ways" in answer.err, "--comment=from stdin would be another job"
    assert "partition cpu" in answer.err
    assert answer.out == "#!/bin/bash\ntrue\n"


def test_resubmit_of_a_het_job_of_the_command_line(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\ntrue\n")
    words = ("-H", "-p", "cpu", "-t", "8", "-n1", ":", "-p", "gpu", "--gres=gpu:1", "-n1", "job.sh", "5")
    first = sbatch(tmp_path, *words)
    eventually(
        lambda: " : --partition=gpu" in tfjobtui("resubmit", "--dry-run", first).err,
        "accounting has the line",
    )
    second = submitted_id(tfjobtui("resubmit", "-y", f"{first}+1"))
    jobs = {job["id"]: job for job in tfjobtui("jobs", "--json").json["jobs"]}
    assert [jobs[f"{second}+{part}"]["partition"] for part in (0, 1)] == ["cpu", "gpu"]
    assert jobs[f"{second}+1"]["gpus"]["count"] == 1


def test_resubmit_says_what_cannot_be_had_back(tmp_path: Path) -> None:
    first = sbatch(
        tmp_path, "-p", "cpu", "-J", "my job", "-t", "8", "--comment", "two words", "--wrap", "true"
    )
    has_state(first, "COMPLETED")
    answer = tfjobtui("resubmit", "--dry-run", first)
    assert answer.code == 0
    assert "cpu" in answer.err
    assert "my job" in answer.err
    assert "8:00" in answer.err


def test_resubmit_of_one_task_of_an_array(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --array=0-3\necho $SLURM_ARRAY_TASK_ID\n")
    first = submitted_id(tfjobtui("submit", str(script), "-p", "cpu", "-o", "o-%A_%a", cwd=tmp_path))
    eventually(lambda: (tmp_path / f"o-{first}_2").exists(), "the task ran")
    second = submitted_id(tfjobtui("resubmit", "-y", f"{first}_2"))
    eventually(lambda: (tmp_path / f"o-{second}_2").exists(), "the task ran again")
    assert [path.name for path in tmp_path.glob(f"o-{second}_*")] == [f"o-{second}_2"]


def test_doctor_finds_the_cluster() -> None:
    answer = tfjobtui("doctor")
    assert answer.code == 0, answer.out
    assert "All that is needed is there." in answer.out
    findings = {item["id"]: item for item in tfjobtui("doctor", "--json").json["findings"]}
    assert findings["slurmctld"]["mark"] == "ok"
    assert findings["accounting"]["mark"] == "ok"
    assert findings["templates"]["mark"] == "ok"
    assert findings["command.squeue"]["text"].endswith("/squeue")


def test_a_controller_that_does_not_answer_is_told(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=x\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\nNodeName=n\n"
    )
    answer = tfjobtui("jobs", SLURM_CONF=str(conf))
    assert answer.code == 1
    assert answer.err.startswith("tfjobtui: ")
    assert "Traceback" not in answer.err
    assert tfjobtui("doctor", SLURM_CONF=str(conf)).code == 1


def test_ctrl_c_ends_a_follower_quietly(tmp_path: Path) -> None:
    job_id = sbatch(tmp_path, "-p", "cpu", "-o", "log", "--wrap", "echo first; sleep 100")
    has_state(job_id, "RUNNING")
    child = subprocess.Popen(
        [sys.executable, "-m", "tfjobtui", "logs", "-f", job_id],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        # A test run in the background has SIGINT ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "first\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (130, "", "")
