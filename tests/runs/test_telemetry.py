"""The trainer's files, as its docstring describes them."""

import json
import math
from pathlib import Path

import pytest

from tfjobtui.errors import FormatError
from tfjobtui.runs.telemetry import Best, RunInfo, RunStatus, read_lines, read_run, read_status


def test_absent(tmp_path: Path) -> None:
    assert read_run(tmp_path) is None
    assert read_status(tmp_path / "no" / "folder") is None


def test_status(tmp_path: Path) -> None:
    values = {
        "version": 1,
        "time": 1.5,
        "status": "running",
        "attempt": 0,
        "step": 20,
        "total_steps": 100,
        "epoch": 2,
        "epochs": 10,
        "loss": "NaN",
        "val_loss": "-Infinity",
        "accuracy": None,
        "eta_s": 12,
        "best": {"name": "val_accuracy", "value": 0.5, "epoch": 1},
        "later": {},
    }
    (tmp_path / "status.json").write_text(json.dumps(values))
    status = read_status(tmp_path)
    assert status is not None
    assert status.loss is not None
    assert math.isnan(status.loss)
    assert (status.val_loss, status.accuracy, status.eta_s) == (-math.inf, None, 12.0)
    assert status.best == Best("val_accuracy", 0.5, 1)
    assert (status.status, status.step, status.total_steps, status.epoch) == ("running", 20, 100, 2)


def test_run(tmp_path: Path) -> None:
    values = {
        "version": 1,
        "attempt": 1,
        "started": 2.0,
        "job": {"job_id": "12_3"},
        "data": {"name": "digits"},
        "settings": {"epochs": 3, "seed": None},
        "command": ["python", "-m", "tfjob_trainer"],
        "total_steps": 66,
        "folder": "/runs/a",
    }
    (tmp_path / "run.json").write_text(json.dumps(values))
    assert read_run(tmp_path) == RunInfo(
        attempt=1,
        started_s=2.0,
        job_id="12_3",
        command=("python", "-m", "tfjob_trainer"),
        settings=(("epochs", "3"), ("seed", "")),
        data_name="digits",
        total_steps=66,
        folder="/runs/a",
    )


def test_wrong_kinds_are_not_known(tmp_path: Path) -> None:
    values = {
        "version": 1,
        "job": 3,
        "step": "many",
        "loss": "low",
        "status": 5,
        "epoch": True,
        "eta_s": 10**400,
    }
    (tmp_path / "status.json").write_text(json.dumps(values))
    (tmp_path / "run.json").write_text(json.dumps(values))
    assert read_status(tmp_path) == RunStatus()
    assert read_run(tmp_path) == RunInfo()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 2}', '{"version": "1"}'])
def test_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(FormatError):
        read_status(tmp_path)


def test_lines_of_a_growing_file(tmp_path: Path) -> None:
    path = tmp_path / "telemetry-0-0.jsonl"
    assert read_lines(path) == ((), 0)
    first = b'{"version": 1, "kind": "step", "time": 1.5, "step": 5, "loss": "NaN", "later": []}\n'
    odd = b'[]\n{"version": 2, "kind": "step"}\nnot JSON\n\xff\n'
    path.write_bytes(first + odd + b'{"version": 1, "kin')
    (line,), offset = read_lines(path)
    assert (line.kind, line.time_s, line.step) == ("step", 1.5, 5)
    assert math.isnan(line.number("loss") or 0)
    assert line.number("accuracy") is None
    assert offset == len(first + odd)
    with path.open("ab") as file:
        file.write(b'd": "end", "step": 9}\n')
    (line,), offset = read_lines(path, offset)
    assert (line.kind, line.step) == ("end", 9)
    assert read_lines(path, offset) == ((), offset)
