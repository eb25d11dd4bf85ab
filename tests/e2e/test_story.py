"""The main job, from the keyboard, in a real terminal on the real cluster.

Open, submit the shipped training template, see it run, follow its log, cancel it, resubmit it, see it finish.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import confirm, state_of
from tests.terminal import Terminal

pytestmark = [pytest.mark.slurm, pytest.mark.terminal, pytest.mark.trainer]

TRAIN_S = 150.0
"""A training of digits takes half a minute on two cores, and another test may use them."""


def field_in_focus(terminal: Terminal) -> str:
    """The form's line of help begins with the name of the field."""
    found = re.findall(r"(?m)^\W+([A-Za-z][\w ]*): \S", terminal.text)
    return found[-1] if found else ""


def fill(terminal: Terminal, label: str, value: str) -> None:
    """Go down the form to a field, and put a value in place of what is there."""
    terminal.wait_for(lambda shown: field_in_focus(shown) != "")
    for _ in range(40):
        here = field_in_focus(terminal)
        if here == label:
            break
        terminal.press("down")
        terminal.wait_for(lambda shown, before=here: field_in_focus(shown) not in ("", before))  # type: ignore[misc]
    else:
        raise AssertionError(f"no field {label!r}:\n{terminal.text}")
    clear(terminal, label)
    terminal.type(value)
    terminal.wait_for(rf"(?m)^.{{0,6}}{label}\W.*{re.escape(value[-20:])}")


def clear(terminal: Terminal, label: str) -> None:
    """Empty the field in focus. Wait for it: what arrives with Ctrl+U in one read, Textual clears too."""

    def line() -> str:
        return next((text for text in terminal.lines if re.match(rf".{{0,6}}{label}\W", text)), "")

    before = line()
    terminal.press("x")
    terminal.wait_for(lambda _: line() != before)
    before = line()
    terminal.press("ctrl+u")
    terminal.wait_for(lambda _: line() != before)


def job_in_list(terminal: Terminal, state: str, timeout_s: float = 60.0) -> str:
    """Wait for a job named story in that state; gives its id."""
    pattern = rf"(?m)^\D{{0,3}}(\d+) +story +\S {state}"
    found = re.search(pattern, terminal.wait_for(pattern, timeout_s))
    assert found is not None
    return found[1]


def test_open_submit_follow_cancel_resubmit_finish(program: Callable[..., Terminal], work_dir: Path) -> None:
    terminal = program(EDITOR="true")
    terminal.wait_for("You have no jobs in the queue|ended")
    terminal.press("n")
    terminal.wait_for("type / to filter")
    terminal.press("enter")
    terminal.wait_for(
        lambda shown: "type / to filter" not in shown.text and "Train on one node" in shown.text
    )
    fill(terminal, "job name", "story")
    fill(terminal, "partition", "cpu")
    fill(terminal, "EPOCHS", "60")
    fill(terminal, "DEVICE", "cpu")
    fill(terminal, "VENV", sys.prefix)
    terminal.press("ctrl+t")
    terminal.wait_for("#SBATCH --job-name=story")
    terminal.press("ctrl+s")

    # The new row is selected, and its log is awaited and followed.
    first = job_in_list(terminal, "(PENDING|RUNNING)")
    terminal.wait_for(rf"slurm-{first}\.out")
    assert job_in_list(terminal, "RUNNING") == first
    terminal.wait_for(r"tfjob-train: .*run folder", TRAIN_S)
    terminal.wait_for(r"epoch +\d+", TRAIN_S)

    # Cancel: the dialog names the job; the list shows how it ended.
    terminal.press("x")
    confirm(terminal, rf"Cancel job {first} \(y\)")
    assert job_in_list(terminal, "CANCELLED", 40) == first
    terminal.press("@")
    terminal.wait_for(rf"scancel .*{first}")
    terminal.press("q")

    # Resubmit: a look at what will run, then a new job with the same script and folder.
    terminal.press("r")
    confirm(terminal, "#SBATCH --job-name=story")
    terminal.wait_for(rf"(?m)^\D{{0,3}}(?!{first}\b)(\d+) +story +\S (PENDING|RUNNING)", 40)
    second = job_in_list(terminal, "(PENDING|RUNNING)")
    assert second != first
    terminal.wait_for(rf"slurm-{second}\.out")
    assert job_in_list(terminal, "COMPLETED", TRAIN_S) == second
    terminal.wait_for(r"tfjob-train: completed", 30)
    terminal.press("q", "q")
    if terminal.exit_code is None:
        terminal.press("q")
    assert terminal.wait_exit() == 0

    assert state_of(second) == "COMPLETED"
    run = work_dir / "runs" / f"story-{second}"
    assert json.loads((run / "state.json").read_text())["status"] == "completed"
    assert "tfjob-train: completed" in (work_dir / f"slurm-{second}.out").read_text()


def test_submission_by_command_and_its_log_in_a_pipe(
    slurm_env: dict[str, str], empty_queue: None, work_dir: Path
) -> None:
    import subprocess

    argv = ["tfjobtui", "submit", "train", "--partition", "cpu", "--job-name", "piped"]
    argv += ["--set", "EPOCHS=2", "--set", "DEVICE=cpu", "--set", f"VENV={sys.prefix}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    job = re.search(r"\b(\d+)\b", done.stdout)
    assert job is not None
    log = subprocess.run(
        ["tfjobtui", "logs", "-f", job[1]], capture_output=True, text=True, check=True, timeout=TRAIN_S
    )
    assert "tfjob-train: completed" in log.stdout
