"""Options out of a submission's command line: only where it can be read in one way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfjobtui.actions.submit_line import Submission, read_options


def read(line: str, command: str | None, script: str = "#!/bin/sh\n", **known: str) -> list[str] | None:
    """The options as words, those of a het job's parts with colons between them."""
    parts = read_options(line, Submission(command, script, **known))
    if parts is None:
        return None
    return [word for part in parts for word in (":", *(option.argument for option in part))][1:]


WRAPPED = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"


@pytest.mark.parametrize(
    ("line", "command", "options"),
    [
        ("sbatch train.sh", "/w/train.sh", []),
        ("sbatch -p gpu --time=1:00 train.sh 5 a", "/w/train.sh 5 a", ["--partition=gpu", "--time=1:00"]),
        (
            "/usr/bin/sbatch --parsable -Hpgpu ../jobs/train.sh",
            "/w/jobs/train.sh",
            ["--hold", "--partition=gpu"],
        ),
        ("sbatch -J train /w/train.sh -p cpu", "/w/train.sh -p cpu", ["--job-name=train"]),
        ("sbatch --exclusive --nice=5 train.sh", "/w/train.sh", ["--exclusive", "--nice=5"]),
        ("sbatch -M slate -p gpu train.sh", "/w/train.sh", ["--partition=gpu"]),
        ("sbatch -p gpu train.sh", None, ["--partition=gpu"]),
        ("sbatch -p gpu", None, ["--partition=gpu"]),
        ("sbatch -p gpu", "", ["--partition=gpu"]),
        (
            "sbatch -p cpu -n1 : -p gpu --gpus=1 train.sh 5",
            "/w/train.sh 5",
            ["--partition=cpu", "--ntasks=1", ":", "--partition=gpu", "--gpus=1"],
        ),
    ],
)
def test_what_can_be_read(line: str, command: str | None, options: list[str]) -> None:
    assert read(line, command) == options


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("sbatch -J my job -p gpu train.sh", "/w/train.sh"),
        ("sbatch --comment=a b train.sh", "/w/train.sh"),
        ("sbatch --comment= train.sh a", None),
        ("sbatch --comment from stdin", ""),
        ("sbatch --comment from stdin", None),
        ("sbatch --comment a : b train.sh", "/w/train.sh"),
        ("sbatch --comment a\nb train.sh", "/w/train.sh"),
        ("sbatch --brandnew=1 train.sh", "/w/train.sh"),
        ("sbatch -p  gpu train.sh", "/w/train.sh"),
        ("sbatch -p gpu train.sh", "/w/other.sh"),
        ("sbatch -p gpu train.sh 5", None),
        ("salloc -p gpu", None),
        ("", None),
        ("sbatch -p gpu --wrap=sleep 5", "/w/train.sh"),
    ],
)
def test_what_cannot(line: str, command: str | None) -> None:
    assert read(line, command) is None


@pytest.mark.parametrize(
    ("line", "name", "options"),
    [
        (
            "sbatch -J we|ird [red]na=me -p gpu a.sh",
            "we|ird [red]na=me",
            ["--partition=gpu", "--job-name=we|ird [red]na=me"],
        ),
        ("sbatch --job-name=a\nb a.sh", "a\nb", ["--job-name=a\nb"]),
        ("sbatch -J my -H a.sh", "my -H", ["--job-name=my -H"]),
        ("sbatch -J my  -H a.sh", "my  -H", ["--job-name=my  -H"]),
        (
            "sbatch -J gr\u00f6\u00dfe??? a.sh",
            "gr\u00f6\u00dfe\u65e5\u672c\u8a9e",
            ["--job-name=gr\u00f6\u00dfe\u65e5\u672c\u8a9e"],
        ),
        ("sbatch -J lat?in? a.sh", "lat\udce9in\udcff", ["--job-name=lat\udce9in\udcff"]),
        ("sbatch -J first a.sh", "renamed-since", ["--job-name=first"]),
        ("sbatch -J a b -J a b a.sh", "a b", None),
    ],
)
def test_a_name_is_known_from_the_queue(line: str, name: str, options: list[str] | None) -> None:
    assert read(line, "/w/a.sh", name=name) == options


def test_the_last_word_is_the_script_where_it_looks_like_it(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("#!/bin/sh\n")
    for words in ("here", "here a b"):
        assert read(f"sbatch -t 5 {words}", None, work_dir=str(tmp_path)) == ["--time=5"]
    (tmp_path / "here").write_text("#!/bin/sh\nchanged\n")
    assert read("sbatch -t 5 here", None, work_dir=str(tmp_path)) is None
    assert read("sbatch -t 5 here.sh 7", None, work_dir=str(tmp_path)) is None
    assert read("sbatch -t 5 train", None, name="train") == ["--time=5"]
    assert read("sbatch --comment on train", None, name="x", work_dir=str(tmp_path)) is None


@pytest.mark.parametrize(
    ("line", "script", "options"),
    [
        ("sbatch -p cpu --wrap sleep 60", "sleep 60", ["--partition=cpu"]),
        ("sbatch --wrap=sleep 60 -p cpu --gpus=2", "sleep 60", ["--partition=cpu", "--gpus=2"]),
        ("sbatch -p cpu --wrap a\nb", "a\nb", ["--partition=cpu"]),
        ("sbatch --wrap sleep 60", "sleep 6", None),
        ("sbatch --wrap echo --wrap x", "echo --wrap x", []),
        ("sbatch --wrap sleep 60 -J my job", "sleep 60", None),
    ],
)
def test_a_wrapped_command_is_cut_out(line: str, script: str, options: list[str] | None) -> None:
    assert read(line, "", WRAPPED.format(script)) == options
