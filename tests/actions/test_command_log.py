"""The command log: in memory and in a file, whatever happens to the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfjobtui.actions import command_log
from tfjobtui.actions.command_log import CommandLog, LogEntry
from tfjobtui.schedulers.scheduler import CommandRecord


def record(*argv: str, output: str = "") -> CommandRecord:
    return CommandRecord(argv or ("scancel", "7"), 1000.5, 0.25, 0, output)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "state" / "commands.jsonl"
    log = CommandLog(path)
    odd = record("sbatch", "--comment=\udcff\n[red]", output="é\x1b")
    log.add("submit", [odd, odd])
    log.add("cancel 7", [CommandRecord(("scancel",), 1.0, 2.0, None)])
    assert len(log) == 2
    assert CommandLog(path).earlier() == tuple(log)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert log.problem == ""


def test_broken_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "commands.jsonl"
    CommandLog(path).add("a", [record()])
    with path.open("a") as file:
        file.write('{"v": 1, "argv": 3}\nnot json\n[1]\n')
    CommandLog(path).add("b", [record()])
    assert [entry.purpose for entry in CommandLog(path).earlier()] == ["a", "b"]


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_log, "MAX_BYTES", 1000)
    path = tmp_path / "commands.jsonl"
    log = CommandLog(path)
    for number in range(100):
        log.add(str(number), [record(output="x" * 100)])
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 3000
    assert log.earlier()[-1].purpose == "99"


def test_a_long_output_is_cut_in_the_file_only(tmp_path: Path) -> None:
    log = CommandLog(tmp_path / "commands.jsonl")
    log.add("a", [record(output="x" * 100_000)])
    assert len(json.loads((tmp_path / "commands.jsonl").read_text())["output"]) == command_log.MAX_OUTPUT
    assert len(next(iter(log)).record.output) == 100_000


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    log = CommandLog(tmp_path / "state" / "commands.jsonl")
    log.add("a", [record()])
    assert list(log) == [LogEntry("a", record())]
    assert "cannot be written" in log.problem
    assert log.earlier() == ()
