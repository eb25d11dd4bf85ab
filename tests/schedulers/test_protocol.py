"""What the values and the protocol of a scheduler promise to those who use them."""

from __future__ import annotations

import shlex
import time

import pytest

from tests.schedulers.standins import StandIns, closing, standins
from tfjobtui.errors import SubmissionError
from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.scheduler import JobDetails, SubmitRequest, Target
from tfjobtui.schedulers.slurm.control import MOST_IDS

__all__ = ["standins"]


def target(text: str, cluster: str | None = None, *, pending_only: bool = False) -> Target:
    return Target(JobId.parse(text), cluster, "n", "u1", None, pending_only)


MIXED = [
    target("11_[2-6%2]", pending_only=True),
    target("7", "slate"),
    target("12"),
    target("10+1"),
    target("8", "slate"),
]


async def test_the_commands_that_are_shown_are_those_that_run(standins: StandIns) -> None:
    for name in ("scancel", "scontrol"):
        standins.make(name, "exit 0")
    async with closing(standins.scheduler()) as slurm:
        shown = [*slurm.action_commands("cancel", MIXED, "USR1"), *slurm.action_commands("cancel", MIXED)]
        assert standins.calls == []
        for signal in ("USR1", None):
            await slurm.cancel(MIXED, signal)
        for action in ("hold", "release", "requeue"):
            shown += slurm.action_commands(action, MIXED)
            results = await getattr(slurm, action)(MIXED)
            assert results[0].command.argv in shown
    names = [(words[0].rsplit("/", 1)[-1], *words[1:]) for words in shown]
    assert [shlex.split(call) for call in standins.calls] == [list(words) for words in names]
    assert names[3] == ("scancel", "-v", "--state=PENDING", "11_[2-6]")


async def test_many_jobs_take_several_commands(standins: StandIns) -> None:
    standins.make("scancel", "exit 0")
    async with closing(standins.scheduler()) as slurm:
        found = slurm.action_commands("cancel", [target(str(number)) for number in range(1, MOST_IDS + 2)])
    assert [len(words) for words in found] == [MOST_IDS + 2, 3]


async def test_a_command_that_is_missing_is_shown_by_its_name(standins: StandIns) -> None:
    async with closing(standins.scheduler()) as slurm:
        assert slurm.action_commands("hold", [target("7")]) == (("scontrol", "hold", "7"),)


async def test_a_refused_submission_tells_the_command_that_was_run(standins: StandIns) -> None:
    standins.make("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    async with closing(standins.scheduler()) as slurm:
        with pytest.raises(SubmissionError) as caught:
            await slurm.submit(SubmitRequest("/w/t.sh", ("--partition=x",), work_dir="/"))
    error = caught.value
    assert error.argv == (str(standins.folder / "sbatch"), "--parsable", "--partition=x", "/w/t.sh")
    assert (error.returncode, error.said) == (1, "sbatch: error: invalid partition specified: x")


@pytest.mark.parametrize(
    ("name", "value", "is_moment"),
    [
        ("SubmitTime", "1796073871", True),
        ("LastSchedEval", "1796073871", True),
        ("EligibleTime", "Unknown", False),
        ("RunTime", "00:00:03", False),
        ("TimeLimit", "1796073871", False),
        ("Priority", "1796073871", False),
        ("StartTime", "99999999999999999999", False),
    ],
)
def test_moments_are_shown_by_the_clock(name: str, value: str, is_moment: bool) -> None:
    details = JobDetails(JobId(7), ((name, value),))
    by_clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1796073871))
    assert details.readable == ((name, by_clock if is_moment else value),)
    assert details.get(name) == ("" if value == "Unknown" else value)
