"""The same steps under Slurm's srun and the local one: what comes out, what is said, and the exit codes."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.schedulers.local.commands.user import User

pytestmark = pytest.mark.slurm
PATIENCE_S = 300.0

TASK = """\
#!/bin/bash
case $1 in
  both) sleep "0.$SLURM_PROCID"; echo "out $SLURM_PROCID"; echo "err $SLURM_PROCID" >&2 ;;
  rc) exit "$SLURM_PROCID" ;;
  kill) sleep 0.3; kill -9 $$ ;;
  one) [ "$SLURM_PROCID" = 1 ] && exit 3; sleep 8 & wait ;;
  trap) trap "echo told; exit 7" TERM; [ "$SLURM_PROCID" = 1 ] && exit 4; sleep 8 & wait ;;
esac
"""
STEPS = """\
srun --label "$T" both
srun -n1 "$T" both
srun "$T" rc
srun -n1 "$T" kill
srun "$T" kill
srun -K "$T" one
srun --kill-on-bad-exit=1 "$T" trap
srun -W1 "$T" one
srun -n9 true
srun -n2 -c9 true
srun -n9 -O -Q true
srun -N2 true
srun -n0 true
srun -nx true
srun -n1 -tx true
srun --bogus true
srun -n
srun
srun -n1 -Q -v true
srun -n1 nosuchcommand
srun "$T/nowhere"
srun -n1 /etc/passwd
srun -n1 ./plain
srun -n1 -D sub pwd
srun -n1 -D /tmp ./task
srun -n1 task
srun -o o-%j-%J-%s-%t-%n-%x-%a-%A-%u.txt "$T" both; cat o-*
srun -o p-%5j-%3t-%%-%z.txt -e perr "$T" both; cat p-*
srun -l -o l-%t "$T" both; cat l-0 l-1
srun -o shared -l "$T" both; sort shared
srun -n1 --open-mode=append -o l-0 echo more; cat l-0
srun -o 1 "$T" both
srun -o none "$T" both
srun -n1 -o 'a\\%j' echo text; cat a%j
echo text | srun -l cat
echo text | srun -i1 cat
echo text | srun -l --input=none cat
srun -l -i text cat
while read -r line; do echo "$line"; srun -n1 true; done < lines
srun -n1 --export=NONE env
srun -n1 --export=NONE "$T" both
srun -n1 --export=A=1,HOME /bin/sh -c 'echo $A ${HOME:+home} ${USER:-none} ${SLURM_JOB_ID:+job}'
srun -n1 --export=ALL,A=1 /bin/sh -c 'echo $A ${HOME:+home}'
SLURM_EXPORT_ENV=NONE srun -n1 /bin/sh -c 'echo ${HOME:-none}'
SLURM_LABELIO=1 srun -n1 echo x
srun -n1 -J other sh -c 'echo $SLURM_JOB_NAME'
srun -l sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NPROCS $SLURM_GTIDS $SLURM_STEP_NUM_TASKS'
srun -n1 sh -c 'sleep 30 & echo left'
srun -n1 --gres=gpu:1 true
srun -n1 --gres=none true
srun -n1 -w nowhere true
srun -n1 --ntasks-per-node=2 true
srun --overlap sleep 6 & sleep 1; kill -USR1 $!; wait $!
srun --overlap sleep 6 & sleep 1; kill -TERM $!; wait $!
srun --overlap sleep 6 & sleep 1; kill -INT $!; sleep 0.3; kill -INT $!; wait $!
srun --overlap sleep 2 & sleep 1; kill -INT $!; wait $!
srun -n1 --pty echo text
""".splitlines()
HEAD = """\
#!/bin/bash
cd "$1" || exit
T=$PWD/task
mkdir sub; echo text > text; printf 'first\\nsecond\\n' > lines; printf 'echo plain\\n' > plain; chmod +x plain
"""


def _script() -> str:
    lines = [HEAD]
    for number, step in enumerate(STEPS):
        lines.append(f"{{ {step}\n}} < /dev/null > out.{number} 2> err.{number}; echo $? > rc.{number}")
    return "\n".join(lines) + "\n"


def _folder(base: Path, name: str) -> Path:
    folder = base / name
    folder.mkdir()
    (folder / "task").write_text(TASK)
    (folder / "task").chmod(0o755)
    (folder / "steps.sh").write_text(_script())
    return folder


@pytest.fixture(scope="module")
def folders(user: User, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What came of the steps here, and what by Slurm.

    Not among them is a file that srun cannot open: after one 22.05 leaves its step behind.
    """
    there = _folder(tmp_path_factory.mktemp("slurm"), "there")
    options = ("--wait", "-n2", "-J", "a b", "--output=log")
    waiting = subprocess.Popen(
        ("sbatch", *options, "-pcpu", "--mem-per-cpu=16M", "-t9", "steps.sh", "."),
        cwd=there,
        env={**os.environ, **cluster.env},
        stdout=subprocess.DEVNULL,
    )
    here = _folder(user.folder, "here")
    done = user.run("sbatch", *options, f"{here}/steps.sh", str(here))
    assert done.code == 0, done
    assert waiting.wait(PATIENCE_S) == 0
    return here, there


def _same(text: str, folder: Path) -> list[str]:
    """The lines, without what is another one each time. Those of several tasks come in any order."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, put in (
        (r"slurmstepd(-\w+)?: ", "slurmstepd: "),
        (r" ON \w+ CANCELLED AT \S+", " ON NODE CANCELLED AT TIME"),
        (r"error: \w+: task", "error: NODE: task"),
        (r"StepId=\d+\.\d+", "StepId=ID"),
        (r"STEP \d+\.\d+", "STEP ID"),
        (r"job \d+: ", "job ID: "),
        (r"up to \d+ seconds", "up to N seconds"),
    ):
        text = re.sub(pattern, put, text)
    return sorted(text.splitlines())


@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step.replace("/", "|")[:60] for step in STEPS])
def test_a_step_is_the_same(number: int, folders: tuple[Path, Path]) -> None:
    ours, slurms = (
        (
            int((folder / f"rc.{number}").read_text()),
            _same((folder / f"out.{number}").read_text(), folder),
            _same((folder / f"err.{number}").read_text(), folder),
        )
        for folder in folders
    )
    assert ours == slurms
