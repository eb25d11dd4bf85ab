"""Actions on jobs: one sentence about what happened, and a note in the command log."""

from __future__ import annotations

import dataclasses

import pytest

from tests.actions.fakes import FakeScheduler, job
from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.control import Control, check_signal
from tfjobtui.actions.fields import changeable, field_named, time_limit
from tfjobtui.errors import ActionError, UsageError
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.scheduler import Capability, Scheduler, Target


def targets(*ids: str) -> list[Target]:
    return [Target.of(job(item)) for item in ids]


@pytest.fixture
def scheduler() -> FakeScheduler:
    return FakeScheduler()


@pytest.fixture
def log() -> CommandLog:
    return CommandLog(None)


@pytest.fixture
def control(scheduler: FakeScheduler, log: CommandLog) -> Control:
    checked: Scheduler = scheduler  # the fake has the whole protocol
    return Control(checked, log)


async def test_one_job_is_named(control: Control, log: CommandLog) -> None:
    outcome = await control.cancel(targets("7"))
    assert outcome.summary == "cancelled 7"
    assert outcome.ok
    (entry,) = log
    assert entry.purpose == "cancel 7"
    assert entry.record.argv == ("cancel", "7")


async def test_a_partial_refusal_is_told_with_the_schedulers_words(
    control: Control, scheduler: FakeScheduler, log: CommandLog
) -> None:
    scheduler.refusals = {"5782_7": "Access/permission denied"}
    outcome = await control.cancel(targets("1", "2", "3", "5782_7"))
    assert outcome.summary == "cancelled 3 of 4 jobs; 5782_7: Access/permission denied"
    assert not outcome.ok
    assert [str(result.target.id) for result in outcome.refused] == ["5782_7"]
    assert len(log) == 1, "one command served all four jobs"


async def test_refusals_of_all_and_of_many(control: Control, scheduler: FakeScheduler) -> None:
    scheduler.refusals = {str(number): "no\x1b" for number in range(1, 7)}
    assert (await control.hold(targets("1"))).summary == "not held; 1: no␛"
    summary = (await control.hold(targets("1", "2", "3", "4", "5"))).summary
    assert summary.startswith("held none of 5 jobs; 1: no")
    assert summary.endswith("and 2 more were refused")


async def test_what_is_said_of_a_job_although_it_was_done(control: Control, scheduler: FakeScheduler) -> None:
    scheduler.remarks = {"7": "It had already ended."}
    assert (await control.cancel(targets("7"))).summary == "cancelled 7 (it had already ended)"
    scheduler.refusals = {"9": "no"}
    assert (await control.cancel(targets("7", "8", "9"))).summary == (
        "cancelled 2 of 3 jobs (7: it had already ended); 9: no"
    )
    scheduler.remarks = {str(number): "It had already ended." for number in range(1, 6)}
    assert "3: it had already ended, …)" in (await control.cancel(targets("1", "2", "3", "4", "5"))).summary


async def test_a_signal_that_was_not_sent(control: Control, scheduler: FakeScheduler) -> None:
    scheduler.refusals = {"7": "no"}
    assert (await control.cancel(targets("7"), "usr1")).summary == "SIGUSR1 not sent; 7: no"


async def test_targets_go_to_the_scheduler_as_they_were_chosen(
    control: Control, scheduler: FakeScheduler
) -> None:
    rest = Target.of(job("11_[2-6%2]", JobState.PENDING), pending_only=True)
    await control.cancel([rest], "usr1")
    assert scheduler.calls == [("cancel", (rest,), "USR1")]


@pytest.mark.parametrize(
    ("verb", "summary"),
    [("hold", "held 2 jobs"), ("release", "released 2 jobs"), ("requeue", "requeued 2 jobs")],
)
async def test_the_other_actions(control: Control, verb: str, summary: str) -> None:
    assert (await getattr(control, verb)(targets("1", "2"))).summary == summary


@pytest.mark.parametrize(
    ("verb", "capability"), [("hold", "hold"), ("release", "hold"), ("requeue", "requeue")]
)
async def test_what_the_scheduler_cannot_do_is_not_tried(
    control: Control, scheduler: FakeScheduler, verb: str, capability: str
) -> None:
    scheduler.capabilities = dataclasses.replace(
        scheduler.capabilities, **{capability: Capability(False, "This cluster does not let jobs be held.")}
    )
    with pytest.raises(ActionError, match="does not let jobs"):
        await getattr(control, verb)(targets("1"))
    assert scheduler.calls == []


async def test_a_change_is_checked_before_it_is_sent(control: Control, scheduler: FakeScheduler) -> None:
    outcome = await control.update(targets("7"), {"timelimit": "90m", "minmemorynode": "64G"})
    assert outcome.summary == "changed 7"
    assert scheduler.calls[0][2] == {"TimeLimit": "01:30:00", "MinMemoryNode": "65536"}
    with pytest.raises(UsageError, match="not a time"):
        await control.update(targets("7"), {"TimeLimit": "soon"})
    with pytest.raises(UsageError) as caught:
        await control.update(targets("7"), {"TimeLimitt": "1"})
    assert "TimeLimit" in caught.value.hint
    assert len(scheduler.calls) == 1


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        ("30", "30", "30:00"),
        ("1:30", "1:30", "1 minutes and 30 seconds"),
        ("1:30:00", "1:30:00", "1:30:00"),
        ("2-12", "2-12", "2d 12:00"),
        ("1-0:30", "1-0:30", "1d 00:30"),
        ("1h30m", "01:30:00", "1:30:00"),
        ("2d", "2-00:00:00", "2d 00:00"),
        ("+30", "+30", "more than now"),
        ("unlimited", "UNLIMITED", "Without a limit"),
    ],
)
def test_time_limits_are_read_as_slurm_reads_them(text: str, value: str, note: str) -> None:
    checked = time_limit(text)
    assert checked.value == value
    assert note in checked.note


@pytest.mark.parametrize("text", ["", "0", "1:2:3:4", "abc", "1 30", "-", "１"])
def test_what_is_no_time_limit(text: str) -> None:
    with pytest.raises(UsageError):
        time_limit(text)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("Nice", "10", "-5"),
        ("NumNodes", "2-4", "two"),
        ("Partition", "gpu,cpu", "g pu"),
        ("Dependency", "", "after ok"),
        ("StartTime", "now+1hour", "2 o'clock!"),
        ("MinMemoryNode", "1.5T", "much"),
        ("ArrayTaskThrottle", "0", "x"),
        ("JobName", "any [text]", "a\nb"),
        ("Comment", "", "x" * 1025),
    ],
)
def test_values_of_fields(name: str, good: str, bad: str) -> None:
    field = field_named(name)
    field.check(good)
    with pytest.raises(UsageError):
        field.check(bad)


def test_what_can_be_changed_depends_on_the_state() -> None:
    waiting = {field.name for field in changeable(job(state=JobState.PENDING))}
    running = {field.name for field in changeable(job(state=JobState.RUNNING))}
    assert {"Partition", "TimeLimit"} <= waiting
    assert "ArrayTaskThrottle" not in waiting
    assert running == {"TimeLimit", "JobName", "Comment"}
    assert "ArrayTaskThrottle" in {field.name for field in changeable(job("7_[1-4]", JobState.PENDING))}
    assert changeable(job(state=JobState.COMPLETED)) == ()


@pytest.mark.parametrize(("text", "name"), [("usr1", "USR1"), ("SIGTERM", "TERM"), ("10", "10")])
def test_signals(text: str, name: str) -> None:
    assert check_signal(text) == name


def test_no_signal() -> None:
    with pytest.raises(UsageError, match="no signal"):
        check_signal("USR9")
