"""Where output goes."""

from __future__ import annotations

import pytest

from tests.contract.cases import Case, check, submit_all
from tests.contract.side import Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

CASES = {
    "two files": Case("echo out; echo err >&2", ("-o", "two.out", "-e", "two.err"), log="two.err", has=("err",),
                      lacks=("out",)),
    "one file by two names": Case("echo out; echo err >&2", ("-o", "one.out", "-e", "one.out"), log="one.out",
                                  has=("out\nerr",)),
    "error file alone": Case("echo out; echo err >&2", ("-e", "alone.err"), log="slurm-{id}.out", has=("out",),
                             lacks=("err",)),
    "append": Case("echo new", ("-o", "append.out", "--open-mode=append"), log="append.out", has=("old\nnew",),
                   files={"append.out": "old\n"}),
    "truncate": Case("echo new", ("-o", "trunc.out"), log="trunc.out", has=("new",), lacks=("old",),
                     files={"trunc.out": "old\n"}),
    "truncate by name": Case("echo new", ("-o", "trunc2.out", "--open-mode=truncate"), log="trunc2.out", has=("new",),
                             lacks=("old",), files={"trunc2.out": "old\n"}),
    "cut off by the job": Case("echo one; : >cut.out; echo two", ("-o", "cut.out"), log="cut.out", has=("two",),
                               lacks=("one", "\0")),
    "job": Case("true", ("-o", "%j-%J-%A.out"), log="{id}-{id}-{id}.out"),
    "name and user": Case("true", ("-J", "my name", "-o", "%x-%u.out"), log="my name-{user}.out"),
    "node and task": Case("true", ("-o", "n%n.t%t.%s.j%j.out"), log="n0.t0.batch.j{id}.out"),
    "widths": Case("true", ("-o", "w-%8j-%12j-%3u-%2t.out"), log="w-{id:08}-{id:010}-{user}-00.out"),
    "task of no array": Case("true", ("-o", "a%a-%j.out"), log="a4294967294-{id}.out"),
    "percent": Case("true", ("-o", "50%%-%%j-%j.out"), log="50%-%j-{id}.out"),
    "unknown pattern": Case("true", ("-o", "%z-%j.out"), log="%z-{id}.out"),
    "backslash": Case("true", ("-o", "back\\%j.out"), log="back%j.out"),
    "two backslashes": Case("true", ("-o", "back\\\\%x.out"), log="back\\%x.out"),
    "odd file name": Case("echo here", ("-o", "odd [red] 'name'.out"), log="odd [red] 'name'.out", has=("here",)),
    "folder with blanks": Case("pwd", ("-D", "a b", "-o", "x.out"), makes=("a b",), log="a b/x.out", has=("/a b",)),
    "folder as it is named": Case("pwd", ("-D", "{folder}/deep", "-o", "%j.out"), makes=("deep",), log="deep/{id}.out",
                                  has=("{folder}/deep",)),
    "absolute file": Case("pwd", ("-D", "/", "-o", "{folder}/abs-%j.out"), log="abs-{id}.out", matches=("/",)),
    "folder with percent": Case("pwd", ("-D", "100%done", "-o", "x.out"), makes=("100%done",), log="100%done/x.out",
                                has=("/100%done",)),
    # sbatch puts the folder in front before anything is expanded, so what is a pattern in its name takes part.
    "pattern in the folder": Case("pwd", ("-D", "q%%r", "-o", "x.out"), makes=("q%%r", "q%r"), log="q%r/x.out",
                                  has=("/q%%r",)),
    "pattern and no name": Case("pwd", ("-D", "p%j"), makes=("p%j",), log="p%j/slurm-{id}.out", has=("/p%j",)),
    "pattern as a folder": Case("true", ("-o", "sub/%x/%j.out", "-J", "folder"), makes=("sub", "sub/folder"),
                                log="sub/folder/{id}.out"),
    "nowhere": Case("echo nothing; echo to see >&2", ("-o", "/dev/null")),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(side: Side) -> dict[str, JobId]:
    return submit_all(side, CASES)


@pytest.mark.parametrize("name", CASES)
def test_output_goes_where_it_has_to(side: Side, jobs: dict[str, JobId], name: str) -> None:
    check(side, CASES[name], jobs[name])


def test_a_folder_that_is_not_there(side: Side) -> None:
    """Slurm makes it from 23.02 on; before that, as on a cluster of 22.05, there is no log and no job."""
    job = side.submit("echo here", "-o", "new/deep/%j.out")
    row = side.end(job)
    log = side.folder / f"new/deep/{job}.out"
    makes_folders = side.is_local or _release(side) >= (23, 2)
    if makes_folders:
        assert (row.state, log.read_text()) == (JobState.COMPLETED, "here\n")
    else:
        assert (row.state, row.exit_code) == (JobState.FAILED, ExitCode(0, 53))
        assert not log.exists()


def _release(side: Side) -> tuple[int, int]:
    year, month, *_ = side.command("sbatch", "--version").stdout.split()[1].split(".")
    return int(year), int(month)
