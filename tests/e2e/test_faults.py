"""The controller goes away under the program, and comes back; a shell in a job; the screen stays whole."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.client import Cluster
from tests.e2e.conftest import confirm, submit
from tests.terminal import Terminal

pytestmark = [pytest.mark.slurm, pytest.mark.terminal]

Start = Callable[..., Terminal]


def test_slurmctld_dies_under_the_program_and_comes_back(cluster: Cluster, program: Start) -> None:
    job = submit("-p", "cpu", "-J", "survivor", "-t", "10", "--wrap", "sleep 300")
    with program(SLURM_TIMEOUT="1") as terminal:
        terminal.wait_for(rf"{job} +survivor +▶ RUNNING")
        cluster.stop_daemon("slurmctld")
        try:
            terminal.press("ctrl+r")
            terminal.wait_for(r"⚠ .* old, again in", timeout_s=60)
            screen = terminal.text
            assert "survivor" in screen
            assert "RUNNING" in screen
            assert "1 ended" not in screen
        finally:
            cluster.start_daemon("slurmctld")
        terminal.press("ctrl+r")
        terminal.wait_for(r"● \d+s ago", timeout_s=90)
        terminal.wait_for(rf"{job} +survivor +▶ RUNNING")
        terminal.press("q")
        assert terminal.wait_exit() == 0


def test_a_controller_that_is_away_at_the_start_is_no_error_screen(cluster: Cluster, program: Start) -> None:
    cluster.stop_daemon("slurmctld")
    try:
        terminal = program()
        terminal.wait_for(r"The queue could not be read", timeout_s=60)
    finally:
        cluster.start_daemon("slurmctld")
    terminal.press("ctrl+r")
    terminal.wait_for(r"You have no jobs|ended", timeout_s=90)


def test_a_shell_inside_the_job_and_back(program: Start) -> None:
    job = submit("-p", "gpu", "--gpus=a100:2", "-J", "holder", "-t", "10", "--wrap", "sleep 300")
    terminal = program(SHELL="/bin/sh", PS1="shell> ")
    terminal.wait_for(rf"{job} +holder +▶ RUNNING")
    terminal.press("s")
    terminal.wait_for(r"it ends with `exit`", timeout_s=30)
    terminal.type("echo job=$SLURM_JOB_ID gpus=$CUDA_VISIBLE_DEVICES\r")
    terminal.wait_for(rf"job={job} gpus=0,1", timeout_s=30)
    terminal.type("exit\r")
    terminal.wait_for(rf"{job} +holder +▶ RUNNING", timeout_s=30)
    terminal.press("?")
    terminal.wait_for("Unfold the array")
    terminal.press("q")
    terminal.wait_gone("Unfold the array")
    terminal.press("q")
    assert terminal.wait_exit() == 0


def test_an_editor_gets_the_terminal_as_it_was(program: Start, work_dir: Path) -> None:
    """With echo, and line by line: `ed` and `less` need it so."""
    editor = work_dir / "editor"
    editor.write_text(
        '#!/bin/sh\nstty -a; echo press; read -r line; echo "got $line" > ' + f"{work_dir}/got\n"
    )
    editor.chmod(0o755)
    job = submit("-p", "cpu", "-J", "edited", "-t", "5", "--hold", "--wrap", "sleep 1")
    terminal = program(EDITOR=str(editor))
    terminal.wait_for(rf"{job} +edited")
    terminal.press("e")
    screen = terminal.wait_for("press")
    assert re.search(r"[^-]\bicanon\b", screen)
    assert re.search(r"[^-]\becho\b", screen)
    terminal.type("hello\r")
    terminal.wait_for(rf"{job} +edited")
    assert (work_dir / "got").read_text() == "got hello\n"


def test_the_terminal_is_whole_after_the_end(program: Start) -> None:
    terminal = program()
    terminal.wait_for("You have no jobs|ended|tfjobtui")
    terminal.press("q")
    assert terminal.wait_exit() == 0
    end = bytes(terminal.raw[-2000:])
    assert b"\x1b[?1049l" in end
    assert b"\x1b[?25h" in end


def test_without_a_terminal_it_says_what_to_use(slurm_env: dict[str, str]) -> None:
    done = subprocess.run(["tfjobtui"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "tfjobtui jobs" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_users_job_is_refused_in_slurms_words(
    cluster: Cluster, program: Start, tmp_path: Path
) -> None:
    done = cluster.as_second(
        "sbatch", "--parsable", "-p", "cpu", "-J", "theirs", "-t", "5", "--wrap", "sleep 200", cwd="/tmp"
    )
    job = done.stdout.strip()
    try:
        terminal = program()
        terminal.wait_for("tfjobtui")
        terminal.press("a")
        terminal.wait_for(rf"{job} +theirs")
        terminal.press("/")
        terminal.type("theirs state:run")
        terminal.press("enter", "x")
        confirm(terminal, rf"Cancel job {job} \(y\)")
        terminal.wait_for("[Aa]ccess/permission denied|not yours|another user|belongs to", timeout_s=20)
    finally:
        cluster.root("scancel", job)


def test_copy_reaches_tmuxs_buffer(
    cluster: Cluster, slurm_env: dict[str, str], empty_queue: None, work_dir: Path
) -> None:
    """tmux drops OSC 52 from programs by default; its own buffer is what can be pasted."""
    job = submit("-p", "cpu", "-J", "copied", "-t", "5", "--hold", "--wrap", "sleep 1")
    socket = str(work_dir / "tmux")

    def tmux(*argv: str) -> str:
        done = subprocess.run(["tmux", "-S", socket, *argv], capture_output=True, text=True, check=False)
        return done.stdout

    def until(text: str, *argv: str) -> None:
        deadline = time.monotonic() + 30
        while text not in tmux(*argv):
            assert time.monotonic() < deadline, tmux("capture-pane", "-p")
            time.sleep(0.1)

    environment = [f"{name}={value}" for name, value in {**slurm_env, "LANG": "C.UTF-8"}.items()]
    tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "env", *environment, "tfjobtui")
    try:
        until("copied", "capture-pane", "-p")
        tmux("send-keys", "y")
        until(job, "show-buffer")
    finally:
        tmux("kill-server")


def test_the_program_goes_with_its_terminal(program: Start) -> None:
    """Where SIGHUP is ignored (nohup), a lost terminal must not leave a process that spins."""
    terminal = program(through=("sh", "-c", 'trap "" HUP; exec "$@"', "sh"))
    terminal.wait_for("tfjobtui")
    terminal.hang_up()
    terminal.wait_exit(20)  # with whatever code: nobody is there to read it


def test_to_the_shell_and_back(program: Start) -> None:
    terminal = program(
        through=("bash", "--norc", "--noprofile", "-ic", 'PS1="back> "; exec bash --norc --noprofile -i', "-")
    )
    terminal.type("tfjobtui\r")
    terminal.wait_for("my jobs")
    terminal.press("ctrl+z")
    terminal.wait_for(r"Stopped +tfjobtui")
    before = len(terminal.raw)
    terminal.type("fg\r")
    terminal.wait_for(lambda shown: b"my jobs" in shown.raw[before:])
    before = len(terminal.raw)
    terminal.press("q")
    terminal.wait_for(lambda shown: re.search(rb"1049l[\s\S]*\$ ", shown.raw[before:]) is not None)
    terminal.type("exit\r")
    assert terminal.wait_exit() == 0
