"""What is in the wheel, and what the base install needs."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TREE = Path(os.environ.get("TFJOBTUI_TREE") or Path(__file__).parents[1])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"import os, hatchling.build as b; os.chdir({str(TREE)!r}); print(b.build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return zipfile.ZipFile(folder / done.stdout.split()[-1])


def test_the_wheel_carries_the_templates_and_the_trainer(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    shipped = {f"tfjobtui/templates/shipped/{path.name}" for path in (TREE / "sbatch").iterdir()}
    assert shipped
    assert shipped <= names
    assert {"tfjobtui/py.typed", "tfjobtui/ui/app.py", "tfjob_trainer/train.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "trainer/", "trainer.py"))]


def test_the_base_install_has_no_tensorflow_and_no_numpy(wheel: zipfile.ZipFile) -> None:
    metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = wheel.read(metadata).decode().splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert sorted(line.split()[1].split(">")[0].split(";")[0] for line in needed) == [
        "nvidia-ml-py",
        "psutil",
        "rich",
        "textual<9,",
    ]


def test_the_commands_are_installed() -> None:
    scripts = {entry.name: entry.value for entry in importlib.metadata.entry_points(group="console_scripts")}
    assert scripts["tfjobtui"] == "tfjobtui.cli.main:main"
    assert scripts["tfjob-train"] == "tfjob_trainer.train:main"
    assert scripts["tfjob-preprocess"] == "tfjob_trainer.preprocess:main"
    assert scripts["tfjob-evaluate"] == "tfjob_trainer.evaluate:main"


def test_nothing_in_the_program_loads_tensorflow_or_the_trainer() -> None:
    """A contract of import-linter does not see a deferred import: load every module and look."""
    code = (
        "import importlib, pkgutil, sys, tfjobtui\n"
        "for module in pkgutil.walk_packages(tfjobtui.__path__, 'tfjobtui.'):\n"
        "    if module.name != 'tfjobtui.__main__': importlib.import_module(module.name)\n"
        "print(sorted({'tensorflow', 'keras', 'tfjob_trainer', 'numpy', 'tensorboard'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_only_the_screens_load_textual() -> None:
    code = (
        "import importlib, pkgutil, sys, tfjobtui\n"
        "for module in pkgutil.walk_packages(tfjobtui.__path__, 'tfjobtui.'):\n"
        "    if not module.name.startswith(('tfjobtui.ui', 'tfjobtui.__main__')):\n"
        "        importlib.import_module(module.name)\n"
        "print(sorted({'textual', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
