"""Lint, pytest and the benchmarks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.runner.report import Report, RunError
from tests.runner.workplace import CHECKOUT, Workplace

BASE_MARKS = "not slurm and not trainer and not terminal"
NOT_IN_A_TEST_RUN = ("tests/soak", "tests/bench")
SHELLS = (b"sh", b"bash", b"dash")
NOTHING_COLLECTED = 5  # pytest's exit status


def lint(workplace: Workplace, report: Report) -> None:
    """All linters over the copied tree."""
    tree, tools = workplace.tree, workplace.venv / "bin"
    env = {
        **os.environ,
        "RUFF_CACHE_DIR": str(workplace.cache("ruff")),
        "PYTHONPATH": f"{tree}:{tree}/trainer",
    }
    commands: dict[str, list[str | Path]] = {
        "ruff check": [tools / "ruff", "check", "."],
        "ruff format": [tools / "ruff", "format", "--check", "."],
        "mypy": [tools / "mypy", "--cache-dir", workplace.cache("mypy")],
        "lint-imports": [tools / "lint-imports", "--cache-dir", workplace.cache("import-linter")],
    }
    if shutil.which("shellcheck"):
        commands["shellcheck"] = ["shellcheck", *shell_files(tree)]
    else:
        report.note("shellcheck was not run: apt-get install shellcheck")
    with report.stage("lint"):
        for name, argv in commands.items():
            done = subprocess.run(argv, cwd=tree, env=env, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(done.stdout + done.stderr, flush=True)
            report.check(name, done.returncode)


def shell_files(tree: Path) -> list[Path]:
    """Every shell script, by its name or by its first line."""
    return sorted(path.relative_to(tree) for path in tree.rglob("*") if path.is_file() and _is_shell(path))


def _is_shell(path: Path) -> bool:
    if path.suffix in (".sh", ".bash", ".sbatch"):
        return True
    with path.open("rb") as file:
        first = file.readline(200)
    words = first[2:].split()[:2]  # "#!/bin/bash -e" as well as "#!/usr/bin/env bash"
    return first.startswith(b"#!") and any(word.rpartition(b"/")[2] in SHELLS for word in words)


def reformat(workplace: Workplace) -> int:
    """Bring the checkout itself into ruff's format."""
    ruff = workplace.venv / "bin" / "ruff"
    rcs = [
        subprocess.run([ruff, *arguments, "."], cwd=CHECKOUT, check=False).returncode
        for arguments in (["check", "--fix"], ["format"])
    ]
    return max(rcs)


CONTRACT = "tests/contract"
"""What both schedulers have to do alike."""


def pytest_command(venv: Path, *arguments: str) -> list[str | Path]:
    """pytest, importing the installed program: -P keeps the current folder off the import path."""
    return [venv / "bin" / "python", "-P", "-m", "pytest", *arguments]


def suite(arguments: Sequence[str]) -> list[str]:
    """What `make test` runs. Paths among the arguments choose; else it is everything but soak and bench."""
    chosen = any(
        not argument.startswith("-") and Path(argument.split("::")[0]).exists() for argument in arguments
    )
    ignored = [f"--ignore={folder}" for folder in NOT_IN_A_TEST_RUN]
    return [*ignored, *([] if chosen else ["tests"]), *arguments]


def base_suite(arguments: Sequence[str]) -> list[str]:
    """The part of it that needs neither Slurm nor TensorFlow nor a terminal."""
    return [*suite(arguments), "-m", BASE_MARKS]


def other_suite(arguments: Sequence[str]) -> list[str]:
    """What runs on the other Pythons: the contract's jobs run the same processes on one as on the others."""
    return [*base_suite(arguments), *([] if arguments else [f"--ignore={CONTRACT}"])]


def check_pytest(report: Report, name: str, rc: int, arguments: Sequence[str]) -> None:
    """Note how pytest ended. That a choice leaves nothing to run is no failure of that part."""
    report.check(name, 0 if rc == NOTHING_COLLECTED and arguments else rc)


def check_import(python: Path, run: Path, env: Mapping[str, str]) -> None:
    """Make sure that tests see the installed program, not the checkout's files."""
    script = "import tfjobtui; print(tfjobtui.__file__)"
    done = subprocess.run(
        [python, "-P", "-c", script], cwd=run, env=env, capture_output=True, text=True, check=False
    )
    if not done.stdout.startswith(f"{python.parents[1]}/lib"):
        raise RunError(f"not the installed program: {done.stdout}{done.stderr}")


def benches(run: Path, names: Sequence[str]) -> list[Path]:
    """The benchmark scripts with these names, or all of them."""
    found = {
        path.stem: path
        for path in sorted((run / "tests" / "bench").glob("[a-z]*.py"))
        if path.stem != "conftest"
    }
    if unknown := set(names) - found.keys():
        raise RunError(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(found) or 'none'}")
    return [found[name] for name in names or found]
