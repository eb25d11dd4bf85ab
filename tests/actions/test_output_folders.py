"""The folders of output files are made before the submission."""

from __future__ import annotations

from pathlib import Path

from tfjobtui.actions.output_folders import make_output_folders
from tfjobtui.directives import Option


def make(tmp_path: Path, **options: str) -> tuple[str, ...]:
    chosen = [Option(name, value) for name, value in options.items()]
    return make_output_folders(chosen, str(tmp_path), "ada", "my job")


def test_missing_folders_are_made_and_told(tmp_path: Path) -> None:
    notes = make(tmp_path, output="logs/a/%j.out", error="errs/%j.err")
    assert (tmp_path / "logs" / "a").is_dir()
    assert (tmp_path / "errs").is_dir()
    assert len(notes) == 2


def test_nothing_is_said_where_nothing_is_to_do(tmp_path: Path) -> None:
    assert make(tmp_path, output="%j.out") == ()
    assert make(tmp_path) == ()
    assert make(tmp_path, output="/dev/null") == ()


def test_what_is_known_of_a_pattern_is_filled_in(tmp_path: Path) -> None:
    make(tmp_path, output="%u/%x/100%%/%j.out")
    assert (tmp_path / "ada" / "my job" / "100%").is_dir()


def test_what_is_known_only_at_the_start_is_told(tmp_path: Path) -> None:
    (note,) = make(tmp_path, output="runs/%j/log.out")
    assert "known only when it runs" in note
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_the_job_counts(tmp_path: Path) -> None:
    make(tmp_path, output="logs/x.out", chdir="sub")
    assert (tmp_path / "sub" / "logs").is_dir()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    (note,) = make(tmp_path, output="logs/x.out")
    assert "cannot be made" in note


def test_a_folder_of_work_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    assert make(tmp_path / "gone", output="logs/x.out") == ()
    assert not (tmp_path / "gone").exists()
