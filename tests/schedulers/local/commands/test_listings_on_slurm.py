"""squeue, scontrol, scancel and sacct beside Slurm's own: the same jobs, the same commands, what they say."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.schedulers.local.commands.user import Said, User
from tfjobtui.schedulers.local.commands.queue_fields import FIELDS, LETTERS
from tfjobtui.schedulers.local.store import Store

pytestmark = pytest.mark.slurm

SCRIPT = "#!/bin/bash\nexit 0\n"
JOB = (
    "-H",
    "-t",
    "90",
    "--mem=1500M",
    "-n2",
    "-c1",
    "--comment=a word",
    "-Ja name",
    "-olog-%j",
    "script",
    "x y",
)
ARRAY = ("-H", "-t", "1-2:3", "--mem=2G", "-a", "1,3-5%2", "-elog/err", "script")
LETTERS_HERE = "".join(letter for letter in LETTERS if LETTERS[letter] in FIELDS and letter not in "pQPBN")
FIELDS_HERE = [
    name
    for name in FIELDS
    if name not in ("priority", "prioritylong", "cluster", "allocnodes", "stdout", "stderr", "pendingtime")
]
"""Those that are no other ones on another cluster or a moment later; `stdout` of 22.05 is wrong for arrays."""
SQUEUE = (
    ("-h",),
    (),
    ("-l",),
    ("--start",),
    ("-r",),
    ("-h", "-o", " ".join(f"%{letter}" for letter in LETTERS_HERE)),
    ("-o", " ".join(f"%{letter}" for letter in LETTERS_HERE)),
    ("-o", "x%.3j|%5j|%.12T%t"),
    ("-O", "JobID,Name:.6,State:0,Reason:12|,NodeList:3"),
    *(("-O", f"{name}:0") for name in FIELDS_HERE),
    ("-j", "JOB"),
    ("-hjJOB,ARRAY",),
    ("-h", "-j", "ARRAY_3", "-o", "%i %K"),
    ("-j", "99999"),
    ("-j", "99999,99998"),
    ("-j", "x"),
    ("-t", "PENDING", "-h", "-o", "%i"),
    ("-t", "R,CG"),
    ("-t", "all", "-h", "-o", "%i"),
    ("-t", "nothing"),
    ("-u", "nobody"),
    ("-u", "no-such-user"),
    ("--me", "-h", "-o", "%i"),
    ("-n", "a name", "-h", "-o", "%i"),
    ("-n", "other"),
    ("-p", "nowhere"),
    ("-S", "-i", "-h", "-o", "%i"),
    ("-S", "j,i", "-h", "-o", "%i"),
    ("--bogus",),
    ("word",),
)
SCONTROL = (
    ("show", "job", "JOB"),
    ("-o", "show", "job", "JOB"),
    ("show", "job", "ARRAY"),
    ("show", "job", "ARRAY_4"),
    ("show", "job", "99999"),
    ("show", "job", "x"),
    ("show", "jobid=99999"),
    ("show", "nothing"),
    ("show",),
    ("nothing",),
    ("show", "hostnames", "n[01-03,7],x[1-2]"),
    ("show", "hostname", "a,b"),
    ("show", "hostnames"),
    ("show", "hostlist", "a1,a2,a3,b07,b08,c,d1"),
    ("show", "hostlistsorted", "b2,a1,b1"),
    ("show", "node", "nowhere"),
    ("show", "partition", "nowhere"),
    ("show", "step", "99999.0"),
    ("requeue", "JOB"),
    ("requeue", "99999"),
    ("requeue", "x"),
    ("requeue",),
    ("hold",),
    ("suspend", "JOB"),
    ("update", "jobid=JOB", "TimeLimit=x"),
    ("update", "jobid=JOB", "Nice=-5"),
    ("update", "jobid=JOB", "Dependency=nothing"),
    ("update", "jobid=JOB", "bogus=2"),
    ("update", "jobid=JOB"),
    ("update", "jobid=99999", "TimeLimit=5"),
    ("update",),
    ("update", "jobid=JOB", "TimeLimit=30", "Name=new name", "Comment=other", "Nice=5"),
    ("show", "job", "JOB"),
    ("update", "jobid=ARRAY", "ArrayTaskThrottle=3"),
    ("write", "batch_script", "JOB", "-"),
    ("write", "batch_script", "99999", "-"),
    ("write", "batch_script", "JOB", "copy"),
    ("write", "nothing"),
    ("--bogus",),
)
SCANCEL = (
    (),
    ("x",),
    ("99999",),
    ("-Q", "99999"),
    ("-s", "NOTHING", "JOB"),
    ("-t", "nothing"),
    ("-u", "no-such-user"),
    ("-p", "nowhere"),
    ("--bogus",),
    ("-n", "other"),
    ("ARRAY_[4-5]",),
    ("ARRAY_77",),
    ("JOB",),
    ("JOB",),
    ("-v", "JOB"),
    ("-t", "PENDING", "--me"),
)
SACCT = (
    ("-j", "99999"),
    ("-j", "x"),
    ("-o", "nothing"),
    ("-s", "nothing"),
    ("-S", "nothing"),
    ("-u", "no-such-user"),
    ("--bogus",),
    ("word",),
    ("-j", "99999", "-l"),
    ("-j", "99999", "-b"),
    ("-j", "99999", "-P", "-o", "jobid,el,St,maxrss%5,JOBNAME"),
    ("-j", "99999", "-p", "--delimiter=;;", "-o", "jobid,state"),
    ("-j", "99999", "-o", "jobid%20,jobname%-8,state%3"),
    ("-n", "-j", "99999"),
)
CALLS = [
    # Other tests' jobs may be there: only these two are asked for.
    *(
        (
            "squeue",
            *words,
            *(() if any("j" in word[:3] for word in words) or words == ("word",) else ("-j", "JOB,ARRAY")),
        )
        for words in SQUEUE
    ),
    *(("scontrol", *words) for words in SCONTROL),
    *(("scancel", *words) for words in SCANCEL),
    *(("sacct", *words) for words in SACCT),
]


class Side:
    """One of the two, with a job and an array that wait."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = {**environment, "TZ": "UTC"}
        (folder / "script").write_text(SCRIPT)
        self.job = self.array = ""
        self.job, self.array = self._submit(JOB), self._submit(ARRAY)

    def _submit(self, words: Sequence[str]) -> str:
        said = self.run("sbatch", "--parsable", *words)
        assert said.code == 0, said
        return said.out.strip()

    def run(self, *argv: str) -> Said:
        words = [re.sub(r"\bJOB\b", self.job, re.sub(r"ARRAY(?![a-z])", self.array, word)) for word in argv]
        done = subprocess.run(
            words, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def answers(
    user: User, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Said], list[Said]]:
    """What was said to each call, in order, here and there."""
    environment = {**os.environ, **cluster.env}
    store = Store(user.place)
    store.set_meta("next_id", "77001")  # a number that nothing else has
    store.close()
    sides = Side(user.folder, user.environment), Side(tmp_path_factory.mktemp("slurm"), environment)
    both = tuple([_plain(call, side.run(*call), side) for call in CALLS] for side in sides)
    assert (sides[0].folder / "copy").read_text() == (sides[1].folder / "copy").read_text() == SCRIPT
    return both[0], both[1]


def _plain(call: Sequence[str], said: Said, side: Side) -> Said:
    """Without what is another one each time."""
    texts = []
    for text in (said.out, said.err):
        text = text.replace(str(side.folder), "FOLDER")
        for pattern, put in (
            (rf"(?<![\d:.%/])(?<!\d-){side.job}(?![\d.%-]|:\d)", "JOB"),
            (rf"(?<![\d:.%/])(?<!\d-){side.array}(?![\d.%-]|:\d)", "ARRAY"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "MOMENT"),
            (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \d{4}", "NOW"),
            (r"Priority=\d+", "Priority=N"),
            (r"\b(gpu|local)\b", "PART"),
            (r"AllocNode:Sid=\S+", "AllocNode:Sid=N"),
            (r"Scheduler=\w*", "Scheduler=S"),
            (r"\n *Power=\s*", "\n"),
            (r" Power= ?", ""),
            (r"(JOBID|STEPID|ARRAY_JOB_ID) +", r"\1 "),
            (r" {2,}", " "),
            (r"(?m)^ +| +$", ""),
        ):
            text = re.sub(pattern, put, text)
        text = text.strip()
        if call[0] == "squeue" and "-S" not in call:  # the order of rows that are alike is anyone's
            text = "\n".join(sorted(text.splitlines()))
        texts.append(text)
    return Said(said.code, *texts)


ONLY_FIRST_LINE = {("squeue", "-t", "nothing"), ("squeue", "word")}
"""Calls to which Slurm adds a list of states, or its usage."""


@pytest.mark.parametrize(
    "number", range(len(CALLS)), ids=["_".join(call).replace("/", "|")[:60] for call in CALLS]
)
def test_an_answer_is_the_same(number: int, answers: tuple[list[Said], list[Said]]) -> None:
    ours, slurms = (side[number] for side in answers)
    if CALLS[number][:3] in ONLY_FIRST_LINE or CALLS[number][:2] in ONLY_FIRST_LINE:
        ours, slurms = (Said(said.code, "", said.err.splitlines()[0]) for said in (ours, slurms))
    assert ours == slurms
