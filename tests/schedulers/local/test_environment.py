"""What jobs and tasks see, without a cluster; `test_environment_on_slurm` compares with a real one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tfjobtui.model.ids import TaskSet
from tfjobtui.model.state import JobState
from tfjobtui.schedulers.local.environment import (
    bare_login,
    batch_environment,
    exported,
    needs_login,
    step_environment,
    umask,
)
from tfjobtui.schedulers.local.place import Place, host_name
from tfjobtui.schedulers.local.records import Allocation, JobRecord
from tfjobtui.schedulers.local.request import JobRequest

SUBMITTED = {"A": "1", "B": "x=y", "PATH": "/own", "SLURM_NTASKS": "9", "SBATCH_QOS": "q", "ALL": "no"}
LOGIN = {"HOME": "/home/me", "PATH": "/login"}
PLACE = Place(Path("/state/here"))
REQUEST = JobRequest(name="n", command="/w/n.sh", work_dir="/w", submit_dir="/w")


def record(**changes: Any) -> JobRecord:
    """A started job; names of a request's fields go there."""
    own = JobRequest.__dataclass_fields__.keys() - JobRecord.__dataclass_fields__.keys()
    fields = {name: changes.pop(name) for name in list(changes) if name in own}
    return JobRecord(
        id=7,
        request=replace(REQUEST, **fields),
        state=JobState.RUNNING,
        reason="",
        submit_s=100.0,
        start_s=1000.5,
        token="0123",
        **{"allocation": Allocation((0, 1), 1 << 30), **changes},
    )


def environment(job: JobRecord) -> dict[str, str]:
    return batch_environment(job, PLACE, {"PATH": "/bin"}, node_memory_bytes=8 << 30)


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("ALL", {"A": "1", "B": "x=y", "PATH": "/own", "SBATCH_QOS": "q", "ALL": "no"}),
        ("all,A=2,C=", {"A": "2", "B": "x=y", "C": "", "PATH": "/own", "SBATCH_QOS": "q", "ALL": "no"}),
        ("NONE", LOGIN),
        ("", LOGIN),
        ("A,C=3,NOT_THERE", {**LOGIN, "A": "1", "C": "3"}),
        ("A=x=y,B", {**LOGIN, "A": "x=y", "B": "x=y"}),
        ("'A=1,2',B", {**LOGIN, "A": "1,2", "B": "x=y"}),
        ("A='1,2'", {**LOGIN, "A": "'1,2'"}),
        ("SLURM_NTASKS", LOGIN),
        ("NIL", bare_login()),
    ],
)
def test_what_is_exported(export: str, expected: dict[str, str]) -> None:
    assert exported(export, SUBMITTED, LOGIN) == expected


def test_when_a_login_is_needed() -> None:
    wanted = {"ALL": False, "ALL,A=1": False, "NIL": False, "NONE": True, "": True, "A,B=1": True}
    assert {export: needs_login(export) for export in wanted} == wanted


def test_a_plain_job() -> None:
    found = environment(record())
    assert found["PATH"] == "/state/here/bin:/bin"
    assert (found["TFJOBTUI_LOCAL_FOLDER"], found["TFJOBTUI_LOCAL_TOKEN"]) == ("/state/here", "0123")
    assert (found["SLURM_JOB_ID"], found["SLURM_JOBID"], found["SLURM_JOB_NAME"]) == ("7", "7", "n")
    assert (found["SLURM_CLUSTER_NAME"], found["SLURM_JOB_PARTITION"]) == ("local", "local")
    assert (found["SLURM_JOB_NODELIST"], found["SLURMD_NODENAME"]) == (host_name(), host_name())
    assert (found["SLURM_CONF"], found["SLURM_JOB_UID"]) == ("/dev/null", str(os.getuid()))
    assert (found["SLURM_CPUS_ON_NODE"], found["SLURM_TASKS_PER_NODE"]) == ("2", "2")
    assert found["SLURM_JOB_START_TIME"] == "1000"
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    missing = {
        "SLURM_JOB_END_TIME",
        "SLURM_NTASKS",
        "SLURM_RESTART_COUNT",
        "SLURM_ARRAY_JOB_ID",
        "SLURM_JOB_GPUS",
    }
    assert not missing & found.keys()


def test_tasks_and_memory() -> None:
    found = environment(record(ntasks=2, cpus_per_task=1, memory_per_node=64 << 20, time_limit_s=60.0))
    assert (found["SLURM_NTASKS"], found["SLURM_NPROCS"], found["SLURM_CPUS_PER_TASK"]) == ("2", "2", "1")
    assert (found["SLURM_MEM_PER_NODE"], found["SLURM_TASKS_PER_NODE"]) == ("64", "2")
    assert found["SLURM_JOB_END_TIME"] == "1060"
    assert environment(record(memory_per_cpu=32 << 20))["SLURM_MEM_PER_CPU"] == "32"
    assert environment(record(memory_per_node=0))["SLURM_MEM_PER_NODE"] == "8192"


def test_gpus() -> None:
    held = Allocation((0,), 1 << 30, gpus=(1, 3), gpu_uuids=("GPU-a", "GPU-b"), gpu_type="t4")
    found = environment(record(gpus=2, variables=(("GPUS", "t4:2"),), allocation=held))
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("1,3", "PCI_BUS_ID")
    assert (found["SLURM_JOB_GPUS"], found["SLURM_GPUS_ON_NODE"], found["SLURM_GPUS"]) == ("1,3", "2", "t4:2")
    step = step_environment(found, step=0, ntasks=1, task=0, cpus_per_task=None)
    assert (step["SLURM_STEP_GPUS"], step["CUDA_VISIBLE_DEVICES"]) == ("1,3", "1,3")


def test_a_task_of_an_array() -> None:
    tasks = TaskSet(((1, 1, 1), (4, 8, 2)))
    job = record(array=tasks, variables=(("ARRAY_TASK_STEP", "2"),), array_job_id=5, array_task_id=6)
    found = environment(job)
    assert (found["SLURM_JOB_ID"], found["SLURM_ARRAY_JOB_ID"], found["SLURM_ARRAY_TASK_ID"]) == (
        "7",
        "5",
        "6",
    )
    names = ("COUNT", "MIN", "MAX", "STEP")
    assert [found[f"SLURM_ARRAY_TASK_{name}"] for name in names] == ["4", "1", "8", "2"]


def test_a_requeued_job_knows_it() -> None:
    assert environment(record(restarts=2))["SLURM_RESTART_COUNT"] == "2"


def test_a_task_of_a_step() -> None:
    base = environment(record(ntasks=4))
    found = step_environment(base, step=1, ntasks=2, task=1, cpus_per_task=3)
    assert (found["SLURM_STEP_ID"], found["SLURM_PROCID"], found["SLURM_LOCALID"]) == ("1", "1", "1")
    assert (found["SLURM_NTASKS"], found["SLURM_GTIDS"], found["SLURM_CPUS_PER_TASK"]) == ("2", "0,1", "3")
    assert found["SLURM_UMASK"] == f"{umask():04o}"
    assert (base["SLURM_NTASKS"], base["SLURM_PROCID"]) == ("4", "0")


def test_the_mask_for_new_files() -> None:
    before = os.umask(0o027)
    try:
        assert umask() == 0o027
    finally:
        os.umask(before)
