"""What `scontrol show job` and `scontrol show config` print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.model.ids import JobId
from tfjobtui.schedulers.scheduler import JobDetails, Target
from tfjobtui.schedulers.slurm.scontrol_config import SiteConfig, parse_config
from tfjobtui.schedulers.slurm.scontrol_job import details, parse_records

LINES = """\
JobId={raw} ArrayJobId=900 ArrayTaskId={task} JobName={name}
   UserId=u1(1001) GroupId=domain users(1001) MCS_label=N/A
   Priority=1106 Nice=0 Account=(null) QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:03 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=1796071883 EligibleTime=1796071883
   Partition=gpu AllocNode:Sid=localhost:3153
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=gpu[01-02]
   NumNodes=2 NumCPUs=4 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=4,mem=8G,node=2,billing=4,gres/gpu=4,gres/gpu:a100=4
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:a100:4
     Nodes=gpu01 CPU_IDs=0-1 Mem=4096 GRES=gpu:a100:2(IDX:0-1)
     Nodes=gpu02 CPU_IDs=0-1 Mem=4096 GRES=gpu:a100:2(IDX:0,3)
   MinCPUsNode=1 MinMemoryNode=4G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/w/a b/t.sh --lr=0.1 WorkDir=x
   WorkDir=/w/a b
   Comment=two words Priority=5
   StdErr=/w/a b/err %j.txt
   StdIn=/dev/null
   StdOut=/w/a b/out.txt
   Power=
   TresPerNode=gres:gpu:a100:2
"""


def record(name: str = "train", task: int = 1, raw: int = 901) -> str:
    return LINES.format(name=name, task=task, raw=raw)


def target(text: str) -> Target:
    return Target(JobId.parse(text), None, "train", "u1", None)


def read(text: str, wanted: str = "900_1") -> JobDetails:
    found = details(text, target(wanted))
    assert found is not None
    return found


def test_every_value_of_a_record() -> None:
    found = read(record("a name = with blanks"))
    assert found.get("JobName") == "a name = with blanks"
    assert found.get("UserId") == "u1(1001)"
    assert found.get("GroupId") == "domain users(1001)"
    assert found.get("Command") == "/w/a b/t.sh --lr=0.1 WorkDir=x"
    assert found.get("WorkDir") == "/w/a b"
    assert found.get("Comment") == "two words Priority=5"
    assert found.get("Priority") == "1106"
    assert found.get("StdErr") == "/w/a b/err %j.txt"
    assert found.get("AllocNode:Sid") == "localhost:3153"
    assert found.get("CPUs/Task") == "1"
    assert found.get("ReqB:S:C:T") == "0:0:*:*"
    assert found.get("TresPerNode") == "gres:gpu:a100:2"
    assert found.get("Account") == ""
    assert found.get("Nowhere") == ""
    assert found.gpu_indexes == ("gpu01: a100 0-1", "gpu02: a100 0,3")


def test_one_line_records() -> None:
    text = (
        "JobId=901 ArrayJobId=900 ArrayTaskId=1 JobName=a name with blanks UserId=u1(1001) GroupId=g(1) MCS_label=N/A"
        " Priority=7 Nice=0 Account=(null) QOS=normal JobState=FAILED Reason=ReqNodeNotAvail,_UnavailableNodes:n1"
        " Network=(null) Command=/w/x y.sh a=b WorkDir=/w/x y StdErr=/w/e r StdIn=/dev/null StdOut=/w/o u t Power="
    )
    found = read(text + "\n" + text.replace("901", "902").replace("TaskId=1", "TaskId=2") + "\n")
    assert found.get("JobName") == "a name with blanks"
    assert found.get("JobState") == "FAILED"
    assert found.get("Reason") == "ReqNodeNotAvail,_UnavailableNodes:n1"
    assert found.get("Command") == "/w/x y.sh a=b"
    assert found.get("WorkDir") == "/w/x y"
    assert (found.get("StdErr"), found.get("StdOut")) == ("/w/e r", "/w/o u t")


def test_the_record_that_was_meant() -> None:
    text = record(task=2, raw=902) + "\n" + record(task=1, raw=901) + "\n" + record(task=3, raw=900)
    assert len(parse_records(text)) == 3
    assert read(text, "900_1").get("JobId") == "901"
    assert read(text, "900").get("JobId") == "900"
    assert read(text, "900_[5-9]").get("ArrayTaskId") == "3"
    het = text.replace("ArrayJobId=900 ArrayTaskId=", "HetJobId=900 HetJobOffset=")
    assert read(het, "900+3").get("JobId") == "900"
    assert details("", target("1")) is None
    assert details("No jobs in the system\n", target("1")) is None


RECORDED_26_05 = """\
JobId=1 JobName=job.sh
   SLUID=s4YXM8Q685SH00
   UserId=u1(1001) GroupId=u1(1001) MCS_label=N/A
   Priority=0 Nice=0 Account=(null) QOS=normal
   JobState=PENDING Reason=JobHeldUser Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:00 TimeLimit=00:09:00 TimeMin=N/A
   SubmitTime=1796074641 EligibleTime=Unknown
   Partition=cpu AllocNode:Sid=localhost:23064
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=
   NumNodes=1-1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   ReqTRES=cpu=1,mem=16M,node=1,billing=1
   AllocTRES=(null)
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)
   Command=/tmp/rs/job.sh
   SubmitLine=sbatch -H --parsable -p cpu --time=9 --mem=16M --comment=a b job.sh world
   WorkDir=/tmp/rs
   Comment=a b
   StdErr=
   StdIn=/dev/null
   StdOut=/tmp/rs/slurm-1.out
"""


def test_a_record_of_the_newest_release() -> None:
    found = read(RECORDED_26_05, "1")
    line = "sbatch -H --parsable -p cpu --time=9 --mem=16M --comment=a b job.sh world"
    assert found.get("SubmitLine") == line
    assert found.get("Command") == "/tmp/rs/job.sh"
    assert found.get("WorkDir") == "/tmp/rs"
    assert (found.get("StdErr"), found.get("StdOut")) == ("", "/tmp/rs/slurm-1.out")
    assert (found.get("JobName"), found.get("SLUID")) == ("job.sh", "s4YXM8Q685SH00")
    assert (found.get("ReqTRES"), found.get("AllocTRES")) == ("cpu=1,mem=16M,node=1,billing=1", "")
    assert (found.get("Exclusive"), found.get("LicensesAlloc"), found.get("Network")) == ("NO", "", "")
    one_line = " ".join(line.strip() for line in RECORDED_26_05.splitlines())
    assert read(one_line, "1").get("SubmitLine") == line
    assert read(one_line, "1").get("StdErr") == ""
    assert dict(read(one_line, "1").fields) == dict(found.fields)


def test_a_comment_of_24_11_has_a_blank_behind_it() -> None:
    text = RECORDED_26_05.replace("Comment=a b\n", "Comment=a b \n").replace("   SLUID=s4YXM8Q685SH00\n", "")
    text = text.replace("StdErr=\n", "StdErr=/tmp/rs/job.sh-60.err\n") + "   \n\n"
    found = read(text, "1")
    assert found.get("Comment") == "a b"
    assert found.get("StdErr") == "/tmp/rs/job.sh-60.err"
    assert found.get("StdOut") == "/tmp/rs/slurm-1.out"


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r")).map(lambda name: f"n{name}")


@given(NAMES)
def test_any_name(name: str) -> None:
    found = read(record(name.replace("{", "").replace("}", "")))
    assert found.get("JobName") == name.replace("{", "").replace("}", "")
    assert found.get("QOS") == "normal"


def test_a_name_with_lines() -> None:
    found = read(record("two\nlines"))
    assert found.get("JobName") == "two\nlines"
    assert found.get("Priority") == "1106"


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (
            "AccountingStorageType   = accounting_storage/slurmdbd\nFederationParameters    = (null)\n"
            "PriorityType            = priority/multifactor\nPrivateData             = none\n"
            "SLURM_VERSION           = 22.05.8\nSlurmctldHost[0]        = vm(127.0.0.1)\n",
            SiteConfig("22.05.8"),
        ),
        (
            "AccountingStorageType   = (null)\nFederationParameters    = fed_display\n"
            "PriorityType            = priority/basic\nPrivateData             = jobs,usage\n"
            "SLURM_VERSION           = 20.11.9\n",
            SiteConfig("20.11.9", False, True, True, False),
        ),
        (
            "AccountingStorageType   = accounting_storage/none\nSLURM_VERSION = 24.11.5\n",
            SiteConfig("24.11.5", False),
        ),
    ],
)
def test_what_a_configuration_tells(text: str, config: SiteConfig) -> None:
    assert parse_config(text) == config
