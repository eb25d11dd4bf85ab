"""Options by getopt_long's rules."""

from __future__ import annotations

import pytest

from tfjobtui.schedulers.local.commands.getopt import Table, parse
from tfjobtui.schedulers.local.commands.refusal import RefusalError

TABLE = Table(
    "squeue",
    with_value="format:o Format:O users=user user:u",
    flags="noheader:h array:r",
    optional="exclusive kill:K",
    loose="jobs:j",
    with_value_not_here="iterate:i",
    flags_not_here="json",
)
AT_START = Table("srun", with_value="ntasks:n", flags="label:l", bad_usage=255, at_start=True)


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["-h", "-o", "%i", "x"], {"noheader": None, "format": "%i"}, ["x"]),
        (["x", "-ho%i", "y"], {"noheader": None, "format": "%i"}, ["x", "y"]),
        (["--form=%j", "-hr"], {"format": "%j", "noheader": None, "array": None}, []),
        (["--users", "me", "--user=you"], {"user": "you"}, []),
        (["-K", "0", "-K0"], {"kill": "0"}, ["0"]),
        (["--exclusive", "--exclusive=user"], {"exclusive": "user"}, []),
        (["-j", "12", "--jobs"], {"jobs": None}, []),
        (["-j", "12", "-h"], {"jobs": "12", "noheader": None}, []),
        (["-j", "-h"], {"jobs": None, "noheader": None}, []),
        (["-h", "--", "-r", "--", "x"], {"noheader": None}, ["-r", "--", "x"]),
        (["-", "-h"], {"noheader": None}, ["-"]),
        (["-o", "-h"], {"format": "-h"}, []),
        (["-o", ""], {"format": None}, []),
    ],
)
def test_words_are_read(words: list[str], options: dict[str, str | None], rest: list[str]) -> None:
    found = parse(TABLE, words)
    assert (found.options, found.rest) == (options, rest)


def test_some_commands_read_no_further_than_the_first_word() -> None:
    found = parse(AT_START, ["-n2", "python", "-n", "--label"])
    assert (found.options, found.rest) == ({"ntasks": "2"}, ["python", "-n", "--label"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bogus=1"], "squeue: unrecognized option '--bogus'"),
        (["-hz"], "squeue: invalid option -- 'z'"),
        (["-o"], "squeue: option requires an argument -- 'o'"),
        (["--format"], "squeue: option '--format' requires an argument"),
        (["--noheader=1"], "squeue: option '--noheader' doesn't allow an argument"),
    ],
)
def test_what_is_wrong_is_said_as_getopt_says_it(words: list[str], said: str) -> None:
    with pytest.raises(RefusalError) as caught:
        parse(TABLE, words)
    assert caught.value.words == f'{said}\nTry "squeue --help" for more information'
    assert caught.value.code == 1


def test_a_beginning_of_several_options_is_ambiguous() -> None:
    table = Table("squeue", flags="start states-only step")
    with pytest.raises(
        RefusalError, match="option '--st' is ambiguous; possibilities: '--start' '--states-only' '--step'"
    ):
        parse(table, ["--st"])
    assert parse(TABLE, ["--use", "me"]).get("user") == "me"  # both that begin so mean the same


def test_the_exit_code_is_the_command_s() -> None:
    with pytest.raises(RefusalError) as caught:
        parse(AT_START, ["--bogus"])
    assert caught.value.code == 255


@pytest.mark.parametrize("words", [["-i", "5"], ["--iterate=5"], ["--json"]])
def test_what_only_slurm_can_do_says_so(words: list[str]) -> None:
    with pytest.raises(RefusalError, match="is not supported by tfjobtui's local scheduler"):
        parse(TABLE, words)
