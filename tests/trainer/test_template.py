"""The template without Slurm: its form, and what it decides from the state file."""

import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.trainer.running import TEMPLATE, environment
from tests.trainer.template import BLOCK, TYPES, parameters, render

NODES = TEMPLATE.with_name("train-nodes.sbatch")
BOTH = pytest.mark.parametrize("template", [TEMPLATE, NODES], ids=lambda path: path.stem)
HOSTILE = "a'; touch owned; echo \"$(touch owned) `touch owned` \\ * ä\n#SBATCH"


@BOTH
def test_it_is_good_bash(template: Path) -> None:
    subprocess.run(["bash", "-n", str(template)], check=True)
    subprocess.run(["shellcheck", str(template)], check=True)


@BOTH
def test_directives_that_it_stands_on(template: Path) -> None:
    directives = re.findall(r"^#SBATCH (\S+)$", template.read_text(), re.MULTILINE)
    assert {"--requeue", "--open-mode=append", "--signal=USR1@120"} <= set(directives)
    # The site's default partition; and a log in the submit folder, which always exists.
    assert not [line for line in directives if line.startswith(("--partition", "--output", "--error"))]


@BOTH
def test_parameters_and_assignments_agree(template: Path) -> None:
    block = BLOCK.search(template.read_text())
    assert block
    expected = "".join(f'{p.name}="${{{p.name}:-{p.values["default"]}}}"\n' for p in parameters(template))
    assert block.group() == expected


@BOTH
def test_parameters_are_well_formed(template: Path) -> None:
    known = {"default", "help", "min", "max", "above", "choices", "set"}
    for parameter in parameters(template):
        assert parameter.kind in TYPES
        assert set(parameter.values) <= known
        assert parameter.values["help"].endswith(".")
        if parameter.kind == "choice":
            assert parameter.values["default"] in parameter.values["choices"].split(",")


@BOTH
def test_rendered_values_come_back_as_they_were(template: Path, tmp_path: Path) -> None:
    values = {parameter.name: HOSTILE for parameter in parameters(template)}
    script = render(template, values)
    block = BLOCK.search(script)
    assert block
    names = " ".join(f'"${name}"' for name in values)
    shown = subprocess.run(
        ["bash", "-c", f"{block.group()}printf '%s\\0' {names}"],
        cwd=tmp_path,
        env=environment(EPOCHS="7"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split("\0")[:-1] == list(values.values())
    assert not list(tmp_path.iterdir())
    (tmp_path / "train.sbatch").write_text(script)
    subprocess.run(["bash", "-n", str(tmp_path / "train.sbatch")], check=True)


STATE = '{\n "version": 1,\n "status": "%s",\n "step": 5,\n "job_id": "%s",\n "restart": %s\n}\n'

# Stand-ins: the trainer leaves the state that it is told, scontrol notes what it is asked.
TRAINER = """#!/bin/bash
[[ $1 == --check ]] && exit "${CHECK_CODE:-0}"
printf '%s\\n' "$@" >"$NOTES/arguments"
while [[ $1 != --model-dir ]]; do shift; done
mkdir -p "$2"
[[ -z ${HOLD:-} ]] || { echo waiting; trap 'kill $!' TERM USR1; sleep 20 & wait; }
[[ -z $LEFT ]] || printf '%s' "$LEFT" >"$2/state.json"
exit "${CODE:-0}"
"""
SRUN = '#!/bin/bash\nprintf \'%s\\n\' "$*" >"$NOTES/srun"\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n'
SCONTROL = '#!/bin/bash\nprintf \'%s\\n\' "$*" >"$NOTES/scontrol"\n'


class Site:
    """A node with stand-ins for the trainer, srun and scontrol."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name, text in (("tfjob-train", TRAINER), ("srun", SRUN), ("scontrol", SCONTROL)):
            self.add(name, text)

    def add(self, name: str, text: str) -> None:
        """Put a command on the PATH."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def note(self, name: str) -> str | None:
        """What a stand-in was called with."""
        path = self.folder / name
        return path.read_text().rstrip("\n") if path.exists() else None

    def start(self, *, template: Path = TEMPLATE, **variables: str) -> subprocess.Popen[str]:
        """Start the template as Slurm does."""
        env = environment(NOTES=str(self.folder), LEFT="", SLURM_JOB_ID="12", SLURM_CPUS_PER_TASK="2")
        env |= {"PATH": f"{self.bin}:{env['PATH']}", "SLURM_JOB_NAME": "my job"} | variables
        return subprocess.Popen(
            ["bash", str(template)],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *, template: Path = TEMPLATE, **variables: str) -> tuple[int, str]:
        """Run it to the end: exit code and output."""
        with self.start(template=template, **variables) as process:
            output, _ = process.communicate(timeout=30)
        return process.returncode, output


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_trainer_gets_every_parameter(site: Site) -> None:
    code, _ = site.run(LEFT=STATE % ("completed", "12", 0), EXTRA_ARGS="--log-steps 5", EPOCHS="3")
    assert code == 0
    arguments = site.note("arguments")
    assert arguments
    assert arguments.split("\n") == shlex.split(
        "--model digits --epochs 3 --batch-size 64 --learning-rate 0.001 --seed 0 --device auto --precision auto "
        f"--model-dir {site.folder}/runs/my_job-12 --log-steps 5"
    )
    srun = site.note("srun")
    assert srun
    assert srun.startswith("--nodes=1 --ntasks=1 --cpus-per-task=2 ")
    assert site.note("scontrol") is None


def test_several_nodes_get_one_task_each(site: Site) -> None:
    """What is empty is left to the trainer; the hosts are asked for where scontrol is."""
    site.add("scontrol", '#!/bin/bash\nprintf \'%s\\n\' "$*" >"$NOTES/scontrol"\nprintf "n1\\nn2\\n"\n')
    site.add("srun", SRUN.replace("\nwhile", '\necho "$TFJOB_HOSTS" >"$NOTES/hosts"\nwhile'))
    left = STATE % ("completed", "12", 0)
    nodes = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
    code, output = site.run(template=NODES, LEFT=left, RECIPE="resnet50", DATA_DIR="/data/a b", **nodes)
    assert code == 0, output
    arguments = site.note("arguments")
    assert arguments
    assert arguments.split("\n") == [
        *("--seed 0 --device auto --precision auto --peer-timeout 300 --model-dir".split()),
        f"{site.folder}/runs/my_job-12",
        *("--recipe", "resnet50", "--data-dir", "/data/a b"),
    ]
    srun = site.note("srun")
    assert srun
    assert srun.startswith(
        "--nodes=2 --ntasks=2 --ntasks-per-node=1 --distribution=block --kill-on-bad-exit=1 --cpus-per-task=2 "
    )
    assert site.note("scontrol") == "show hostnames n[1-2]"
    assert site.note("hosts") == "n1 n2 "


@pytest.mark.parametrize(
    ("left", "variables", "code", "asked"),
    [
        (("stopped", "12", 0), {}, 0, "requeue 12"),
        (("stopped", "12", 3), {"SLURM_RESTART_COUNT": "3"}, 0, "requeue 12"),
        (("stopped", "12", 3), {"SLURM_RESTART_COUNT": "3", "MAX_REQUEUES": "3"}, 1, None),
        (
            ("stopped", "10_4", 0),
            {"SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "4"},
            0,
            "requeue 10_4",
        ),
        (("completed", "12", 0), {"CODE": "138"}, 0, None),  # a late signal in the shutdown
        (("failed", "12", 0), {"CODE": "3"}, 3, None),
        (("running", "12", 0), {"CODE": "137"}, 137, None),
        (("running", "12", 0), {}, 1, None),
        (("stopped", "11", 0), {"CODE": "1"}, 1, None),  # an old state: this start never got that far
        (("stopped", "12", 0), {"CODE": "1", "SLURM_RESTART_COUNT": "1"}, 1, None),
        (("completed", "11", 0), {}, 0, None),  # nothing was left to do
    ],
)
def test_what_follows_from_the_state(
    site: Site, left: tuple[str, str, int], variables: dict[str, str], code: int, asked: str | None
) -> None:
    assert site.run(LEFT=STATE % left, **variables)[0] == code
    assert site.note("scontrol") == asked


@pytest.mark.parametrize(("number", "code", "asked"), [("TERM", 143, None), ("USR1", 0, "requeue 12")])
def test_signals_to_the_script(site: Site, number: str, code: int, asked: str | None) -> None:
    """TERM is Slurm ending the job: it must not come back. USR1 is passed on to the trainer."""
    with site.start(LEFT=STATE % ("stopped", "12", 0), HOLD="yes") as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.1)  # until the stand-in sleeps
        process.send_signal(getattr(signal, f"SIG{number}"))
        process.communicate(timeout=15)
    assert process.returncode == code
    assert site.note("scontrol") == asked


def test_without_slurm_it_runs_all_the_same(site: Site) -> None:
    state = '{\n "status": "completed",\n "job_id": null,\n "restart": 0\n}\n'
    assert site.run(SLURM_JOB_ID="", LEFT=state)[0] == 0
    assert site.note("srun") is None


def test_a_tfjob_train_without_tensorflow_is_passed_over(site: Site) -> None:
    """The program's own installation can stand on the PATH, beside a Python that has TensorFlow."""
    site.add("python3", f'#!/bin/bash\nshift\nCHECK_CODE=0 exec "{site.bin}/tfjob-train" "$@"\n')
    left = STATE % ("completed", "12", 0)
    code, output = site.run(LEFT=left, CHECK_CODE="2", TFJOB_TRAINER="/some/where/tfjob_trainer")
    assert code == 0, output
    srun = site.note("srun")
    assert srun
    assert f"{site.bin}/python3 /some/where/tfjob_trainer --model digits" in srun


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CHECK_CODE": "2"}, "no trainer that can run was found. Set VENV"),
        ({"VENV": "/nowhere"}, "VENV=/nowhere is not a virtual environment"),
        ({"MODULES": "tensorflow/2.21"}, "no module command"),
    ],
)
def test_an_environment_that_is_not_there(site: Site, variables: dict[str, str], message: str) -> None:
    code, output = site.run(**variables)
    assert code == 2
    assert message in output
    assert site.note("arguments") is None


def test_modules_are_loaded_first(site: Site) -> None:
    code, _ = site.run(
        LEFT=STATE % ("completed", "12", 0),
        MODULES="cuda/12  tensorflow",
        **{"BASH_FUNC_module%%": '() { printf "%s|" "$@" >"$NOTES/module"; }'},
    )
    assert code == 0
    assert site.note("module") == "load|cuda/12|tensorflow|"


def test_proxies_are_gone(site: Site) -> None:
    site.add("srun", '#!/bin/bash\nenv >"$NOTES/env"\n')
    site.run(http_proxy="http://x:1", HTTPS_PROXY="http://x:1", grpc_proxy="http://x:1")
    seen = site.note("env")
    assert seen
    assert "proxy=" not in seen.lower()
