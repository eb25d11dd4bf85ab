"""srun within a job."""

from __future__ import annotations

import pytest

from tests.contract.cases import Case, check, submit_all
from tests.contract.side import Side
from tfjobtui.model.ids import JobId
from tfjobtui.model.job import ExitCode
from tfjobtui.model.state import JobState

RANK = (
    'echo "rank $SLURM_PROCID of $SLURM_NTASKS local $SLURM_LOCALID node $SLURM_NODEID step $SLURM_STEP_ID"'
)

CASES = {
    "tasks": Case(f"srun -n2 bash -c '{RANK}'; srun -n1 bash -c '{RANK}'; srun bash -c '{RANK}'",
                  ("-o", "tasks.out", "-n2"), log="tasks.out",
                  matches=("rank 0 of 2 local 0 node 0 step 0", "rank 1 of 2 local 1 node 0 step 0",
                           "rank 0 of 1 local 0 node 0 step 1", "rank 1 of 2 local 1 node 0 step 2")),
    "environment": Case("srun -n2 -c1 -J named env", ("-o", "step-env.out", "-n2"), log="step-env.out",
                        has=("SLURM_JOB_ID={id}\n",),
                        matches=("SLURM_STEP_ID=0", "SLURM_STEPID=0", "SLURM_STEP_NUM_TASKS=2",
                                 "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_TASKS_PER_NODE=2", r"SLURM_STEP_NODELIST=\w+", "SLURM_JOB_NAME=named",
                                 r"SLURM_TASK_PID=\d+", "SLURM_GTIDS=0,1", "SLURM_CPUS_PER_TASK=1")),
    "codes": Case("srun -n2 bash -c 'exit $SLURM_PROCID'; echo a=$?\n"
                  "srun -n2 bash -c 'exit $((5 - SLURM_PROCID))'; echo b=$?",
                  ("-o", "codes.out", "-n2"), log="codes.out",
                  matches=("a=1", "b=5", "srun: error: .*: task 1: Exited with exit code 1")),
    "killed": Case("srun -n1 bash -c 'kill -9 $$'; echo a=$?; srun -n1 bash -c 'kill -TERM $$'; echo b=$?; exit 0",
                   ("-o", "skilled.out"), log="skilled.out",
                   matches=("srun: error: .*: task 0: Killed", "a=137", "b=143")),
    "not found": Case("srun -n1 no-such-command; echo rc=$?", ("-o", "notfound.out"), log="notfound.out",
                      has=("execve(): no-such-command: No such file or directory",), matches=("rc=2",)),
    "as the script's end": Case("srun -n1 bash -c 'exit 6'", ("-o", "end.out"), JobState.FAILED, ExitCode(6)),
    "one ends the others": Case(
        "srun -n2 -K1 bash -c '[[ $SLURM_PROCID == 0 ]] || exit 3; exec sleep 50'; rc=$?; echo rc=$rc; ((rc >= 3))",
        ("-o", "badexit.out", "-n2"), log="badexit.out", has=("task 1: Exited with exit code 3", "task 0: Terminated")),
    "labels": Case("srun -n2 -l bash -c 'echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2'",
                   ("-o", "labels.out", "-n2"), log="labels.out", matches=("0: out 0", "1: out 1", "0: err 0", "1: err 1")),
    "files": Case("srun -n2 -o step.%j.%s.%t.out bash -c 'echo $SLURM_PROCID'; srun -n2 -o both.%J.out echo x; "
                  "srun -n1 -o sep.out -e sep.err bash -c 'echo o; echo e >&2'; srun -n1 -o none echo hidden; "
                  "head step.$SLURM_JOB_ID.0.*.out; wc -l <both.$SLURM_JOB_ID.1.out; cat sep.out sep.err",
                  ("-o", "files.out", "-n2"), log="files.out",
                  has=("==> step.{id}.0.0.out <==\n0\n", "==> step.{id}.0.1.out <==\n1\n", "\n2\no\ne"),
                  lacks=("hidden",)),
    "input": Case("echo given | srun -n2 -l cat; srun -n2 -l -i stepin.txt cat; srun -n1 -i none cat; echo end",
                  ("-o", "input.out", "-n2"), log="input.out", files={"stepin.txt": "a file\n"},
                  matches=("0: given", "1: given", "0: a file", "1: a file", "end")),
    "script's input": Case("srun -n1 cat; cat", ("-o", "scriptin.out", "-i", "scriptin.txt"), log="scriptin.out",
                           files={"scriptin.txt": "for the script\n"}, matches=("for the script",)),
    "folder": Case("srun -n1 pwd; srun -n1 -D / pwd; cd /usr; srun -n1 pwd", ("-o", "folder.out"), log="folder.out",
                   matches=("/", "/usr", ".*/contract-.*")),
    "at once": Case("srun -n1 -c1 --overlap bash -c 'touch here1; until [[ -e here2 ]]; do sleep 0.1; done' &\n"
                    "srun -n1 -c1 --overlap bash -c 'touch here2; until [[ -e here1 ]]; do sleep 0.1; done' &\n"
                    "wait %1 %2",
                    ("-o", "atonce.out", "-n1")),
    "too many tasks": Case("srun -n 3 true; echo rc=$?", ("-o", "many.out"), log="many.out",
                           has=("More processors requested than permitted",), matches=("rc=1",)),
    "no command": Case("srun -n1; echo rc=$?", ("-o", "nocommand.out"), log="nocommand.out",
                       has=("No command given to execute",), matches=("rc=1",)),
    "bad option": Case("srun --bogus true; echo rc=$?", ("-o", "badoption.out"), log="badoption.out",
                       has=("unrecognized option '--bogus'",), lacks=("rc=0",)),
    "arguments": Case("srun -n1 printf '<%s>' 'a b' '' '$HOME' '*'", ("-o", "stepargs.out"), log="stepargs.out",
                      has=("<a b><><$HOME><*>",)),
    "environment of one": Case("A=1 srun -n1 --export=ALL,B=2 bash -c 'echo $A$B'", ("-o", "one.out"), log="one.out",
                               matches=("12",)),
    "host names": Case('[[ $(scontrol show hostnames) == "$SLURM_JOB_NODELIST" ]] && '
                       "scontrol show hostnames n[1-2,07]; scontrol show hostnames $SLURM_JOB_NODELIST | wc -l; scontrol show hostlist n1,n2,n3",
                       ("-o", "hosts.out"), log="hosts.out", has=("n1\nn2\nn07\n1\nn[1-3]",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(side: Side) -> dict[str, JobId]:
    return submit_all(side, CASES)


@pytest.mark.parametrize("name", CASES)
def test_it_does_what_it_has_to(side: Side, jobs: dict[str, JobId], name: str) -> None:
    check(side, CASES[name], jobs[name])


def test_a_step_from_outside(side: Side) -> None:
    job = side.submit("echo ready; until [[ -e outside.stop ]]; do sleep 0.1; done", "-o", "out.out", "-c2")
    side.wait_for("out.out", "ready")
    command = ("srun", f"--jobid={job}", "--overlap", "-n1")
    done = side.command(*command, "bash", "-c", "echo $SLURM_JOB_ID $SLURM_CPUS_ON_NODE")
    assert done.stdout == f"{job} 2\n"
    assert side.command(*command, "bash", "-c", "exit 9", check=False).returncode == 9
    (side.folder / "outside.stop").touch()
    assert side.end(job).state is JobState.COMPLETED


def test_what_the_steps_use(side: Side) -> None:
    body = "srun -n1 bash -c 'echo ready; until [[ -e usage.stop ]]; do :; done'"
    job = side.submit(body, "-o", "usage.out")
    side.wait_for("usage.out", "ready")
    found = side.step_usage(job, "0")
    assert {"batch", "0"} <= set(found)
    assert found["0"].tasks == 1
    (side.folder / "usage.stop").touch()
    assert side.end(job).state is JobState.COMPLETED
