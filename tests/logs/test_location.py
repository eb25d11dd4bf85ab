"""Where a job's log is, and why there is none."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tfjobtui.logs import matching
from tfjobtui.logs.location import LogQuery, locate, same_as_stdout
from tfjobtui.logs.matching import newest_first
from tfjobtui.logs.patterns import PatternIds
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.model.state import JobState
from tfjobtui.model.stream import Stream

OLD = (22, 5)


def job(job_id: str = "128", raw_id: int = 128, **values: object) -> Job:
    state = values.pop("state", JobState.RUNNING)
    assert isinstance(state, JobState)
    base = Job(JobId.parse(job_id), job_id, raw_id, "my job", state, state.long, "alice")
    return replace(base, **values)  # type: ignore[arg-type]


def write(path: Path, text: str = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_path_that_scontrol_tells(tmp_path: Path) -> None:
    log = write(tmp_path / "a.out")
    found = locate(LogQuery.of(job(work_dir=str(tmp_path)), scontrol_path=str(log)))
    assert (found.path, found.exists, found.note) == (log, True, "")


def test_pattern_of_squeue_in_a_folder_that_is_named_with_a_pattern(tmp_path: Path) -> None:
    # sbatch puts the folder before the pattern unescaped, so that it takes part in the expansion.
    folder = tmp_path / "50%u"
    write(folder / "run-128.out", "not this one")
    log = write(tmp_path / "50alice" / "run-128.out")
    found = locate(LogQuery.of(job(work_dir=str(folder), stdout_pattern=f"{folder}/run-%j.out")))
    assert found.path == log
    log.unlink()
    found = locate(LogQuery.of(job(work_dir=str(folder), stdout_pattern=f"{folder}/run-%j.out")))
    assert not found.exists or found.path == folder / "run-128.out"


def test_the_default_does_not_expand_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "50%u"
    log = write(folder / "slurm-128.out")
    write(tmp_path / "50alice" / "slurm-128.out")
    found = locate(LogQuery.of(job(work_dir=str(folder), stdout_pattern=f"{folder}/slurm-128.out")))
    assert found.path == log


def test_task_of_an_array_without_a_name_for_its_log(tmp_path: Path) -> None:
    # squeue up to 23.11 shows the default of a plain job, with the task's own id.
    row = job("128_3", 131, work_dir=str(tmp_path), stdout_pattern=f"{tmp_path}/slurm-131.out")
    query = LogQuery.of(row, slurm_version=OLD)
    assert locate(query).path == tmp_path / "slurm-128_3.out"
    log = write(tmp_path / "slurm-128_3.out")
    write(tmp_path / "slurm-131.out")
    assert (locate(query).path, locate(query).exists) == (log, True)


def test_task_of_an_array_whose_log_is_named_by_its_own_id(tmp_path: Path) -> None:
    log = write(tmp_path / "slurm-131.out")
    row = job("128_3", 131, work_dir=str(tmp_path), stdout_pattern=f"{tmp_path}/slurm-%j.out")
    assert locate(LogQuery.of(row)).path == log


@pytest.mark.parametrize("pattern", ["", "(null)", "N/A", "slurm-%A_%a.out"])
def test_default_as_newer_releases_show_it(tmp_path: Path, pattern: str) -> None:
    log = write(tmp_path / "slurm-128_3.out")
    row = job("128_3", 131, work_dir=str(tmp_path), stdout_pattern=pattern)
    assert locate(LogQuery.of(row)).path == log


def test_task_that_is_not_split_from_its_array_yet(tmp_path: Path) -> None:
    row = job("6_3", 6, state=JobState.PENDING, work_dir=str(tmp_path))
    found = locate(LogQuery.of(row, scontrol_path=f"{tmp_path}/slurm-6_4294967294.out"))
    assert found.path == tmp_path / "slurm-6_3.out"
    assert found.note.startswith("The job has not started.")


def test_waiting_rest_of_an_array(tmp_path: Path) -> None:
    write(tmp_path / "slurm-6_1.out")  # of another task, which has a row of its own
    row = job("6_[2-9]", 6, state=JobState.PENDING, work_dir=str(tmp_path))
    found = locate(LogQuery.of(row, scontrol_path=f"{tmp_path}/slurm-6_4294967294.out"))
    assert (found.path, found.exists, found.may_appear) == (None, False, True)
    assert "each will write a log of its own" in found.note
    assert "slurm-6_*.out" in found.note


def test_host_name_that_is_not_the_nodes_name(tmp_path: Path) -> None:
    row = job(work_dir=str(tmp_path), batch_host="node01", nodes="node[01-02]")
    query = LogQuery.of(row, scontrol_path=f"{tmp_path}/run.%N.out", slurm_version=OLD)
    other = write(tmp_path / "run.a1b2.out")
    found = locate(query)
    assert (found.path, found.exists) == (other, True)
    assert found.note == "Opened run.a1b2.out, the only file that matches run.*.out."
    exact = write(tmp_path / "run.node01.out")
    found = locate(query)
    assert found.path == exact
    assert "Opened run.node01.out" in found.note
    exact.unlink()
    newer = write(tmp_path / "run.c3.out")
    os.utime(other, (1000, 1000))
    found = locate(query)
    assert (found.path, found.note) == (
        newer,
        "Opened run.c3.out, the newest of 2 files that matches run.*.out.",
    )
    found = locate(replace(query, start_time_s=4_000_000_000))
    assert "last written to before this job started" in found.note


def test_full_host_name(tmp_path: Path) -> None:
    log = write(tmp_path / "n1.cluster.out")
    row = job(work_dir=str(tmp_path), nodes="n1.cluster")
    assert locate(LogQuery.of(row, scontrol_path=f"{tmp_path}/%N.out")).path == log


def test_standard_error() -> None:
    row = job(work_dir="/w", stdout_pattern="/w/%j.out")
    for pattern in ("", "N/A", "(null)", "/w/%j.out"):
        query = LogQuery.of(replace(row, stderr_pattern=pattern), Stream.STDERR)
        assert same_as_stdout(query)
        assert locate(query).path == Path("/w/128.out")
    query = LogQuery.of(replace(row, stderr_pattern="/w/%j.err"), Stream.STDERR)
    assert not locate(query).same_as_stdout
    assert locate(query).path == Path("/w/128.err")


def test_a_job_that_could_not_make_its_output_file(tmp_path: Path) -> None:
    row = job(
        work_dir=str(tmp_path),
        state=JobState.FAILED,
        exit_code=ExitCode(0, 53),
        stdout_pattern=f"{tmp_path}/logs/run.out",
    )
    found = locate(LogQuery.of(row))
    assert not found.exists
    assert not found.may_appear
    assert found.note == (
        f"The output file {tmp_path}/logs/run.out could not be created: does its folder exist? "
        f"{tmp_path}/logs does not."
    )


def test_waiting_with_a_folder_that_is_not_there(tmp_path: Path) -> None:
    row = job(work_dir=str(tmp_path), state=JobState.PENDING, stdout_pattern=f"{tmp_path}/logs/run.out")
    query = replace(LogQuery.of(row, slurm_version=OLD), node_local=())
    found = locate(query)
    assert (found.path, found.may_appear) == (tmp_path / "logs" / "run.out", True)
    assert f"mkdir -p {tmp_path}/logs" in found.note
    assert "mkdir" not in locate(replace(query, slurm_version=(23, 2))).note
    assert "mkdir -p '/no such'" in locate(replace(query, stdout_pattern="/no such/a")).note
    assert "mkdir" not in locate(replace(query, node_local=(str(tmp_path),))).note


def test_a_file_from_before_a_job_that_waits(tmp_path: Path) -> None:
    log = write(tmp_path / "run.out")
    row = job(work_dir=str(tmp_path), state=JobState.PENDING, stdout_pattern=str(log))
    found = locate(LogQuery.of(row))
    assert (found.path, found.exists) == (log, True)
    assert found.note == "The job has not started: what run.out holds is from before."
    assert locate(LogQuery.of(replace(row, restarts=1))).note == ""


@pytest.mark.parametrize("folder", ["/scratch/local/no", "/dev/shm/no-such"])
def test_a_disk_of_the_node(folder: str) -> None:
    row = job(batch_host="gpu01", stdout_pattern=f"{folder}/run.out", work_dir="/w")
    found = locate(LogQuery.of(row))
    assert not found.exists
    assert found.note == f"{folder}/run.out is on a disk of the node's own: it can be seen on gpu01 only."


def test_not_there_yet_and_gone(tmp_path: Path) -> None:
    row = job(work_dir=str(tmp_path), stdout_pattern=f"{tmp_path}/run.out")
    query = replace(LogQuery.of(row), node_local=())
    assert "not there yet" in locate(query).note
    assert locate(query).may_appear
    ended = locate(replace(query, state=JobState.COMPLETED))
    assert "moved or removed" in ended.note
    assert not ended.may_appear


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        ("/dev/null", "thrown away"),
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("/dev/zero", "is a device"),
        ("loop", "can't be looked at"),
        ("a\0b", "can't be looked at"),
        ("x" * 300, "can't be looked at"),
    ):
        row = job(work_dir=str(tmp_path), stdout_pattern=str(tmp_path / name))
        found = locate(LogQuery.of(row))
        assert (found.exists, words in found.note) == (False, True), found.note


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_not_readable(tmp_path: Path) -> None:
    log = write(tmp_path / "run.out")
    log.chmod(0)
    row = job(work_dir=str(tmp_path), stdout_pattern=str(log))
    assert "may not be read by you (mode 0000" in locate(LogQuery.of(row)).note
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    row = job(work_dir=str(tmp_path), stdout_pattern=f"{closed}/a.out")
    assert "its folder is closed" in locate(LogQuery.of(row)).note


def test_without_a_folder_nothing_is_looked_for_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "slurm-128.out")
    found = locate(LogQuery.of(job()))
    assert (found.path, found.exists, found.candidates) == (None, False, ())
    assert "folder" in found.note


def test_names_with_any_bytes(tmp_path: Path) -> None:
    log = write(tmp_path / "\udcff[1] *\n.out")
    row = job(work_dir=str(tmp_path), stdout_pattern=str(log))
    assert locate(LogQuery.of(row)).path == log
    log.unlink()
    found = locate(replace(LogQuery.of(row), node_local=()))
    assert not found.exists
    assert "\n" not in found.note
    assert "\udcff" not in found.note


def test_matching_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        write(tmp_path / f"n{number}" / "a.out")
    (tmp_path / "n1" / "folder.out").mkdir()
    assert len(newest_first(f"{tmp_path}/n*/*.out")) == 50
    assert len(newest_first(f"{tmp_path}/n*/*.out", 10)) <= 10
    assert newest_first(f"{tmp_path}/absent*/x") == ()
    assert newest_first("/no/such/*") == ()
    monkeypatch.setattr(matching, "_MAX_MATCHES", 5)
    assert len(newest_first(f"{tmp_path}/n*/a.out")) == 5


def test_literal_brackets_in_a_folder(tmp_path: Path) -> None:
    log = write(tmp_path / "a[1]*" / "run.x.out")
    row = job(work_dir=str(tmp_path / "a[1]*"), stdout_pattern=f"{tmp_path}/a[1]*/run.%N.out")
    assert locate(LogQuery.of(row)).path == log
    relative = LogQuery(Stream.STDOUT, PatternIds(5), "run.%N.out", work_dir=str(tmp_path / "a[1]*"))
    assert locate(relative).path == log
