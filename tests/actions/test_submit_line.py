"""Options out of a submission's command line: only where it can be read in one way."""

from __future__ import annotations

import pytest

from tfjobtui.actions.submit_line import read_options

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
        ("sbatch -p gpu train.sh", "", ["--partition=gpu"]),
        ("sbatch -p gpu", "", ["--partition=gpu"]),
    ],
)
def test_what_can_be_read(line: str, command: str, options: list[str]) -> None:
    found = read_options(line, command, "#!/bin/sh\n")
    assert found is not None
    assert [option.argument for option in found] == options


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("sbatch -J my job -p gpu train.sh", "/w/train.sh"),
        ("sbatch --comment=a b train.sh", "/w/train.sh"),
        ("sbatch --comment= train.sh a", ""),
        ("sbatch --brandnew=1 train.sh", "/w/train.sh"),
        ("sbatch -p  gpu train.sh", "/w/train.sh"),
        ("sbatch -p gpu train.sh", "/w/other.sh"),
        ("sbatch -p gpu train.sh 5", ""),
        ("salloc -p gpu", ""),
        ("", ""),
        ("sbatch -p gpu --wrap=sleep 5", "/w/train.sh"),
    ],
)
def test_what_cannot(line: str, command: str) -> None:
    assert read_options(line, command, "#!/bin/sh\n") is None


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
    found = read_options(line, "", WRAPPED.format(script))
    assert (None if found is None else [option.argument for option in found]) == options
