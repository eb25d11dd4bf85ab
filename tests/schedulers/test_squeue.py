"""What squeue prints."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode, Gpus, Job
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.slurm.form import Layout, layout
from tfjobtui.schedulers.slurm.squeue import PIECE, Reader, Reading

USUAL = {
    "JobArrayID": "901",
    "JobID": "901",
    "State": "RUNNING",
    "UserName": "u1",
    "Reason": "None",
    "Account": "grp",
    "Partition": "gpu",
    "QOS": "normal",
    "Reservation": "(null)",
    "Feature": "(null)",
    "Dependency": "(null)",
    "PriorityLong": "1106",
    "RestartCnt": "0",
    "SubmitTime": "1796072000",
    "EligibleTime": "1796072001",
    "StartTime": "1796072010",
    "EndTime": "1796073810",
    "TimeLimit": "30:00",
    "NumNodes": "1",
    "NumCPUs": "2",
    "tres-alloc": "cpu=2,mem=2G,node=1,billing=2,gres/gpu=2,gres/gpu:a100=2",
    "tres-per-node": "gres:gpu:a100:2",
    "NodeList": "gpu01",
    "BatchHost": "gpu01",
    "SchedNodes": "(null)",
    "exit_code": "0",
    "Cluster": "slate",
    "Name": "train",
    "Command": "/w/train.sbatch",
    "WorkDir": "/w",
    "StdOut": "/w/slurm-901.out",
    "StdErr": "/w/slurm-901.out",
    "UserID": "1001",
}


def row(shape: Layout, **changed: str | bytes) -> bytes:
    """A row as squeue prints it."""
    values = {**USUAL, **{name.replace("_", "-") if name.startswith("tres") else name: value
                          for name, value in changed.items()}}  # fmt: skip
    parts = [value if isinstance(value, bytes) else value.encode() for value in map(values.get, shape.names)
             if value is not None]  # fmt: skip
    return b"\x1f".join(parts) + b"\x1e\n"


def one(**changed: str | bytes) -> Job:
    shape = layout()
    reading = Reader(shape).parse(row(shape, **changed))
    assert reading.problems == []
    (job,) = reading.jobs
    return job


def test_a_row_gives_every_field() -> None:
    job = one()
    assert job == Job(
        id=JobId(901),
        key="901",
        raw_id=901,
        name="train",
        state=JobState.RUNNING,
        state_text="RUNNING",
        user="u1",
        user_id=1001,
        account="grp",
        partition="gpu",
        qos="normal",
        priority=1106,
        submit_time_s=1796072000,
        eligible_time_s=1796072001,
        start_time_s=1796072010,
        end_time_s=1796073810,
        time_limit_s=1800,
        node_count=1,
        cpus=2,
        memory_bytes=2 * 1024**3,
        gpus=Gpus((("a100", 2),)),
        nodes="gpu01",
        batch_host="gpu01",
        command="/w/train.sbatch",
        work_dir="/w",
        stdout_pattern="/w/slurm-901.out",
        stderr_pattern="/w/slurm-901.out",
    )
    assert hash(job) == hash(one())
    with pytest.raises(AttributeError):
        job.name = "other"  # type: ignore[misc]


def test_options_name_every_field_whole_and_ended() -> None:
    option, form = layout().option
    assert option == "-O"
    assert form.startswith("JobArrayID:0\x1f,JobID:0\x1f,State:0\x1f,")
    assert form.endswith(",UserID:0\x1e")
    assert "Cluster" not in form
    assert "Cluster:0\x1f" in layout(clusters=True).option[1]
    assert "RestartCnt" not in layout(without=frozenset({"RestartCnt"})).option[1]
    option, form = layout(short=True).option
    assert option == "-o"
    assert form.startswith("%i\x1f%A\x1f%T\x1f")
    assert form.endswith("%U\x1e")


def test_separators_of_others_and_blanks_stay_in_texts() -> None:
    job = one(Name="odd|name = x", WorkDir="/w/a|b c", Command="/w/a|b c/t.sh a=b [red]")
    assert (job.name, job.work_dir) == ("odd|name = x", "/w/a|b c")
    assert job.command == "/w/a|b c/t.sh a=b [red]"
    assert one(Name="N/A").name == "N/A"
    assert one(Name="(null)").name == "(null)"


@pytest.mark.parametrize(
    ("text", "count", "throttle"),
    [("5782_[5-100]", 96, None), ("77_[60-89,91-94,96-98]", 37, None), ("11_[2-6%2]", 5, 2),
     ("11_[2-6]%2", 5, 2), ("9_[0-98:2]", 50, None), ("9_[1,3,...]", 2, None)],
)  # fmt: skip
def test_folded_arrays(text: str, count: int, throttle: int | None) -> None:
    job = one(JobArrayID=text, State="PENDING")
    number = int(text.split("_")[0])
    assert job.id.job == number
    assert job.key == f"{number}_[]"
    assert job.task_count == count
    assert job.id.tasks is not None
    assert job.id.tasks.throttle == throttle
    if number == 77:
        assert [task in job.id.tasks for task in (89, 90, 91, 95, 98)] == [True, False, True, False, True]


def test_default_output_of_a_task_is_the_arrays() -> None:
    job = one(JobArrayID="128_3", JobID="131", StdOut="/w/slurm-131.out", StdErr="/w/slurm-131.out")
    assert job.id == JobId(128, task=3)
    assert job.raw_id == 131
    assert job.stdout_pattern == job.stderr_pattern == "/w/slurm-%A_%a.out"
    assert one(JobArrayID="128_3", JobID="131", StdOut="/w/%j.out").stdout_pattern == "/w/%j.out"


def test_gpus_of_a_job_without_gpus_per_node() -> None:
    job = one(tres_alloc="cpu=2,mem=512M,node=1,billing=2,gres/gpu=2")
    assert job.gpus.count == 2
    assert one(tres_alloc="N/A").gpus.count == 0


def test_het_component_and_unknown_state() -> None:
    job = one(JobArrayID="10+1", JobID="11", State="WARP")
    assert job.id == JobId(10, het_offset=1)
    assert job.key == "10+1"
    assert (job.state, job.state_text) == (JobState.UNKNOWN, "WARP")
    assert job.state.is_active


def test_waiting_and_ended_jobs() -> None:
    waiting = one(State="PENDING", StartTime="N/A", EndTime="N/A", EligibleTime="0", NodeList="",
                  BatchHost="n/a", Reason="ReqNodeNotAvail, UnavailableNodes:n[1-3]")  # fmt: skip
    assert waiting.start_time_s is waiting.end_time_s is waiting.eligible_time_s is None
    assert waiting.exit_code is None
    assert (waiting.nodes, waiting.batch_host) == ("", "")
    assert waiting.reason == "ReqNodeNotAvail, UnavailableNodes:n[1-3]"
    assert one(State="FAILED", exit_code="256").exit_code == ExitCode(1)
    assert one(State="FAILED", exit_code="0:53").exit_code == ExitCode(0, 53)
    assert one(TimeLimit="UNLIMITED").time_limit_s == math.inf
    assert one(TimeLimit="Partition_Limit").time_limit_s is None


def test_bytes_that_are_no_utf8_come_back_whole() -> None:
    job = one(Name=b"caf\xe9", WorkDir="/w/größe")
    assert job.name.encode("utf-8", "surrogateescape") == b"caf\xe9"
    assert job.work_dir == "/w/größe"


ANY = st.binary(max_size=40)
FREE = ANY.map(lambda text: text.replace(b"\x1f", b"").replace(b"\x1e\n", b""))


@given(name=FREE, folder=FREE, command=FREE)
def test_any_bytes_in_free_texts(name: bytes, folder: bytes, command: bytes) -> None:
    job = one(Name=name, WorkDir=b"/" + folder, Command=b"/" + command)
    assert job.name.encode("utf-8", "surrogateescape") == name
    assert job.work_dir.encode("utf-8", "surrogateescape") == b"/" + folder
    assert job.command.encode("utf-8", "surrogateescape") == b"/" + command


@given(name=st.lists(st.sampled_from([b"a", b"\x1f", b"\x1e", b"\n", b"\x1e\n", b" "]), max_size=8))
def test_even_our_own_separators_in_a_name(name: list[bytes]) -> None:
    text = b"".join(name)
    shape = layout()
    data = row(shape, JobArrayID="1") + row(shape, Name=text, JobArrayID="2") + row(shape, JobArrayID="3")
    reading = Reader(shape).parse(data)
    assert reading.problems == []
    assert [job.id.job for job in reading.jobs] == [1, 2, 3]
    assert reading.jobs[1].name.encode() == text
    assert reading.jobs[1].command == "/w/train.sbatch"


@given(st.binary(max_size=300))
def test_no_answer_breaks_the_reader(data: bytes) -> None:
    shape = layout()
    whole = row(shape)
    reading = Reader(shape).parse(whole + data)
    assert reading.jobs[:1] == Reader(shape).parse(whole).jobs


def test_a_bad_row_costs_one_row() -> None:
    shape = layout()
    bad = row(shape, JobArrayID="what")
    data = row(shape, JobArrayID="1") + bad + row(shape, JobArrayID="3")
    reading = Reader(shape).parse(data)
    assert [job.id.job for job in reading.jobs] == [1, 3]
    assert len(reading.problems) == 1
    assert "what" in reading.problems[0]


def test_a_row_without_its_end_is_told_and_not_shown() -> None:
    shape = layout()
    reading = Reader(shape).parse(row(shape) + row(shape, JobArrayID="7")[:90])
    assert [job.id.job for job in reading.jobs] == [901]
    assert len(reading.problems) == 1


def test_an_unchanged_row_keeps_its_job() -> None:
    shape = layout()
    reader = Reader(shape)
    first = reader.parse(row(shape, JobArrayID="1") + row(shape, JobArrayID="2"))
    data = row(shape, JobArrayID="1") + row(shape, JobArrayID="2", State="COMPLETING")
    second = reader.parse(data, first.rows)
    assert second.jobs[0] is first.jobs[0]
    assert second.jobs[1] is not first.jobs[1]
    assert second.jobs[1].state is JobState.COMPLETING


def test_a_long_answer_is_read_in_steps() -> None:
    shape = layout()
    count = 4 * PIECE // len(row(shape))
    data = b"".join(row(shape, JobArrayID=str(number), Name=f"n{number}\n|") for number in range(1, count))
    reading = Reading()
    for _ in Reader(shape).steps(data, reading):
        assert len(reading.jobs) < count
    assert [job.id.job for job in reading.jobs] == list(range(1, count))


def test_clusters_go_with_their_jobs() -> None:
    shape = layout(clusters=True)
    data = (
        b"CLUSTER: slate\n" + row(shape, JobArrayID="1", Cluster="slate")
        + b"\nCLUSTER: granite\n" + row(shape, JobArrayID="2_[1-3]", Cluster="N/A")
    )  # fmt: skip
    reading = Reader(shape).parse(data)
    assert reading.problems == []
    assert [(job.cluster, job.key) for job in reading.jobs] == [
        ("slate", "slate/1"),
        ("granite", "granite/2_[]"),
    ]


@pytest.mark.parametrize(
    ("default", "array_default"),
    [("/w/slurm-%j.out", "/w/slurm-%A_%a.out"), ("slurm-%j.out", "slurm-%A_%a.out")],
    ids=["24.11.5", "26.05.5"],
)
def test_newer_releases(default: str, array_default: str) -> None:
    """What 24.11 and 26.05 print of the output's name, of an array, of ends and of GPUs asked for by node."""
    failed = one(
        State="FAILED", Reason="RaisedSignal:53(Real-time signal 19)", exit_code="0:53", StdOut=default,
        StdErr="(null)", Command="(null)",
    )  # fmt: skip
    assert failed.exit_code == ExitCode(0, 53)
    assert (failed.reason, failed.command) == ("RaisedSignal:53(Real-time signal 19)", "")
    assert (failed.stdout_pattern, failed.stderr_pattern) == (default, "")
    waiting = one(
        JobArrayID="8_[3-6%2]", JobID="8", State="PENDING", Reason="JobArrayTaskLimit", exit_code="0:0",
        StartTime="N/A", EndTime="N/A", NodeList="", BatchHost="", StdOut=array_default, StdErr="(null)",
        tres_alloc="cpu=1,mem=16M,node=1,billing=1,gres/gpu=1", tres_per_node="gres/gpu:1",
    )  # fmt: skip
    assert waiting.id.tasks is not None
    assert (waiting.task_count, waiting.id.tasks.throttle) == (4, 2)
    assert (waiting.stdout_pattern, waiting.exit_code) == (array_default, None)
    assert waiting.gpus == Gpus(((None, 1),))
    cancelled = one(
        JobArrayID="10_[5,7-9]", JobID="10", State="CANCELLED", Reason="JobHeldUser", exit_code="0:0",
        StdOut=array_default, StdErr="(null)", NodeList="",
    )  # fmt: skip
    assert (cancelled.state, cancelled.task_count) == (JobState.CANCELLED, 4)
    task = one(JobArrayID="8_1", JobID="14", StdOut=array_default, StdErr="(null)")
    assert (task.raw_id, task.array_id, task.stdout_pattern) == (14, 8, array_default)
    dependent = one(
        State="CANCELLED", Reason="DependencyNeverSatisfied", Dependency="afterok:8_*(failed)", StdOut=default,
        StdErr="/w/e-%A.txt",
    )  # fmt: skip
    assert (dependent.dependency, dependent.stderr_pattern) == ("afterok:8_*(failed)", "/w/e-%A.txt")


def test_short_form_knows_gpus_per_node_and_leaves_the_rest_open() -> None:
    shape = layout(short=True)
    reading = Reader(shape).parse(row(shape, NumNodes="2", tres_per_node="gres:gpu:a100:2"))
    (job,) = reading.jobs
    assert job.gpus == Gpus((("a100", 4),))
    assert job.memory_bytes is None
    assert job.stdout_pattern == ""
    assert job.work_dir == "/w"
    assert job.restarts == 0
