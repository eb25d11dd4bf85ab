"""What the one-shot commands may not load."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tfjobtui.cli

MODULES = sorted(
    module.name for module in pkgutil.iter_modules(tfjobtui.cli.__path__) if module.name != "screen"
)
HEAVY = ("textual", "rich", "tensorflow", "keras", "tensorboard", "tfjob_trainer", "numpy")


@pytest.mark.parametrize("module", MODULES)
def test_no_command_imports_a_heavy_library(module: str) -> None:
    code = f"import sys, tfjobtui.cli.{module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "[]\n"
