"""Installing TensorFlow as a job: whether it is missing, what is submitted, and the template that does it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.actions.fakes import job
from tfjobtui import directives
from tfjobtui.actions import trainer_setup
from tfjobtui.actions.submit import plan_template
from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.model.state import JobState
from tfjobtui.templates import catalogue

TEMPLATES = catalogue.load([catalogue.shipped_folder()])
TRAIN = catalogue.find(TEMPLATES, "train")
SETUP = catalogue.find(TEMPLATES, "trainer-setup")


def finish_environment() -> Path:
    folder = trainer_setup.environment_folder()
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    assert trainer_setup.installed_environment() is None
    (folder / "tfjobtui-setup").touch()
    return folder


def test_a_finished_environment_becomes_the_venv_of_what_trains() -> None:
    assert trainer_setup.known_values(TRAIN) == {}
    folder = finish_environment()
    assert trainer_setup.known_values(TRAIN) == {"VENV": str(folder)}
    assert trainer_setup.known_values(SETUP) == {}


async def test_it_is_missing_only_where_nothing_that_the_script_tries_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await trainer_setup.is_missing(TRAIN, {})
    assert not await trainer_setup.is_missing(TRAIN, {"VENV": "/somewhere"})
    assert not await trainer_setup.is_missing(TRAIN, {"MODULES": "tensorflow"})
    assert not await trainer_setup.is_missing(SETUP, {})
    trainer = tmp_path / "tfjob-train"
    trainer.write_text('#!/bin/sh\n[ "$1" = --check ]\n')
    trainer.chmod(0o755)
    assert not await trainer_setup.is_missing(TRAIN, {})
    trainer.write_text("#!/bin/sh\nexit 2\n")
    assert await trainer_setup.is_missing(TRAIN, {})


def test_the_installation_runs_the_shipped_template_with_a_python_of_its_own(tmp_path: Path) -> None:
    found = trainer_setup.set_up(TEMPLATES, str(tmp_path))
    assert found is not None
    assert found.folder == trainer_setup.environment_folder()
    assert found.plan.values["VENV"] == str(found.folder)
    python = Path(found.plan.values["PYTHON"])
    assert python.is_file()
    assert not (python.parents[1] / "pyvenv.cfg").exists()
    assert trainer_setup.set_up([TRAIN], str(tmp_path)) is None


def test_what_comes_after_it_waits_for_it_and_for_what_it_waited_for_before(tmp_path: Path) -> None:
    plan = plan_template(TRAIN, {"EPOCHS": "3"}, {"dependency": "afterany:5"}, str(tmp_path))
    ready = trainer_setup.after(plan, JobId(12), Path("/home/o'neil/trainer"))
    options = {item.name: item.value for item in directives.read(ready.script)}
    assert options["dependency"] == "afterany:5,afterok:12"
    assert options["kill-on-invalid-dep"] == "yes"
    assert ready.values["VENV"] == "/home/o'neil/trainer"
    assert ready.values["EPOCHS"] == "3"
    shown = subprocess.run(
        ["bash", "-c", f'eval "$(grep ^VENV= <<<{_quoted(ready.script)})"; echo "$VENV"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "/home/o'neil/trainer\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_a_script_that_lost_the_line_for_it_is_refused(tmp_path: Path) -> None:
    plan = plan_template(SETUP, {}, {}, str(tmp_path))
    changed = dataclasses.replace(plan, script="#!/bin/bash\necho mine\n")
    with pytest.raises(FormatError, match="VENV"):
        trainer_setup.after(changed, JobId(12), Path("/venv"))


def test_an_installation_that_is_under_way_is_not_made_twice() -> None:
    over = job("3", JobState.FAILED, name="trainer-setup")
    assert trainer_setup.running_set_up([over, job("5")]) is None
    assert trainer_setup.running_set_up([over, job("4", JobState.PENDING, name="trainer-setup")]) == JobId(4)


# ---- The template


def _wheel(folder: Path, *, works: bool) -> Path:
    """A package that calls itself TensorFlow."""
    code = "__version__ = '0'\nclass config:\n    list_physical_devices = list\n" if works else "1 / 0\n"
    info = "tensorflow-0.dist-info"
    files = {
        "tensorflow/__init__.py": code,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tensorflow\nVersion: 0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text)}")
    path = folder / "tensorflow-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]))
    return path


def _install(tmp_path: Path, **variables: str) -> tuple[int, str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "VENV": str(tmp_path / "en v"),
        "PYTHON": os.path.realpath(sys.executable),
        "PIP_OPTIONS": "--no-index --quiet",
        **variables,
    }
    done = subprocess.run(
        ["bash", str(SETUP.path)], env=env, capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    return done.returncode, done.stdout + done.stderr


def test_the_template_installs_once_and_marks_what_is_whole(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path, works=True)
    code, said = _install(tmp_path, PACKAGES=str(wheel), PYTHONPATH="/nowhere", PYTHONHOME="")
    assert code == 0, said
    assert "done: VENV=" in said
    assert (tmp_path / "en v" / "tfjobtui-setup").is_file()
    code, said = _install(tmp_path, PACKAGES=str(wheel))
    assert (code, "everything is there" in said) == (0, True), said


def test_a_tensorflow_that_cannot_be_imported_leaves_no_mark(tmp_path: Path) -> None:
    code, said = _install(tmp_path, PACKAGES=str(_wheel(tmp_path, works=False)))
    assert code == 1
    assert "cannot be imported" in said
    assert not (tmp_path / "en v" / "tfjobtui-setup").exists()


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"PYTHON": "/bin/false"}, "TensorFlow needs Python 3.11 to 3.13"),
        ({"PACKAGES": "no-such-package-anywhere"}, "pip could not install it"),
        ({"VENV": "/proc/nowhere"}, "cannot be made"),
    ],
)
def test_what_goes_wrong_is_said(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    code, said = _install(tmp_path, **variables)
    assert code == 1
    assert words in said
