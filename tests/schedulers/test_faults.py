"""What the client does when Slurm's commands fail, hang, or are not quite Slurm's."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path

import pytest

from tests.schedulers.standins import StandIns, closing, gone, reached, standins
from tests.schedulers.test_squeue import row
from tfjobtui.errors import QueryError, SubmissionError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import SubmitRequest, Target
from tfjobtui.schedulers.slurm import early
from tfjobtui.schedulers.slurm.client import SlurmScheduler
from tfjobtui.schedulers.slurm.form import layout
from tfjobtui.schedulers.slurm.squeue import Reader

__all__ = ["standins"]

TARGET = Target(JobId(7), None, "train", "u1", 1796072000)


def answer(standins: StandIns, data: bytes, name: str = "answer") -> str:
    """Shell text that prints these bytes."""
    path = standins.folder / name
    path.write_bytes(data)
    return f"cat {path}"


def fails(words: str, code: int = 1) -> str:
    return f"echo '{words}' >&2; exit {code}"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (fails("slurm_load_jobs error: Socket timed out on send/recv operation"), "too busy"),
        (fails("slurm_load_jobs error: Unable to contact slurm controller (connect failure)"), "not answer"),
        (fails("Rate limit exceeded, please retry momentarily"), "how often"),
        (fails("Invalid user: NAME", 0), "does not know the user"),
        (fails("squeue: error: something new"), "something new"),
        ("kill -9 $$", "exit code"),
    ],
)
async def test_a_failed_query_is_no_empty_queue(standins: StandIns, body: str, part: str) -> None:
    standins.make("squeue", body)
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError, match=part):
            await slurm.jobs()


async def test_it_recovers_after_a_failure(standins: StandIns) -> None:
    standins.make("squeue", fails("slurm_load_jobs error: Unable to contact slurm controller"))
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError):
            await slurm.jobs()
        standins.make("squeue", answer(standins, row(layout())))
        assert len((await slurm.jobs()).jobs) == 1
        assert slurm.notes[:1] != ("",)
        assert not any("-O" in note for note in slurm.notes)


async def test_an_empty_queue_is_no_failure(standins: StandIns) -> None:
    standins.make("squeue", "exit 0")
    async with closing(standins.scheduler()) as slurm:
        assert (await slurm.jobs()).jobs == ()


async def test_a_query_that_hangs_ends_with_all_it_has_started(standins: StandIns) -> None:
    pids = standins.folder / "pids"
    standins.make("squeue", f"trap '' TERM; sleep 60 & echo $$ $! > {pids}; wait; sleep 60")
    async with closing(standins.scheduler(query_timeout_s=0.3)) as slurm:
        started = time.monotonic()
        with pytest.raises(QueryError, match="no answer within"):
            await slurm.jobs()
        assert time.monotonic() - started < 4
    for pid in pids.read_text().split():
        assert await gone(int(pid))


async def test_the_command_ends_when_its_last_caller_goes(standins: StandIns) -> None:
    pids = standins.folder / "pids"
    standins.make("squeue", f"echo $$ > {pids}; exec sleep 60")
    async with closing(standins.scheduler()) as slurm:
        callers = [asyncio.create_task(slurm.jobs()) for _ in range(2)]
        await reached(lambda: pids.exists() and bool(pids.read_text().strip()))
        pid = int(pids.read_text())
        callers[0].cancel()
        await asyncio.gather(callers[0], return_exceptions=True)
        assert not await gone(pid, within_s=0.1)
        callers[1].cancel()
        await asyncio.gather(callers[1], return_exceptions=True)
        assert await gone(pid)


async def test_callers_at_the_same_time_share_one_query(standins: StandIns) -> None:
    standins.make("squeue", "sleep 0.2; " + answer(standins, row(layout())))
    async with closing(standins.scheduler()) as slurm:
        answers = await asyncio.gather(slurm.jobs(), slurm.jobs(), slurm.jobs())
        assert answers[0] is answers[1] is answers[2]
        assert len(standins.calls) == 1
        await slurm.jobs()
        assert len(standins.calls) == 2


async def test_at_most_three_processes_and_one_of_a_kind(standins: StandIns) -> None:
    log = standins.folder / "log"
    busy = f"echo + >> {log}; sleep 0.15; echo - >> {log}"
    for name in ("squeue", "scontrol", "sinfo", "sprio", "scancel"):
        standins.make(name, busy)
    async with closing(standins.scheduler()) as slurm:
        await asyncio.gather(
            slurm.jobs(), slurm.jobs(everyone=True), slurm.details(TARGET), slurm.partitions(),
            slurm.nodes(), slurm.priority(TARGET), slurm.cancel([TARGET]), slurm.hold([TARGET]),
            return_exceptions=True,
        )  # fmt: skip
    running = most = 0
    for line in log.read_text().split():
        running += 1 if line == "+" else -1
        most = max(most, running)
    assert most <= 3
    assert len(standins.calls) >= 8


async def test_an_action_does_not_wait_for_queries_that_hang(standins: StandIns) -> None:
    for name in ("squeue", "scontrol", "sinfo"):
        standins.make(name, "sleep 30")
    standins.make("scancel", "exit 0")
    async with closing(standins.scheduler()) as slurm:
        hanging = [
            asyncio.create_task(slurm.jobs()),
            asyncio.create_task(slurm.details(TARGET)),
            asyncio.create_task(slurm.partitions()),
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            (result,) = await slurm.cancel([TARGET])
        assert result.ok
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


def start_early(slurm: SlurmScheduler) -> None:
    query = early.start(slurm.settings, slurm.commands)
    assert query is not None
    slurm.adopt(query)


async def test_the_first_query_starts_before_the_event_loop(standins: StandIns) -> None:
    standins.make("squeue", answer(standins, row(layout())))
    slurm = standins.scheduler()
    start_early(slurm)
    async with closing(slurm):
        assert [job.key for job in (await slurm.jobs()).jobs] == ["901"]
        assert len(standins.calls) == 1
        await slurm.jobs()
        assert len(standins.calls) == 2


def many_rows() -> list[bytes]:
    """300 rows, some of them with ends of rows and of fields in their names."""
    shape = layout()
    names = ["plain", "a\x1e\nb", "c\x1fd", "we|ird [red]"]
    return [
        row(shape, JobArrayID=str(number), JobID=str(number), Name=names[number % 4])
        for number in range(1, 301)
    ]


def in_pieces(standins: StandIns, rows: list[bytes]) -> str:
    """Shell text that prints the rows in three parts, the second and third after a file `go1`, `go2` is there."""
    data = b"".join(rows)
    cuts = [0, len(data) // 3 + 7, 2 * len(data) // 3 + 3, len(data)]
    texts = [answer(standins, data[a:b], f"part{a}") for a, b in itertools.pairwise(cuts)]
    waits = [f"until [ -e {standins.folder}/go{n} ]; do sleep 0.02; done" for n in (1, 2)]
    return "; ".join([texts[0], waits[0], texts[1], waits[1], texts[2]])


async def test_rows_are_read_while_others_are_on_their_way(standins: StandIns) -> None:
    """And the answer is the same as if it had come at once."""
    rows = many_rows()
    standins.make("squeue", in_pieces(standins, rows))
    slurm = standins.scheduler()
    start_early(slurm)
    async with closing(slurm):
        reader = slurm._queue
        for go in (1, 2):
            assert await reached(reader.warm_up)
            while reader.warm_up():
                pass
            assert 0 < len(reader._warm.jobs) < len(rows)
            (standins.folder / f"go{go}").touch()
        assert await reached(lambda: slurm.early_answer() is not None)
        got = slurm.early_answer()
        assert got is not None
        whole = Reader(layout()).parse(b"".join(rows))
        assert got.jobs == tuple(whole.jobs)
        assert list(got.problems) == whole.problems == []
        assert (await slurm.jobs()).jobs == got.jobs
        assert len(standins.calls) == 1


async def test_rows_that_came_before_a_failure_count_for_nothing(standins: StandIns) -> None:
    rows = answer(standins, b"".join(many_rows()))
    standins.make("squeue", f"{rows}; echo 'slurm_load_jobs error: Zero Bytes were transmitted' >&2; exit 1")
    slurm = standins.scheduler()
    start_early(slurm)
    async with closing(slurm):
        assert await reached(slurm._queue.warm_up)
        with pytest.raises(QueryError):
            await slurm.jobs()


async def test_a_first_query_that_fails_is_told(standins: StandIns) -> None:
    standins.make("squeue", "exec sleep 60")
    slurm = standins.scheduler(query_timeout_s=0.2)
    start_early(slurm)
    async with closing(slurm):
        with pytest.raises(QueryError, match="no answer"):
            await slurm.jobs()


@pytest.mark.parametrize(
    "refusal",
    [
        fails("squeue: invalid option -- O"),
        fails("This squeue is cached. Options: -u -j -o -h -t -a --local", 2),
        "echo '             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)'",
    ],
)
async def test_a_wrapper_that_takes_no_long_form(standins: StandIns, refusal: str) -> None:
    rows = answer(standins, row(layout(short=True)))
    standins.make("squeue", f'case " $* " in *" -O "*) {refusal};; *) {rows};; esac')
    async with closing(standins.scheduler()) as slurm:
        (job,) = (await slurm.jobs()).jobs
        assert (job.id, job.name, job.state) == (JobId(901), "train", JobState.RUNNING)
        assert any("no -O" in note for note in slurm.notes)
        await slurm.jobs()
    assert [" -O " in call for call in standins.calls if call.startswith("squeue")][-1] is False
    assert len([call for call in standins.calls if call.startswith("squeue")]) == 3


async def test_a_squeue_with_a_form_of_its_own(standins: StandIns) -> None:
    standins.make("squeue", "echo JOBID NAME; echo 1 train")
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError, match="form of its own"):
            await slurm.jobs()


async def test_unknown_fields_are_left_out(standins: StandIns) -> None:
    rows = answer(standins, row(layout(without=frozenset({"SchedNodes", "RestartCnt"}))))
    standins.make(
        "squeue",
        'case "$*" in *SchedNodes*) echo "squeue: error: Invalid job format specification: SchedNodes" >&2; exit 1;;'
        ' *RestartCnt*) echo "squeue: error: Invalid job format specification: restartcnt" >&2; exit 1;;'
        f" *) {rows};; esac",
    )
    async with closing(standins.scheduler()) as slurm:
        (job,) = (await slurm.jobs()).jobs
        assert (job.key, job.user_id, job.work_dir) == ("901", 1001, "/w")
        assert any("RestartCnt, SchedNodes" in note for note in slurm.notes)
        await slurm.jobs()
        assert len([call for call in standins.calls if call.startswith("squeue")]) == 4


async def test_jobs_that_the_queue_no_longer_has(standins: StandIns) -> None:
    standins.make("scontrol", fails("slurm_load_jobs error: Invalid job id specified"))
    async with closing(standins.scheduler()) as slurm:
        assert await slurm.details(TARGET) is None
    standins.make("scontrol", fails("slurm_load_jobs error: Unable to contact slurm controller"))
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError):
            await slurm.details(TARGET)


async def test_several_clusters_of_which_one_is_silent(standins: StandIns) -> None:
    shape = layout(clusters=True)
    rows = answer(standins, b"CLUSTER: slate\n" + row(shape, Cluster="slate"))
    standins.make("squeue", rows + "; echo 'squeue: error: No cluster basalt known by database.' >&2")
    async with closing(standins.scheduler(clusters=("slate", "basalt"))) as slurm:
        with pytest.raises(QueryError):
            await slurm.jobs()
        standins.make("squeue", rows)
        (job,) = (await slurm.jobs()).jobs
        assert (job.cluster, job.key) == ("slate", "slate/901")
    assert "-M slate,basalt" in standins.calls[-1]
    assert "--local" not in standins.calls[-1]


async def test_a_jobs_cluster_goes_with_everything(standins: StandIns) -> None:
    for name in ("scancel", "scontrol", "sprio", "sstat", "sacct"):
        standins.make(name, "exit 0")
    target = Target(JobId(7), "slate", "train", "u1", 1796072000)
    async with closing(standins.scheduler(clusters=("slate",))) as slurm:
        await slurm.cancel([target, TARGET])
        await slurm.hold([target])
        await slurm.update(target, {"TimeLimit": "5"})
        await slurm.details(target)
        await slurm.stored_script(target)
        await slurm.priority(target)
        await slurm.step_usage(target)
        await slurm.ended([target])
    calls = [call for call in standins.calls if "--helpformat" not in call]
    assert all("-M slate" in call for call in calls if call != "scancel -v 7")
    assert "scancel -v 7" in calls
    assert {call.split()[0] for call in calls} == {"scancel", "scontrol", "sprio", "sstat", "sacct"}


CONFIG = """cat <<'END'
AccountingStorageType   = accounting_storage/none
FederationParameters    = fed_display
PriorityType            = priority/basic
PrivateData             = jobs
SLURM_VERSION           = 20.11.9
END"""


async def test_what_is_particular_is_asked_once_and_told(standins: StandIns) -> None:
    standins.make("squeue", answer(standins, row(layout())))
    standins.make("scontrol", CONFIG)
    standins.make("sacct", fails("Slurm accounting storage is disabled"))
    async with closing(standins.scheduler()) as slurm:
        await slurm.jobs()
        assert not any(call.startswith("scontrol") for call in standins.calls)
        await slurm.learn()
        await slurm.learn()
        await slurm.jobs()
        assert "--local" not in standins.calls[-1]
        have = slurm.capabilities
        notes = " ".join(slurm.notes)
    assert have.version == "20.11.9"
    assert not have.accounting
    assert not have.everyone
    assert not have.priority
    assert not have.submit
    assert "sbatch was not found" in have.submit.reason
    for part in ("federation", "older than 22.05", "keeps no accounting", "only their own jobs"):
        assert part in notes
    assert len([call for call in standins.calls if call.startswith("scontrol")]) == 1


async def test_no_accounting_is_found_out(standins: StandIns) -> None:
    standins.make("sacct", "[ $1 = --helpformat ] && echo JobIDRaw JobID State && exit\n"
                  + fails("Slurm accounting storage is disabled"))  # fmt: skip
    async with closing(standins.scheduler()) as slurm:
        assert slurm.capabilities.accounting
        assert await slurm.ended([TARGET]) == ()
        assert not slurm.capabilities.accounting
        calls = len(standins.calls)
        assert await slurm.ended([TARGET]) == ()
        assert len(standins.calls) == calls


FIELDS = ("JobIDRaw", "JobID", "User", "State", "Submit", "JobName", "Cluster")


def accounted(*values: str) -> bytes:
    return "\x1f".join(values).encode() + b"\n"


async def test_how_jobs_ended(standins: StandIns) -> None:
    data = (
        accounted("5", "5", "other", "COMPLETED", "1500000000", "old", "slate")
        + accounted("7", "7", "u1", "FAILED", "1796072000", "train", "slate")
        + accounted("8", "8", "u1", "PENDING", "1796072000", "train", "slate")
        + accounted("1166", "1043_91", "u1", "TIMEOUT", "1796072000", "train", "slate")
        + accounted("30", "30_4", "u1", "CANCELLED by 1001", "1796072000", "train", "slate")
        + accounted("31", "30_2", "u1", "COMPLETED", "1796072000", "train", "slate")
    )
    standins.make(
        "sacct", f"[ $1 = --helpformat ] && echo {' '.join(FIELDS)} && exit\n" + answer(standins, data)
    )

    def target(text: str) -> Target:
        return Target(JobId.parse(text), None, "train", "u1", 1796072000)

    async with closing(standins.scheduler()) as slurm:
        texts = ("5", "7", "8", "9", "1166", "30_[3-6]")
        ended = await slurm.ended([target(text) for text in texts])
        assert {str(job.id): job.state for job in ended} == {
            "7": JobState.FAILED,
            "1043_91": JobState.TIMEOUT,
            "30_4": JobState.CANCELLED,
        }
        (task,) = await slurm.ended([target("1043_91")])
        assert task.raw_id == 1166
    first = standins.calls[1]
    assert len(standins.calls) == 3
    assert "-j 5,7,8,9,1166,30" in first
    assert " -S " in first


async def test_accounting_that_fails_tells_of_no_end(standins: StandIns) -> None:
    standins.make("sacct", "[ $1 = --helpformat ] && echo JobIDRaw JobID State && exit\n"
                  + fails("sacct: error: Problem talking to the database: Connection refused"))  # fmt: skip
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError, match="database"):
            await slurm.ended([TARGET])


async def test_each_target_gets_its_own_result(standins: StandIns) -> None:
    said = (
        "scancel: Terminating job 7\nscancel: error: Kill job error on job id 8: Access/permission denied\n"
        "scancel: error: Kill job error on job id 9: Job/step already completing or completed"
    )
    standins.make("scancel", f"cat >&2 <<'END'\n{said}\nEND\nexit 210")
    targets = [Target(JobId(number), None, "n", "u1", None) for number in (9, 8, 7)]
    async with closing(standins.scheduler()) as slurm:
        results = await slurm.cancel(targets, "USR1")
    assert [result.target.id.job for result in results] == [9, 8, 7]
    assert [result.ok for result in results] == [True, False, True]
    assert results[0].message == "It had already ended."
    assert "Access/permission denied" in results[1].message
    assert "somebody else's" in results[1].message
    assert results[2].command.argv[1:] == ("-v", "-s", "USR1", "9", "8", "7")
    assert results[2].command.returncode == 210


async def test_ids_go_without_throttle_and_cut_lists_as_the_whole_that_waits(standins: StandIns) -> None:
    standins.make("scancel", "exit 0")
    targets = [
        Target(JobId.parse(text), None, "n", "u1", None, pending_only=True)
        for text in ("11_[2-6%2]", "12_[1,3,...]%4")
    ]
    async with closing(standins.scheduler()) as slurm:
        await slurm.cancel([*targets, TARGET])
    assert standins.calls == ["scancel -v --state=PENDING 11_[2-6] 12", "scancel -v 7"]


async def test_an_action_that_hangs(standins: StandIns) -> None:
    standins.make("scontrol", "exec sleep 60")
    async with closing(standins.scheduler(action_timeout_s=0.2)) as slurm:
        (result,) = await slurm.hold([TARGET])
    assert not result.ok
    assert "not known whether" in result.message
    assert result.command.returncode is None


async def test_a_missing_command_is_a_result(standins: StandIns) -> None:
    async with closing(standins.scheduler()) as slurm:
        (result,) = await slurm.requeue([TARGET])
        assert not result.ok
        assert "scontrol was not found" in result.message
        with pytest.raises(QueryError, match="squeue was not found"):
            await slurm.jobs()
        assert await slurm.ended([TARGET]) == ()
        assert not slurm.capabilities.accounting


def request(folder: Path) -> SubmitRequest:
    return SubmitRequest("/w/t.sh", ("--partition=gpu",), ("a b", "c"), str(folder), {"X": "1"})


async def test_a_submission(standins: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    monkeypatch.setenv("SBATCH_PARTITION", "cpu")
    standins.make("sbatch", "pwd; env; echo Welcome; echo '75168;slate'; echo 'sbatch: note' >&2")
    async with closing(standins.scheduler()) as slurm:
        taken = await slurm.submit(request(standins.folder))
    assert (taken.id, taken.cluster) == (JobId(75168), "slate")
    lines = taken.messages.splitlines()
    assert lines[0] == str(standins.folder)
    assert "X=1" in lines
    assert "Welcome" in lines
    assert "sbatch: note" in lines
    assert not any(line.startswith(("SLURM_JOB_ID", "SBATCH_")) for line in lines)
    assert taken.command.argv[1:] == ("--parsable", "--partition=gpu", "/w/t.sh", "a b", "c")


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (
            fails("sbatch: error: Batch job submission failed: Invalid partition name specified"),
            ("Invalid partition name", "no such partition", "sinfo"),
        ),
        ("exec sleep 60", ("no answer", "may have been taken")),
        (
            fails("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"),
            ("timed out", "may have been taken"),
        ),
        ("echo hello", ("no job id", "hello", "may have been taken")),
    ],
)
async def test_submissions_that_fail(standins: StandIns, body: str, parts: tuple[str, ...]) -> None:
    standins.make("sbatch", body)
    async with closing(standins.scheduler(action_timeout_s=0.3)) as slurm:
        with pytest.raises(SubmissionError) as caught:
            await slurm.submit(request(standins.folder))
    for part in parts:
        assert part in str(caught.value)


async def test_a_submission_from_a_folder_that_is_gone(standins: StandIns) -> None:
    standins.make("sbatch", "echo 1")
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(SubmissionError, match="not there any more"):
            await slurm.submit(request(standins.folder / "gone"))


async def test_no_figures_yet(standins: StandIns) -> None:
    standins.make("sstat", "echo 'JobID|NTasks'; echo \"couldn't get steps for job 1\" >&2; exit 0")
    async with closing(standins.scheduler()) as slurm:
        assert await slurm.step_usage(TARGET) == ()
    standins.make("sstat", fails("sstat: error: Unable to contact slurm controller", 0))
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(QueryError):
            await slurm.step_usage(TARGET)


async def test_the_shell_of_each_kind_of_job(standins: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    standins.make("srun", "exit 0")
    monkeypatch.setenv("SHELL", "/bin/zsh")
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    fixed = ("--overlap", "--pty", "-N1", "-n1", "--mem=0")
    async with closing(standins.scheduler()) as slurm:
        assert "SLURM_JOB_ID" not in slurm.foreground_environment()
        plain = slurm.shell_argv(TARGET, "gpu02")
        assert plain[1:] == ("--jobid=7", *fixed, "-w", "gpu02", "/bin/zsh", "-l")
        task = Target(JobId(128, task=3), "slate", "n", "u", None, raw_id=131)
        assert slurm.shell_argv(task)[1:4] == ("-M", "slate", "--jobid=131")
        het = Target(JobId(10, het_offset=1), None, "n", "u", None, raw_id=11)
        assert slurm.shell_argv(het)[1:3] == ("--jobid=10", "--het-group=1")
