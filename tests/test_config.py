"""The configuration files: what they set, what they lock, and how a mistake in them is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfjobtui.cli.setup import local_settings
from tfjobtui.config import Config, check_columns, check_keys, load
from tfjobtui.errors import ConfigError
from tfjobtui.schedulers.local.settings import LocalSettings


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "site.toml", tmp_path / "user.toml"


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_without_files_everything_has_its_default(files: tuple[Path, Path]) -> None:
    config = load(*files)
    assert config.poll == Config().poll
    assert (config.poll.interval_s, config.poll.floor_s, config.jobs.shell) == (10.0, 2.0, True)
    assert config.files == ()
    assert config.warnings == ()


def test_the_users_file_comes_after_the_sites(files: tuple[Path, Path]) -> None:
    site, user = files
    write(site, '[poll]\ninterval_s = 20\n[ui]\ntheme = "light"\n[slurm.commands]\nsqueue = "/opt/squeue"')
    write(
        user,
        '[poll]\ninterval_s = 15\n[slurm.commands]\nsbatch = "/opt/sbatch"\n[keys]\ncancel = "c, delete"',
    )
    config = load(site, user)
    assert config.poll.interval_s == 15.0
    assert config.ui.theme == "light"
    assert dict(config.slurm.commands) == {"squeue": "/opt/squeue", "sbatch": "/opt/sbatch"}
    assert dict(config.keys) == {"cancel": "c,delete"}
    assert config.files == (site, user)
    assert config.origins["poll.interval_s"] == user
    assert config.origins["ui.theme"] == site


def test_template_folders_of_both_files_count_and_are_meant_from_their_file(files: tuple[Path, Path]) -> None:
    site, user = files
    write(site, '[templates]\nfolders = ["/site/templates"]')
    write(user, '[templates]\nfolders = ["mine"]')
    assert load(site, user).templates.folders == (Path("/site/templates"), user.parent / "mine")


@pytest.mark.parametrize("lock", ['"jobs.shell"', '"jobs"'])
def test_a_locked_key_is_passed_over_with_a_warning_that_names_both_files(
    files: tuple[Path, Path], lock: str
) -> None:
    site, user = files
    write(site, f"lock = [{lock}]\n[jobs]\nshell = false")
    write(user, "[jobs]\nshell = true")
    config = load(site, user)
    assert config.jobs.shell is False
    (warning,) = config.warnings
    assert str(site) in warning
    assert str(user) in warning
    assert "jobs.shell" in warning


def test_a_lock_without_a_value_keeps_the_default(files: tuple[Path, Path]) -> None:
    site, user = files
    write(site, 'lock = ["slurm.commands"]')
    write(user, '[slurm.commands]\nsqueue = "/mine/squeue"')
    config = load(site, user)
    assert not config.slurm.commands
    assert len(config.warnings) == 1


def test_only_the_site_sets_the_floor(files: tuple[Path, Path]) -> None:
    site, user = files
    write(site, "[poll]\nfloor_s = 15")
    write(user, "[poll]\nfloor_s = 2\ninterval_s = 5")
    config = load(site, user)
    assert (config.poll.floor_s, config.poll.interval_s) == (15.0, 15.0)
    assert len(config.warnings) == 2


def test_the_floor_raises_the_default_interval_without_a_warning(files: tuple[Path, Path]) -> None:
    write(files[0], "[poll]\nfloor_s = 30")
    config = load(*files)
    assert config.poll.interval_s == 30.0
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[poll]\ninterval = 5", "poll.interval", "interval_s"),
        ("[pol]\ninterval_s = 5", "pol", "poll"),
        ("interval_s = 5", "interval_s", "[poll]"),
        ('[slurm.commands]\nsquue = "/x"', "slurm.commands.squue", "squeue"),
        ('lock = ["jobs.shel"]', "lock", "jobs.shell"),
        ('[jobs]\nshel = true\n[ui]\ntheme = "x"', "jobs.shel", "shell"),
    ],
)
def test_an_unknown_key_names_file_key_and_the_nearest(
    files: tuple[Path, Path], text: str, key: str, nearest: str
) -> None:
    write(files[1], text)
    with pytest.raises(ConfigError) as caught:
        load(*files)
    assert str(files[1]) in caught.value.message
    assert key in caught.value.message
    assert nearest in caught.value.hint


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[poll]\ninterval_s = 1.9", "poll.interval_s"),
        ("[poll]\ninterval_s = true", "poll.interval_s"),
        ('[poll]\ninterval_s = "10"', "poll.interval_s"),
        ("[poll]\ninterval_s = nan", "poll.interval_s"),
        ("[slurm]\nquery_timeout_s = 0", "slurm.query_timeout_s"),
        ('[slurm]\nclusters = "a"', "slurm.clusters"),
        ('[slurm.commands]\nsqueue = "bin/squeue"', "slurm.commands.squeue"),
        ("[jobs]\nshell = 1", "jobs.shell"),
        ("[ui]\ntheme = 3", "ui.theme"),
        ('[keys]\ncancel = "c,,d"', "keys.cancel"),
        ("poll = 3", "poll"),
        ("[slurm]\ncommands = 3", "slurm.commands"),
    ],
)
def test_a_value_that_does_not_fit_names_file_and_key(files: tuple[Path, Path], text: str, key: str) -> None:
    write(files[1], text)
    with pytest.raises(ConfigError) as caught:
        load(*files)
    assert str(files[1]) in caught.value.message
    assert key in caught.value.message


def test_what_the_embedded_scheduler_may_use(files: tuple[Path, Path]) -> None:
    assert local_settings(load(*files)) == LocalSettings(30.0, None, None, None, 30.0)
    site, user = files
    write(site, "lock = ['local.cpus']\n[local]\ncpus = 4\nkill_wait_s = 60")
    write(user, '[local]\ncpus = 8\nmemory = "16G"\ngpus = 0\nkill_wait_s = 5\nkeep_days = 90')
    config = load(site, user)
    assert local_settings(config) == LocalSettings(5.0, 4, 16 << 30, 0, 90.0)
    assert "local.cpus is passed over" in config.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        "cpus = -1",
        "cpus = 1.5",
        "memory = 16",
        'memory = "16GB"',
        'memory = "G"',
        'memory = "much"',
        "gpus = -2",
        "kill_wait_s = 0",
        "keep_days = 0",
        "keep_days = true",
        'keep_days = "30"',
    ],
)
def test_a_limit_that_does_not_fit_is_told(files: tuple[Path, Path], text: str) -> None:
    write(files[1], f"[local]\n{text}")
    with pytest.raises(ConfigError, match=f"local.{text.split()[0]} must be") as caught:
        load(*files)
    assert str(files[1]) in str(caught.value)


def test_what_is_not_toml_is_told_with_its_line(files: tuple[Path, Path]) -> None:
    write(files[1], "[poll]\ninterval_s =\n")
    with pytest.raises(ConfigError, match="line 2"):
        load(*files)


def test_a_file_that_is_not_utf8_or_a_folder_is_told(files: tuple[Path, Path]) -> None:
    files[1].write_bytes(b"[ui]\ntheme = '\xff'\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(*files)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(files[0].parent, files[1])


def test_a_file_named_by_the_user_must_be_there(files: tuple[Path, Path]) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(*files, user_must_exist=True)


def test_keys_are_checked_against_the_actions(files: tuple[Path, Path]) -> None:
    write(files[1], '[keys]\ncancle = "c"')
    config = load(*files)
    with pytest.raises(ConfigError) as caught:
        check_keys(config, ["cancel", "hold", "quit"])
    assert str(files[1]) in caught.value.message
    assert "cancle" in caught.value.message
    assert "'cancel'" in caught.value.hint
    check_keys(config, ["cancle"])


def test_columns_are_checked_against_the_table(files: tuple[Path, Path]) -> None:
    write(files[1], '[table]\ncolumns = ["id", "name"]\nsort = "-nme"')
    config = load(*files)
    with pytest.raises(ConfigError, match=r"table\.sort"):
        check_columns(config, ["id", "name"])
    check_columns(config, ["id", "name", "nme"])


def test_no_toml_is_read_where_there_is_no_file(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tfjobtui.config import load;"
        f"load(Path({str(tmp_path)!r}) / 'a', Path({str(tmp_path)!r}) / 'b');"
        "sys.exit(any(name in sys.modules for name in ('tomllib', 'difflib', 'asyncio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_action_with_a_dot_may_be_written_in_every_way_of_toml(files: tuple[Path, Path]) -> None:
    write(files[1], '[keys]\njobs.cancel = "c"\n"jobs.hold" = "h"\n[keys.app]\nhelp = "f1,question_mark"\n')
    keys = dict(load(*files).keys)
    assert keys == {"jobs.cancel": "c", "jobs.hold": "h", "app.help": "f1,question_mark"}
