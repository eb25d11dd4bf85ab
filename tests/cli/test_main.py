"""The command line without a cluster: versions, usage, messages and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import environment, tfjobtui
from tfjobtui import __version__

COMMANDS = (
    "jobs",
    "show",
    "logs",
    "submit",
    "cancel",
    "hold",
    "release",
    "requeue",
    "resubmit",
    "templates",
    "doctor",
)


@pytest.fixture
def no_slurm(tmp_path: Path) -> dict[str, str]:
    """A machine on which no command of Slurm can be found."""
    module = tmp_path / "sitecustomize.py"
    module.write_text(
        "import sys\n"
        "import tfjobtui.schedulers.slurm.settings as s\n"
        "s.USUAL_FOLDERS = ('/nonexistent/bin',)\n",
        encoding="utf-8",
    )
    return {
        "PATH": str(tmp_path),
        "SLURM_CONF": "",
        "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}",
    }


def test_the_version() -> None:
    answer = tfjobtui("--version")
    assert (answer.code, answer.out) == (0, f"tfjobtui {__version__}\n")
    assert tfjobtui("jobs", "--help").code == 0


def test_the_version_needs_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); sys.argv = ['tfjobtui', '--version'];"
        "from tfjobtui.cli.main import main; main();"
        "heavy = {'argparse', 'asyncio', 'dataclasses', 'pathlib', 'json', 'textual', 'tomllib'};"
        "print(sorted(heavy & set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-E", "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    answer = tfjobtui(command, "--help")
    assert answer.code == 0
    assert command in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("jobs", "--frobnicate"),
        ("show",),
        ("show", "12x"),
        ("cancel",),
        ("cancel", "7", "--signal", "USR9", "--yes"),
        ("logs", "7", "-n", "many"),
        ("jobs", "nonsense:1"),
        ("jobs", "--columns", "frobnicate"),
        ("--config", "/nonexistent/file", "jobs"),
    ],
)
def test_wrong_usage_is_told_in_a_line_and_ends_with_2(words: tuple[str, ...]) -> None:
    answer = tfjobtui(*words)
    assert answer.code == 2
    assert answer.err.startswith("tfjobtui: ")
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_wrong_configuration_ends_with_2(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[poll]\nintervall_s = 3\n")
    answer = tfjobtui("--config", str(file), "jobs")
    assert answer.code == 2
    assert str(file) in answer.err
    assert "interval_s" in answer.err


def test_the_screens_need_a_terminal() -> None:
    answer = tfjobtui()
    assert answer.code == 2
    assert "need a terminal" in answer.err
    assert "tfjobtui jobs" in answer.err


@pytest.mark.parametrize("words", [("jobs",), ("cancel", "7", "--yes"), ("show", "7"), ("logs", "7")])
def test_without_slurm_it_says_what_was_looked_for(no_slurm: dict[str, str], words: tuple[str, ...]) -> None:
    answer = tfjobtui("--scheduler", "slurm", *words, **no_slurm)
    assert answer.code == 2
    assert "Slurm's commands are not on this machine" in answer.err
    assert "squeue" in answer.err
    assert "/nonexistent/bin" in answer.err


@pytest.mark.parametrize(("what", "hint"), [("nofile.sh", "templates"), ("trian", "train")])
def test_what_is_neither_a_template_nor_a_file(tmp_path: Path, what: str, hint: str) -> None:
    answer = tfjobtui("submit", what, cwd=tmp_path)
    assert answer.code == 2
    assert f"there is neither a template nor a file {what!r}" in answer.err
    assert hint in answer.err


def test_doctor_without_slurm_fails_and_says_what_to_do(no_slurm: dict[str, str]) -> None:
    answer = tfjobtui("doctor", "--scheduler", "slurm", **no_slurm)
    assert answer.code == 1
    assert "none of its commands was found" in answer.out
    assert "[slurm.commands]" in answer.out
    answer = tfjobtui("doctor", "--json", "--scheduler", "slurm", **no_slurm)
    assert answer.code == 1
    assert answer.json["version"] == 1
    assert answer.json["ok"] is False
    assert {"id", "mark", "title", "text", "advice"} == set(answer.json["findings"][0])


@pytest.mark.parametrize(
    ("text", "id_", "words"),
    [
        ('[table]\ncolumns = ["nam"]\n', "config.columns", "'nam'"),
        ('[keys]\n"jobs.cancell" = "d"\n', "config.keys", "no action 'jobs.cancell'"),
        ('[keys]\n"jobs.cancel" = "h"\n', "config.keys", "the key h is that of jobs.hold"),
    ],
)
def test_doctor_tells_what_the_screens_would_refuse(tmp_path: Path, text: str, id_: str, words: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    answer = tfjobtui("--config", str(config), "doctor", "--json")
    assert answer.code == 1
    found = {item["id"]: item for item in answer.json["findings"]}[id_]
    assert found["mark"] == "missing"
    assert words in found["text"]
    assert str(config) in found["text"]
    config.write_text('[keys]\n"jobs.cancel" = "&"\n')
    answer = tfjobtui("--config", str(config), "doctor", "--json")
    assert {item["id"]: item for item in answer.json["findings"]}["config.keys"]["mark"] == "ok"


def test_a_log_file_goes_through_byte_for_byte(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"a\xff\n\x1b[31mred\rb\nlast")
    done = subprocess.run(
        [sys.executable, "-m", "tfjobtui", "logs", str(log)],
        capture_output=True,
        env=environment(),
        check=True,
    )
    assert done.stdout == log.read_bytes()


@pytest.mark.parametrize(("count", "text"), [(0, ""), (1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n")])
def test_the_last_lines_of_a_file(tmp_path: Path, count: int, text: str) -> None:
    log = tmp_path / "x.log"
    log.write_text("a\nb\nc\n")
    assert tfjobtui("logs", str(log), "-n", str(count)).out == text


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    answer = tfjobtui("logs", str(tmp_path / "none.log"))
    assert answer.code == 1
    assert "cannot be read" in answer.err


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("line\n" * 500_000)
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m tfjobtui logs {log} | head -n 1"],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert (done.stdout, done.stderr) == ("line\n", "")


# ---- Which scheduler


def test_without_slurm_this_machine_is_used_and_says_so(no_slurm: dict[str, str]) -> None:
    answer = tfjobtui("doctor", "--json", **no_slurm)
    assert answer.code == 0
    found = {item["id"]: item for item in answer.json["findings"]}
    assert found["scheduler"]["text"] == "local: there is no Slurm on this machine"
    assert "queue.db" in found["queue"]["text"]
    assert tfjobtui("jobs", **no_slurm).code == 0
    assert "Leave --clusters out" in tfjobtui("-M", "a", "jobs", **no_slurm).err


def test_a_machine_with_slurms_configuration_never_runs_jobs_itself(no_slurm: dict[str, str]) -> None:
    """A login node must not start to train because Slurm's commands are not on the PATH."""
    answer = tfjobtui("jobs", **{**no_slurm, "SLURM_CONF": "/etc/site/slurm.conf"})
    assert answer.code == 2
    assert "SLURM_CONF=/etc/site/slurm.conf" in answer.err
    assert "--scheduler local" in answer.err
    answer = tfjobtui("--scheduler", "local", "jobs", **{**no_slurm, "SLURM_CONF": "/etc/site/slurm.conf"})
    assert answer.code == 0
    assert "must not be a login node" in answer.err


def test_the_configuration_chooses_too(no_slurm: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[scheduler]\nuse = "slurm"\n')
    assert tfjobtui("--config", str(config), "jobs", **no_slurm).code == 2
    config.write_text('[scheduler]\nuse = "mine"\n')
    answer = tfjobtui("--config", str(config), "jobs", **no_slurm)
    assert answer.code == 2
    assert "one of auto, slurm, local" in answer.err
