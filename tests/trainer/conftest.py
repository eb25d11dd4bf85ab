"""A run that several tests look at."""

import importlib.util
from pathlib import Path

import pytest

from tests.trainer.running import SHORT, run


@pytest.fixture(scope="session")
def _tensorflow() -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.fail("TensorFlow is not installed: pip install '.[train]'", pytrace=False)


@pytest.fixture(scope="session")
def finished(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a short run that nothing has disturbed, and its log. Tests only read it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    done = run(*SHORT, "--model-dir", folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return folder, done.stdout


@pytest.fixture(scope="session")
def two_replicas(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same run on two replicas. Tests only read it."""
    folder = tmp_path_factory.mktemp("replicas") / "run"
    done = run(*SHORT, "--replicas", "2", "--model-dir", folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    assert "2 replica(s)" in done.stdout
    assert "batch 64 (32 per replica)" in done.stdout
    return folder
