"""The templates for data sets and evaluations without Slurm: their forms, and what they do with what happens."""

import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.trainer.running import TREE, environment
from tests.trainer.template import BLOCK, TYPES, parameters, render

PREPROCESS, EVALUATE = TREE / "sbatch" / "preprocess.sbatch", TREE / "sbatch" / "evaluate.sbatch"
BOTH = pytest.mark.parametrize("template", [PREPROCESS, EVALUATE], ids=["preprocess", "evaluate"])
HOSTILE = "a'; touch owned; echo \"$(touch owned) `touch owned` \\ * ä\n#SBATCH"

# Stand-ins for the commands: they note what they are called with.
COMMAND = """#!/bin/bash
[[ $1 == --check ]] && exit "${CHECK_CODE:-0}"
printf '%s\\n' "${0##*/}" "$@" >"$NOTES/arguments"
[[ -z ${HOLD:-} ]] || { echo waiting; trap 'kill $!; exit 130' TERM; sleep 20 & wait; }
exit "${CODE:-0}"
"""
SRUN = '#!/bin/bash\nprintf \'%s\\n\' "$*" >"$NOTES/srun"\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n'
SCONTROL = '#!/bin/bash\nprintf \'%s\\n\' "$*" >"$NOTES/scontrol"\n'


class Site:
    """A node with stand-ins for the trainer's commands, srun and scontrol."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("tfjob-train", "tfjob-preprocess", "tfjob-evaluate"):
            self.add(name, COMMAND)
        self.add("srun", SRUN)
        self.add("scontrol", SCONTROL)

    def add(self, name: str, text: str) -> None:
        """Put a command on the PATH."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def note(self, name: str) -> list[str]:
        """What a stand-in was called with, by lines; nothing where it was not."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def start(self, template: Path, **variables: str) -> subprocess.Popen[str]:
        """Start a template as Slurm does."""
        env = environment(NOTES=str(self.folder), SLURM_JOB_ID="12", SLURM_CPUS_PER_TASK="2")
        env |= {"PATH": f"{self.bin}:{env['PATH']}"} | variables
        return subprocess.Popen(
            ["bash", str(template)],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, template: Path, **variables: str) -> tuple[int, str]:
        """Run it to the end: exit code and output."""
        with self.start(template, **variables) as process:
            output, _ = process.communicate(timeout=30)
        return process.returncode, output


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@BOTH
def test_it_is_good_bash(template: Path) -> None:
    subprocess.run(["bash", "-n", str(template)], check=True)
    subprocess.run(["shellcheck", str(template)], check=True)


@BOTH
def test_directives_that_it_stands_on(template: Path) -> None:
    directives = re.findall(r"^#SBATCH (\S+)$", template.read_text(), re.MULTILINE)
    assert {"--requeue", "--open-mode=append"} <= set(directives)
    assert not [
        line for line in directives if line.startswith(("--partition", "--output", "--error", "--gpus"))
    ]


@BOTH
def test_parameters_and_assignments_agree(template: Path) -> None:
    block = BLOCK.search(template.read_text())
    assert block
    found = parameters(template)
    expected = "".join(f'{p.name}="${{{p.name}:-{p.values["default"]}}}"\n' for p in found)
    assert block.group() == expected
    for parameter in found:
        assert parameter.kind in TYPES
        assert set(parameter.values) <= {"default", "help", "min", "max", "above", "choices", "set"}
        assert parameter.values["help"].endswith(".")
        if parameter.kind == "choice":
            assert parameter.values["default"] in parameter.values["choices"].split(",")


@BOTH
def test_rendered_values_come_back_as_they_were(template: Path, tmp_path: Path) -> None:
    values = {parameter.name: HOSTILE for parameter in parameters(template)}
    block = BLOCK.search(render(template, values))
    assert block
    names = " ".join(f'"${name}"' for name in values)
    shown = subprocess.run(
        ["bash", "-c", f"{block.group()}printf '%s\\0' {names}"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split("\0")[:-1] == list(values.values())
    assert not list(tmp_path.iterdir())


def test_preprocess_as_it_is(site: Site) -> None:
    code, output = site.run(PREPROCESS)
    assert code == 0, output
    assert site.note("arguments") == shlex.split(
        f"tfjob-preprocess --source digits --out {site.folder}/data/digits --validation 0.1"
    )
    assert site.note("srun")[0].startswith("--nodes=1 --ntasks=1 --cpus-per-task=2 ")
    assert not site.note("scontrol")


def test_preprocess_gets_every_parameter(site: Site) -> None:
    code, _ = site.run(
        PREPROCESS,
        SOURCE="/a b/list.csv",
        VALIDATION="0.2",
        SHARDS="8",
        SKIP_BROKEN="yes",
        EXTRA_ARGS="--convert-odd --name x",
    )
    assert code == 0
    assert site.note("arguments") == [
        *("tfjob-preprocess", "--source", "/a b/list.csv", "--out", f"{site.folder}/data/list"),
        *shlex.split("--validation 0.2 --shards 8 --skip-broken --convert-odd --name x"),
    ]


def test_evaluate_gets_every_parameter(site: Site) -> None:
    code, output = site.run(
        EVALUATE,
        MODEL_DIR="/runs/a b",
        WHICH="last",
        DATA_DIR="/data",
        SPLIT="train",
        BATCH_SIZE="8",
        DEVICE="cpu",
        ALLOW_UNFINISHED="yes",
        EXTRA_ARGS="--skip-broken",
    )
    assert code == 0, output
    assert site.note("arguments") == [
        *("tfjob-evaluate", "--model-dir", "/runs/a b"),
        *shlex.split(
            "--which last --split train --device cpu --data-dir /data --batch-size 8 --allow-unfinished"
        ),
        "--skip-broken",
    ]


def test_evaluate_as_it_is_takes_the_newest_run(site: Site) -> None:
    code, output = site.run(EVALUATE)
    assert code == 2
    assert f"there is no run in {site.folder}/runs: set MODEL_DIR" in output
    for age, name in enumerate(("new", "old one")):
        folder = site.folder / "runs" / name
        folder.mkdir(parents=True)
        (folder / "state.json").write_text("{}")
        subprocess.run(["touch", "-d", f"{age + 1} hours ago", str(folder / "state.json")], check=True)
    code, output = site.run(EVALUATE)
    assert code == 0, output
    assert site.note("arguments")[:3] == ["tfjob-evaluate", "--model-dir", f"{site.folder}/runs/new"]


@BOTH
def test_the_exit_code_is_passed_on(site: Site, template: Path) -> None:
    assert site.run(template, CODE="2", MODEL_DIR="/run")[0] == 2
    assert not site.note("scontrol")


@pytest.mark.parametrize(
    ("number", "variables", "code", "asked"),
    [
        ("USR1", {}, 0, ["requeue 12"]),
        ("USR1", {"SLURM_RESTART_COUNT": "20"}, 1, []),
        ("USR1", {"SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "4"}, 0, ["requeue 10_4"]),
        ("TERM", {}, 143, []),
    ],
)
def test_signals(site: Site, number: str, variables: dict[str, str], code: int, asked: list[str]) -> None:
    """USR1: the limit is near, the job comes back. TERM: Slurm ends it, and it must not."""
    with site.start(PREPROCESS, HOLD="yes", **variables) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.1)  # until the stand-in sleeps
        process.send_signal(getattr(signal, f"SIG{number}"))
        process.communicate(timeout=15)
    assert process.returncode == code
    assert site.note("scontrol") == asked


@BOTH
def test_commands_without_tensorflow_are_passed_over(site: Site, template: Path) -> None:
    """The program's own installation can stand on the PATH, beside a Python that has TensorFlow."""
    site.add("python3", f'#!/bin/bash\nshift\nCHECK_CODE=0 exec "{site.bin}/tfjob-train" "$@"\n')
    variables = {"CHECK_CODE": "2", "TFJOB_TRAINER": "/some/where/tfjob_trainer", "MODEL_DIR": "/run"}
    code, output = site.run(template, **variables)
    assert code == 0, output
    assert f"{site.bin}/python3 /some/where/tfjob_trainer {template.stem} --" in site.note("srun")[0]


@BOTH
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CHECK_CODE": "2"}, "no trainer that can run was found. Set VENV"),
        ({"VENV": "/nowhere"}, "VENV=/nowhere is not a virtual environment"),
        ({"MODULES": "tensorflow/2.21"}, "no module command"),
    ],
)
def test_an_environment_that_is_not_there(
    site: Site, template: Path, variables: dict[str, str], message: str
) -> None:
    code, output = site.run(template, MODEL_DIR="/run", **variables)
    assert code == 2
    assert message in output
    assert not site.note("arguments")


@BOTH
def test_without_slurm_it_runs_all_the_same(site: Site, template: Path) -> None:
    assert site.run(template, SLURM_JOB_ID="", MODEL_DIR="/run")[0] == 0
    assert not site.note("srun")
    assert site.note("arguments")
