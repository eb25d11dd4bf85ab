"""Following a file through everything that happens to one."""

import os
from pathlib import Path

import pytest

from tfjobtui.logs.reader import ChangeKind, LogReader


def texts(reader: LogReader) -> list[str]:
    return [line.text for line in reader.lines]


def append(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.out"
    path.write_bytes(b"")
    return path


def test_lines_that_come_in_pieces(log: Path) -> None:
    reader = LogReader(log)
    assert reader.poll().kind is ChangeKind.NONE
    append(log, "one\ntw")
    change = reader.poll()
    assert (change.kind, change.first_changed) == (ChangeKind.APPENDED, 0)
    assert texts(reader) == ["one", "tw"]
    append(log, "o\nthree\n")
    change = reader.poll()
    assert (change.kind, change.first_changed) == (ChangeKind.APPENDED, 1)
    assert texts(reader) == ["one", "two", "three"]
    assert reader.poll().kind is ChangeKind.NONE
    assert reader.lines.at(2).text == "three"


def test_opens_a_large_file_at_its_end(log: Path) -> None:
    log.write_bytes(b"".join(b"line %06d\n" % number for number in range(100_000)))
    reader = LogReader(log, tail_bytes=1000)
    reader.poll()
    assert texts(reader)[0] == "line 099917"  # the first whole line of the last 1000 bytes
    assert texts(reader)[-1] == "line 099999"
    assert reader.has_earlier
    assert reader.lines.first_index == 0


def test_loads_earlier_lines_up_to_the_start(log: Path) -> None:
    log.write_bytes(b"".join(b"line %06d\n" % number for number in range(300)))
    reader = LogReader(log, tail_bytes=1000)
    reader.poll()
    kept = reader.lines.at(0)
    while reader.has_earlier:
        change = reader.load_earlier()
        assert change.kind is ChangeKind.APPENDED
        assert change.first_changed == reader.lines.first_index
    assert texts(reader) == [f"line {number:06d}" for number in range(300)]
    assert reader.lines.at(0) == kept
    assert reader.load_earlier().kind is ChangeKind.NONE


def test_truncated_by_a_requeue_and_written_to_before_the_next_look(log: Path) -> None:
    append(log, "a line\n" * 714 + "ha")
    assert log.stat().st_size == 5000
    reader = LogReader(log)
    reader.poll()
    inode = log.stat().st_ino
    os.truncate(log, 0)
    append(log, "new line!\n" * 20)
    assert (log.stat().st_size, log.stat().st_ino) == (200, inode)
    change = reader.poll()
    assert change.kind is ChangeKind.TRUNCATED
    assert change.first_changed == 714
    assert texts(reader)[713] == "a line"
    assert reader.lines[714].is_marker
    assert "cut" in reader.lines[714].text
    assert texts(reader)[715:] == ["new line!"] * 20


@pytest.mark.parametrize("size", [4, 10, 100, 5000])
def test_truncated_and_grown_to_any_size_with_the_same_beginning(log: Path, size: int) -> None:
    head = "banner\n" * 300
    append(log, head + "x" * 10 + "\n")
    reader = LogReader(log)
    reader.poll()
    log.write_bytes(head.encode() + b"y" * size + b"\n")  # write_bytes truncates: the same inode
    assert reader.poll().kind is ChangeKind.TRUNCATED
    assert texts(reader)[-1] == "y" * size
    assert texts(reader)[-301:-1] == ["banner"] * 300


def test_truncated_to_nothing(log: Path) -> None:
    append(log, "old\nhalf")
    reader = LogReader(log)
    reader.poll()
    os.truncate(log, 0)
    assert reader.poll().kind is ChangeKind.TRUNCATED
    assert [line.is_marker for line in reader.lines] == [False, True]
    assert reader.poll().kind is ChangeKind.NONE
    append(log, "new\n")
    assert reader.poll().kind is ChangeKind.APPENDED
    assert texts(reader)[-1] == "new"


def test_earlier_lines_of_a_file_that_was_cut_are_not_taken_from_the_new_one(log: Path) -> None:
    log.write_bytes(b"".join(b"line %06d\n" % number for number in range(300)))
    reader = LogReader(log, tail_bytes=1000)
    reader.poll()
    log.write_bytes(b"new\n" * 10)
    reader.poll()
    assert not reader.has_earlier
    assert reader.load_earlier().kind is ChangeKind.NONE


def test_replaced_by_another_file(log: Path) -> None:
    append(log, "old\nhalf")
    reader = LogReader(log)
    reader.poll()
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"new\n")
    change = reader.poll()
    assert change.kind is ChangeKind.REPLACED
    assert texts(reader)[:2] == ["old", "half"]
    assert reader.lines[2].is_marker
    assert texts(reader)[3:] == ["new"]


def test_deleted_and_made_anew(log: Path) -> None:
    append(log, "old\n")
    reader = LogReader(log)
    reader.poll()
    log.unlink()
    change = reader.poll()
    assert change.kind is ChangeKind.DELETED
    assert "deleted" in change.message
    assert reader.poll().kind is ChangeKind.NONE
    assert texts(reader) == ["old"]
    log.write_bytes(b"quite new\n")
    assert reader.poll().kind is ChangeKind.CREATED
    assert [line.is_marker for line in reader.lines] == [False, True, False]
    assert texts(reader)[-1] == "quite new"


def test_gone_for_a_moment_only(log: Path) -> None:
    append(log, "old\n")
    reader = LogReader(log)
    reader.poll()
    log.rename(log.with_suffix(".away"))
    assert reader.poll().kind is ChangeKind.DELETED
    log.with_suffix(".away").rename(log)
    assert reader.poll().kind is ChangeKind.CREATED
    assert texts(reader) == ["old"]


def test_awaited_until_it_is_there(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "folder" / "job.out")
    change = reader.poll()
    assert change.kind is ChangeKind.NONE
    assert "is not there" in change.message
    (tmp_path / "folder").mkdir()
    assert reader.poll().kind is ChangeKind.NONE
    (tmp_path / "folder" / "job.out").write_text("hello\n")
    assert reader.poll().kind is ChangeKind.CREATED
    assert texts(reader) == ["hello"]


def test_faults_are_told_and_pass(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/null"), Path("nul\0byte")):
        change = LogReader(path).poll()
        assert change.kind is ChangeKind.ERROR
        assert change.message
    os.mkfifo(tmp_path / "pipe")
    assert LogReader(tmp_path / "pipe").poll().kind is ChangeKind.ERROR
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    reader = LogReader(loop)
    assert reader.poll().kind is ChangeKind.ERROR
    loop.unlink()
    loop.write_text("well\n")
    assert reader.poll().kind is ChangeKind.APPENDED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_not_readable(log: Path) -> None:
    log.chmod(0)
    change = LogReader(log).poll()
    assert change.kind is ChangeKind.ERROR
    assert "may not be read" in change.message


def test_far_behind_it_skips_and_says_how_much(log: Path) -> None:
    reader = LogReader(log, tail_bytes=1000, read_bytes=2000, skip_bytes=4000)
    append(log, "start\nhalf of a line")
    reader.poll()
    append(log, "\n" + "flood of text\n" * 10_000)
    assert reader.poll().kind is ChangeKind.APPENDED
    marker = reader.lines[2]
    assert texts(reader)[:2] == ["start", "half of a line"]
    assert marker.is_marker
    assert "135.7 KiB" in marker.text
    assert set(texts(reader)[3:]) == {"flood of text"}
    assert len(reader.lines) == 3 + 71


def test_a_little_behind_it_reads_on(log: Path) -> None:
    reader = LogReader(log, read_bytes=2000, skip_bytes=8000)
    reader.poll()
    append(log, "0123456789abcde\n" * 400)
    changes = [reader.poll() for _ in range(4)]
    assert [change.is_behind for change in changes] == [True, True, True, False]
    assert texts(reader) == ["0123456789abcde"] * 400


def test_only_so_many_lines_are_kept(log: Path) -> None:
    reader = LogReader(log, keep_lines=1000, tail_bytes=10**6)
    for _ in range(30):
        append(log, "".join(f"{number:015d}\n" for number in range(3000)))
        while reader.poll().is_behind:
            pass
    assert len(reader.lines) <= 1 + 256 * 1024 // 16 + 3000
    assert reader.lines[0].is_marker
    assert "not kept" in reader.lines[0].text
    last = reader.lines.end_index - 1
    assert reader.lines.at(last).text == f"{2999:015d}"
    assert last == 90_000 - 1
    assert reader.lines.at(reader.lines.first_index).is_marker
    with pytest.raises(IndexError):
        reader.lines.at(reader.lines.first_index - 1)


def test_scrolling_back_ends_where_memory_would(log: Path) -> None:
    log.write_bytes(b"".join(b"line %06d\n" % number for number in range(10_000)))
    reader = LogReader(log, tail_bytes=6000, keep_lines=1500)
    reader.poll()
    while reader.load_earlier().kind is ChangeKind.APPENDED:
        pass
    assert reader.has_earlier
    assert reader.lines[0].is_marker
    assert texts(reader)[1:] == [f"line {number:06d}" for number in range(10_001 - len(reader.lines), 10_000)]
    assert 1350 <= len(reader.lines) <= 2100


def test_a_file_that_is_one_long_bar_opens_at_a_carriage_return(log: Path) -> None:
    log.write_bytes(b"".join(b"\r%05d/99999 loss 0.5" % number for number in range(20_000)) + b"\n")
    reader = LogReader(log, tail_bytes=1000, read_bytes=5000)
    reader.poll()
    assert texts(reader) == ["19999/99999 loss 0.5"]


def test_opening_within_a_character(log: Path) -> None:
    log.write_bytes("━".encode() * 1000)
    reader = LogReader(log, tail_bytes=100, read_bytes=200)
    reader.poll()
    assert set(texts(reader)[0]) == {"━"}


def test_an_unfinished_bar_is_one_line(log: Path) -> None:
    reader = LogReader(log)
    append(log, "Epoch 1/2\n")
    for step in range(3):
        append(log, "\b" * 30 + f"\r{step}/2 \x1b[32m━━\x1b[0m")
        reader.poll()
        assert texts(reader) == ["Epoch 1/2", f"{step}/2 ━━"]
        assert reader.lines.has_unfinished
    append(log, "\nEpoch 2/2\n")
    reader.poll()
    assert texts(reader) == ["Epoch 1/2", "2/2 ━━", "Epoch 2/2"]
