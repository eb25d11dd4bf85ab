"""What every test stands on: a clean environment, folders of its own, and the test cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.cluster.client import VARIABLE, Cluster

# The folder of examples would be written into the checkout, which the tests' user may not be able to do;
# a deadline would make a slow machine a failure.
hypothesis.settings.register_profile("tests", database=None, deadline=None)
hypothesis.settings.load_profile("tests")

SLURM_PREFIXES = ("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SINFO_")
NO_SKIPS = "TFJOBTUI_NO_SKIPS"


@pytest.fixture(autouse=True)
def _clean_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the developer's own settings out of a test, and the test out of them."""
    for name in os.environ:
        if name.startswith(SLURM_PREFIXES) and name != "SLURM_CONF":
            monkeypatch.delenv(name)
    base = tmp_path_factory.mktemp("xdg")
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        folder = base / kind.lower()
        folder.mkdir()
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(folder))


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The running test cluster. A test that uses it is marked `slurm`."""
    if not os.environ.get(VARIABLE):
        pytest.fail(
            f"{VARIABLE} is not set: this test needs the test cluster, run `sudo make test`", pytrace=False
        )
    return Cluster()


@pytest.fixture
def slurm_env(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Point Slurm's commands, in this process and those it starts, at the test cluster."""
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    return cluster.env


@pytest.hookimpl(tryfirst=True)  # before -m picks by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs the cluster."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slurm)


def _skipped(config: pytest.Config) -> Iterator[str]:
    """Where tests were skipped, and why."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    for report in reporter.stats.get("skipped", []) if reporter else []:
        place, line, reason = (
            report.longrepr if isinstance(report.longrepr, tuple) else (report.nodeid, 0, "")
        )
        yield f"{Path(place).name}:{line}: {reason}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a skipped test fail the run where everything has to run."""
    if os.environ.get(NO_SKIPS) == "1" and any(_skipped(session.config)) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why such a run failed."""
    skipped = list(_skipped(config))
    if os.environ.get(NO_SKIPS) == "1" and skipped:
        terminalreporter.section(f"{len(skipped)} skipped, and {NO_SKIPS}=1 allows none", red=True)
        for line in skipped:
            terminalreporter.write_line(line)
