"""How jobs end, what they are started with, and what is left of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.contract.cases import Case, check, submit_all
from tests.contract.side import Side, target
from tfjobtui.logs.location import LogQuery, locate
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

BAD = JobState.FAILED
NULL = ("-o", "/dev/null")

CASES = {
    "good": Case("echo out; echo err >&2", log="slurm-{id}.out", has=("out", "err")),
    "code": Case("exit 3", NULL, BAD, ExitCode(3)),
    "highest code": Case("exit 255", NULL, BAD, ExitCode(255)),
    "last command": Case("false; (exit 9)", NULL, BAD, ExitCode(9)),
    "killed": Case("kill -9 $$", NULL, BAD, ExitCode(0, 9)),
    "term": Case("kill -TERM $$", NULL, BAD, ExitCode(0, 15)),
    "segmentation fault": Case("ulimit -c 0; kill -SEGV $$", NULL, BAD, ExitCode(0, 11)),
    "child killed": Case("bash -c 'kill -9 $$'", NULL, BAD, ExitCode(137)),
    "no such command": Case("no-such-command", NULL, BAD, ExitCode(127)),
    "interpreter": Case(
        "true", ("-o", "interp.out"), BAD, ExitCode(2), interpreter="/no/such/interp", log="interp.out",
        has=("bad interpreter(/no/such/interp)",),
    ),
    "other interpreter": Case("print('python', 1 + 1)", ("-o", "py.out"), interpreter="/usr/bin/env python3",
                              log="py.out", has=("python 2",)),
    "no log": Case("true", ("-o", "/proc/nowhere/x.out"), BAD, ExitCode(0, 53)),
    "no error log": Case("true", ("-o", "noerr.out", "-e", "/proc/nowhere/x.err"), BAD, ExitCode(0, 53)),
    "no input": Case("true", ("-o", "noin.out", "-i", "missing.txt"), BAD, ExitCode(0, 53)),
    "no folder": Case("pwd", ("-D", "/no/such/folder", "-o", "{folder}/nofolder.out"), log="nofolder.out",
                      has=("couldn't chdir to `/no/such/folder'", "/tmp")),
    "arguments": Case('for word in "$@"; do echo "<$word>"; done', ("-o", "args.out"),
                      arguments=("a b", "", "$HOME", "*", "o'neil", "-x", "--array=3"), log="args.out",
                      has=("<a b>", "<>", "<$HOME>", "<*>", "<o'neil>", "<-x>", "<--array=3>")),
    "stdin": Case("cat", ("-i", "input.txt", "-o", "stdin.out"), log="stdin.out", has=("from a file",),
                  files={"input.txt": "from a file\n"}),
    "no stdin": Case("cat; echo done", ("-o", "nostdin.out"), log="nostdin.out", has=("done",)),
    "directives": Case(
        'echo "$SLURM_JOB_NAME $SLURM_CPUS_ON_NODE"; exit 4', (), BAD, ExitCode(4), log="from-script.out",
        has=("in script 2",),
        head='#SBATCH -J "in script" -o from-script.out\n #SBATCH -J no\n##SBATCH -J no\n#SBATCH -c2 # no\n\n# a word\n'
        "true\n#SBATCH -J late\n",
    ),
    "command line first": Case('echo "$SLURM_JOB_NAME"', ("-J", "given", "-o", "first.out"), log="first.out",
                               has=("given",), head="#SBATCH -J in-script -o other.out\n"),
    "umask": Case("umask; touch made; stat -c %a made", ("-o", "umask.out"), log="umask.out", matches=("0?022", "644")),
    "session": Case('[[ -t 0 || -t 1 ]] && echo terminal; ps -o sid= -p $$ | tr -d " "; echo $$', ("-o", "session.out"),
                    log="session.out", lacks=("terminal",), matches=(r"\d+",)),
    "left behind": Case("nohup sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >left1; "
                        "setsid sleep 1000 & sleep 0.1; pgrep -n -u $UID -x sleep >left2", NULL),
    "left in group": Case("sleep 1000 & echo $! >left4; disown", NULL),
    "background step": Case("srun -n1 bash -c 'echo $$ >left3; exec sleep 1000' &\n"
                            "until [[ -s left3 ]]; do sleep 0.1; done", NULL),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(side: Side) -> dict[str, JobId]:
    return submit_all(side, CASES)


@pytest.mark.parametrize("name", CASES)
def test_it_ends_as_it_has_to(side: Side, jobs: dict[str, JobId], name: str) -> None:
    check(side, CASES[name], jobs[name])


@pytest.mark.parametrize("name", ["good", "code", "killed", "interpreter", "no log"])
def test_accounting_says_the_same(side: Side, jobs: dict[str, JobId], name: str) -> None:
    job, case = jobs[name], CASES[name]
    row, told = side.end(job), side.accounted(job)
    assert (told.state, told.exit_code) == (case.state, case.exit_code)
    assert (told.name, told.user, told.work_dir) == (row.name, row.user, row.work_dir)
    assert told.start_time_s is not None
    assert told.submit_time_s == row.submit_time_s


def test_nothing_of_a_job_outlives_it(side: Side, jobs: dict[str, JobId]) -> None:
    side.end(jobs["left behind"])
    side.end(jobs["left in group"])
    side.end(jobs["background step"])
    # Where Slurm keeps no control groups, as on the test cluster, what has lost its parents escapes it.
    for name in ("left1", "left2", "left3", "left4") if side.is_local else ("left3",):
        pid = int((side.folder / name).read_text())
        end = time.monotonic() + 10
        while _is_sleeping(pid):
            assert time.monotonic() < end, name
            time.sleep(0.1)


def _is_sleeping(pid: int) -> bool:
    try:
        return b"sleep\x001000" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_the_row_tells_what_became_of_it(side: Side, jobs: dict[str, JobId]) -> None:
    row = side.end(jobs["good"])
    assert (row.name, row.cpus, row.node_count, row.restarts) == (Path(row.command).name, 1, 1, 0)
    assert row.user_id == os.getuid()
    assert row.work_dir == str(side.folder)
    assert row.submit_time_s is not None
    assert row.start_time_s is not None
    assert row.end_time_s is not None
    assert row.submit_time_s <= row.start_time_s <= row.end_time_s <= row.start_time_s + 30


def test_the_script_can_be_submitted_again(side: Side, jobs: dict[str, JobId]) -> None:
    """By what the scheduler has kept of it, after the file has changed."""
    job = side.submit('echo "first text $1"; exit 5', "-o", "once.out", arguments=("x",))
    stored = side.run(side.scheduler.stored_script(target(job)))
    assert stored is not None
    assert stored.text == '#!/bin/bash\necho "first text $1"; exit 5\n'
    again = side.folder / "again.sh"
    again.write_text(stored.text)
    other = side.submit_file(again, "-o", "twice.out", arguments=("y",))
    assert side.end(other).exit_code == side.end(job).exit_code == ExitCode(5)
    assert side.wait_for("once.out") == "first text x\n"
    assert side.wait_for("twice.out") == "first text y\n"


def test_a_script_that_changes_after_the_submission(side: Side) -> None:
    script = side.folder / "changing.sh"
    script.write_text("#!/bin/bash\necho as submitted\n")
    job = side.submit_file(script, "--hold", "-o", "changing.out")
    script.write_text("#!/bin/bash\necho as changed\n")
    assert side.act("release", job).ok
    assert side.end(job).state is JobState.COMPLETED
    assert side.wait_for("changing.out") == "as submitted\n"


def test_the_log_is_where_the_program_looks(side: Side, jobs: dict[str, JobId]) -> None:
    row = side.end(jobs["good"])
    found = locate(LogQuery.of(row))
    assert found.exists, found
    assert found.path == side.folder / f"slurm-{jobs['good']}.out"
    assert os.access(found.path, os.R_OK)
