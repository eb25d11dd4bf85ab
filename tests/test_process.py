"""Starting a command that goes on by itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tfjobtui.errors import CommandNotFoundError
from tfjobtui.process import detached

TELL = """
import os, signal, sys, time
print(os.getppid(), os.getsid(0), os.getpgid(0), os.getcwd())
print([int(number) for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN])
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())), sys.stdin.read() == "", os.environ.get("MARK"))
print("over", flush=True)
"""


def until(look: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not look():
        assert time.monotonic() < end
        time.sleep(0.01)


def told(log: Path) -> list[str]:
    until(lambda: log.exists() and "over" in log.read_text())
    return log.read_text().splitlines()


def start(log: Path) -> None:
    detached((sys.executable, "-c", TELL), env={"MARK": "here"}, log=str(log))


def test_it_is_nobodys_child_in_a_session_of_its_own(tmp_path: Path) -> None:
    start(tmp_path / "log")
    parent, session, group, folder = told(tmp_path / "log")[0].split()
    assert int(parent) != os.getpid()
    assert int(session) not in (os.getsid(0), 0)
    assert int(group) != os.getpgid(0)
    assert folder == "/"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # nobody is left to wait for


def test_it_has_nothing_of_ours_but_what_it_is_given(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        start(tmp_path / "log")
    finally:
        signal.signal(signal.SIGINT, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    _, ignored, rest, _ = told(tmp_path / "log")
    # Python itself ignores these two.
    assert ignored == str([int(signal.SIGPIPE), int(signal.SIGXFSZ)])
    assert rest == "[] True here"
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_it_can_be_started_from_a_thread(tmp_path: Path) -> None:
    thread = threading.Thread(target=start, args=(tmp_path / "log",))
    thread.start()
    thread.join()
    assert told(tmp_path / "log")[-1] == "over"


def test_what_it_says_is_added_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    start(tmp_path / "log")
    assert told(tmp_path / "log")[0] == "before"


def test_without_its_file_it_runs_all_the_same(tmp_path: Path) -> None:
    detached(("touch", str(tmp_path / "there")), env=dict(os.environ), log=str(tmp_path / "no" / "log"))
    until((tmp_path / "there").exists)


def test_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandNotFoundError, match="no-such-command"):
        detached(("/no-such-command",), env={}, log=str(tmp_path / "log"))
