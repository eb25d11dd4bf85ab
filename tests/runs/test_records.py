"""Records of submissions: kept whole, found again, and told apart when an id is used again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tfjobtui.errors import FormatError
from tfjobtui.model.ids import JobId
from tfjobtui.runs import records as module
from tfjobtui.runs.records import RunRecord, RunRecords, parse

RECORD = RunRecord(
    job_id=128,
    submitted_at_s=1_800_000_000.25,
    script="#!/bin/bash\necho \udcff '├'\n",
    cluster="slate",
    user="alice",
    host="login1",
    job_name="my job",
    options=("--partition=gpu", "--comment=a b"),
    arguments=("a b", ""),
    work_dir="/w",
    template="train",
    values={"EPOCHS": "3"},
    argv=("sbatch", "--partition=gpu", "train.sbatch"),
    git_commit="0" * 40,
    git_dirty=True,
    environment=("CUDA_HOME",),
)


@pytest.fixture
def records(tmp_path: Path) -> RunRecords:
    return RunRecords(tmp_path / "state" / "runs")


def test_comes_back_as_it_was(records: RunRecords) -> None:
    path = records.save(RECORD)
    assert records.find("slate", 128) == RECORD
    assert records.recent(5) == (RECORD,)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_nothing_there(records: RunRecords) -> None:
    assert records.find(None, 1) is None
    assert records.recent(3) == ()
    assert records.problems == ()


def test_a_task_has_the_record_of_its_array(records: RunRecords) -> None:
    records.save(RECORD)
    assert records.find("slate", JobId.parse("128_3")) == RECORD
    assert records.find("slate", JobId.parse("128_[4-9]")) == RECORD
    assert records.find("slate", JobId.parse("12")) is None


def test_clusters_are_told_apart_where_they_are_known(records: RunRecords) -> None:
    other = replace(RECORD, cluster="../x", submitted_at_s=RECORD.submitted_at_s + 1)
    records.save(RECORD)
    path = records.save(other)
    assert path.parent == records.folder
    assert records.find("slate", 128) == RECORD
    assert records.find("../x", 128) == other
    assert records.find("third", 128) is None
    assert records.find(None, 128) == other


def test_an_id_that_is_used_again(records: RunRecords) -> None:
    old = replace(RECORD, submitted_at_s=1_600_000_000.0, job_name="old")
    records.save(old)
    records.save(RECORD)
    assert records.find("slate", 128, 1_600_000_002) == old
    assert records.find("slate", 128, 1_800_000_001) == RECORD
    assert records.find("slate", 128, 1_700_000_000) is None
    assert records.find("slate", 128, 1_700_000_000, was_requeued=True) == old
    assert records.find("slate", 128, 1_900_000_000, was_requeued=True) == RECORD
    exact = replace(RECORD, job_id=5, submit_time_s=1_800_000_002)
    records.save(exact)
    assert records.find("slate", 5, 1_800_000_002) == exact
    assert records.find("slate", 5, 1_800_000_003) is None


def test_recent_is_newest_first(records: RunRecords) -> None:
    saved = [replace(RECORD, job_id=n, submitted_at_s=1_800_000_000.0 + n) for n in (3, 1, 2)]
    for record in saved:
        records.save(record)
    assert [record.job_id for record in records.recent(2)] == [3, 2]


def test_broken_ones_are_reported_and_left_out(records: RunRecords) -> None:
    path = records.save(RECORD)
    bad = {
        "1900000000001-1-.json": b"{",
        "1900000000002-1-.json": b"[]",
        "1900000000003-1-.json": json.dumps({"version": 2}).encode(),
        "1900000000004-1-.json": b"\xff\xfe",
        "notes.txt": b"not ours",
    }
    for name, data in bad.items():
        (path.parent / name).write_bytes(data)
    (path.parent / "1900000000005-1-.json").mkdir()
    assert records.recent(10) == (RECORD,)
    assert len(records.problems) == 5
    assert "version 2" in " ".join(records.problems)
    assert records.find("slate", 128) == RECORD
    assert records.problems == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("job_id", "1"),
        ("options", "ab"),
        ("options", [1]),
        ("values", {"A": 1}),
        ("script", None),
        ("git_dirty", 1),
    ],
)
def test_values_of_the_wrong_kind(records: RunRecords, key: str, value: object) -> None:
    data = json.loads(records.save(RECORD).read_bytes())
    data[key] = value
    with pytest.raises(FormatError) as error:
        parse(json.dumps(data).encode())
    assert key in error.value.message


def test_unknown_keys_are_ignored_and_absent_ones_have_defaults() -> None:
    text = '{"version": 1, "job_id": 1, "submitted_at_s": 2, "script": "", "later": [1]}'
    assert parse(text.encode()) == RunRecord(1, 2, "")


def test_a_full_disk_leaves_nothing_half_written(
    records: RunRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        records.save(RECORD)
    assert list(records.folder.iterdir()) == []


def test_the_oldest_go_when_there_are_too_many(records: RunRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORDS", 10)
    for number in range(12):
        records.save(replace(RECORD, job_id=number, submitted_at_s=1_800_000_000.0 + number))
    assert [record.job_id for record in records.recent(99)] == list(range(11, 1, -1))
