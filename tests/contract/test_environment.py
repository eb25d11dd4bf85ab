"""What a job finds in its environment."""

from __future__ import annotations

import pytest

from tests.contract.cases import Case, check, submit_all
from tests.contract.side import Side
from tfjobtui.model.ids import JobId

SHOW = 'env | sort; echo "cwd=$PWD"'
ODD = 'odd|name [red] o\'neil "ü"'

CASES = {
    "everything": Case(
        SHOW, ("-o", "env.out", "-n2", "-c1", "--mem=64M", "-t", "10", "-J", "two words"), log="env.out",
        has=("SLURM_JOB_ID={id}\n", "SLURM_JOBID={id}\n", "SLURM_SUBMIT_DIR={folder}\n", "SLURM_JOB_USER={user}\n",
             "cwd={folder}\n"),
        matches=(
            "SLURM_JOB_NAME=two words", "SLURM_NTASKS=2", "SLURM_NPROCS=2", "SLURM_CPUS_PER_TASK=1",
            "SLURM_CPUS_ON_NODE=2", "SLURM_JOB_CPUS_PER_NODE=2", "SLURM_TASKS_PER_NODE=2", "SLURM_MEM_PER_NODE=64",
            "SLURM_JOB_NUM_NODES=1", "SLURM_NNODES=1", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NODEID=0",
            "SLURM_GTIDS=0", "ENVIRONMENT=BATCH",
            r"SLURM_SUBMIT_HOST=[\w.-]+", r"SLURMD_NODENAME=\w+", r"SLURM_JOB_NODELIST=\w+", r"SLURM_NODELIST=\w+",
            r"SLURM_CLUSTER_NAME=\w+", r"SLURM_JOB_PARTITION=\w+", r"SLURM_JOB_QOS=\w+", r"SLURM_JOB_UID=\d+",
            r"SLURM_JOB_GID=\d+", r"SLURM_TOPOLOGY_ADDR=\w+", "SLURM_TOPOLOGY_ADDR_PATTERN=node", "CONTRACT_SEEN=yes",
            "CONTRACT_OTHER=1", r"TMPDIR=/.*", r"PATH=/.*", r"HOME=/.*",
        ),
        lacks=("SLURM_RESTART_COUNT", "SLURM_ARRAY_", "SLURM_STEP", "CUDA_VISIBLE_DEVICES=0"),
    ),
    "nothing asked for": Case(SHOW, ("-o", "least.out"), log="least.out", has=("SLURM_JOB_NAME=script-",),
                              lacks=("SLURM_NTASKS", "SLURM_CPUS_PER_TASK"),
                              matches=("SLURM_CPUS_ON_NODE=1", "SLURM_TASKS_PER_NODE=1")),
    "CPUs": Case(SHOW, ("-o", "cpus.out", "-c2"), log="cpus.out", lacks=("SLURM_NTASKS",),
                 matches=("SLURM_CPUS_PER_TASK=2", "SLURM_CPUS_ON_NODE=2", "SLURM_TASKS_PER_NODE=1")),
    "CPUs to run on": Case("nproc", ("-o", "nproc.out"), log="nproc.out", matches=(r"[12]",)),
    "name": Case('echo "<$SLURM_JOB_NAME>"', ("-J", ODD, "-o", "name.out"), log="name.out", has=(f"<{ODD}>",)),
    "folder": Case('echo "<$SLURM_SUBMIT_DIR> <$PWD>"', ("-D", "/", "-o", "{folder}/dir.out"), log="dir.out",
                   has=("<{folder}> </>",)),
    "export all": Case("env", ("-o", "all.out", "--export=ALL"), log="all.out",
                       matches=("CONTRACT_SEEN=yes", "CONTRACT_OTHER=1")),
    "export some": Case("env", ("-o", "some.out", "--export=CONTRACT_SEEN,ADDED=1,UNSET"), log="some.out",
                        matches=("CONTRACT_SEEN=yes", "ADDED=1", r"HOME=/.*", r"SLURM_JOB_ID=\d+"),
                        lacks=("CONTRACT_OTHER", "UNSET=")),
    "export none": Case("env", ("-o", "none.out", "--export=NONE"), log="none.out", lacks=("CONTRACT_SEEN",),
                        matches=(r"SLURM_JOB_ID=\d+", r"HOME=/.*", r"PATH=/.*", r"SHELL=/.*", r"USER=\S+")),
    "export nil": Case("env", ("-o", "nil.out", "--export=NIL"), log="nil.out", lacks=("CONTRACT_SEEN",),
                       matches=(r"SLURM_JOB_ID=\d+", r"HOME=/.*")),
    "export more": Case("env", ("-o", "more.out", "--export=ALL,CONTRACT_SEEN=changed"), log="more.out",
                        matches=("CONTRACT_SEEN=changed", "CONTRACT_OTHER=1")),
    # srun takes what sbatch was told for its own --export, by SLURM_EXPORT_ENV.
    "export for steps": Case("export LATER=1; srun -n1 /usr/bin/env; echo; srun -n1 --export=ALL env | sed s/^/all:/",
                             ("-o", "later.out", "--export=CONTRACT_SEEN"), log="later.out", has=("\nall:LATER=1",),
                             matches=("CONTRACT_SEEN=yes",), lacks=("\nLATER=1",)),
    "directive": Case("env", (), log="directive.out",
                      head="#SBATCH --export=ALL,CONTRACT_SEEN=there -o directive.out\n",
                      matches=("CONTRACT_SEEN=there",)),
    "several lines": Case('printf "%s|" "$LINES"', ("-o", "lines.out", "--export=ALL,LINES=a\nb"),
                          log="lines.out", has=("a\nb|",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(side: Side) -> dict[str, JobId]:
    return submit_all(side, CASES)


@pytest.mark.parametrize("name", CASES)
def test_it_finds_what_it_has_to(side: Side, jobs: dict[str, JobId], name: str) -> None:
    check(side, CASES[name], jobs[name])


def test_the_row_tells_what_was_asked_for(side: Side, jobs: dict[str, JobId]) -> None:
    row = side.end(jobs["everything"])
    assert (row.cpus, row.memory_bytes, row.time_limit_s, row.node_count) == (2, 64 << 20, 600.0, 1)


def test_odd_names_and_comments(side: Side) -> None:
    comment = "a | comment = with, [red]odd[/] \"quotes\" 'and' ü %j"
    job = side.submit("true", "-J", ODD, "--comment", comment, "-o", "/dev/null", "--hold")
    (row,) = side.rows(job)
    assert row.name == ODD
    found = side.details(job)
    assert (found.get("JobName"), found.get("Comment")) == (ODD, comment)
    assert side.update(job, JobName="other |[/] ü", Comment="").ok
    assert side.rows(job)[0].name == "other |[/] ü"
    assert side.act("cancel", job).ok
    assert side.accounted(job).name == "other |[/] ü"
