"""#SBATCH lines by sbatch's own rules, which are not the shell's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfjobtui.directives import Directive, Option, _components, change, read, separators, split_options
from tfjobtui.errors import FormatError, UsageError


def options(*lines: str) -> list[tuple[str, str | None]]:
    return [(item.name, item.value) for item in read("\n".join(["#!/bin/bash", *lines]))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH -p gpu", [("partition", "gpu")]),
        ("#SBATCH-p x", [("partition", "x")]),
        ("#SBATCH -pgpu", [("partition", "gpu")]),
        (
            "#SBATCH --time=1:00 -n 4 -HQ",
            [("time", "1:00"), ("ntasks", "4"), ("hold", None), ("quiet", None)],
        ),
        ("#SBATCH -Hp gpu", [("hold", None), ("partition", "gpu")]),
        ("#SBATCH --part=gpu", [("partition", "gpu")]),
        ("#SBATCH --exclusive --exclusive=user", [("exclusive", None), ("exclusive", "user")]),
        ("#SBATCH --nice -k", [("nice", None), ("no-kill", None)]),
        ('#SBATCH -J "Big simulation"', [("job-name", "Big simulation")]),
        ("#SBATCH --comment='it is \"so\"'", [("comment", 'it is "so"')]),
        (r"#SBATCH --comment='it\'s'", [("comment", "it's")]),
        (r"#SBATCH --comment=a\ b\\c", [("comment", r"a b\c")]),
        ("#SBATCH --comment=a#b -n 2", [("comment", "a")]),
        ('#SBATCH --comment="a#b" # why', [("comment", "a#b")]),
        (r"#SBATCH --comment=a\#b", [("comment", "a#b")]),
        ("#SBATCH --comment= -n 2", [("comment", ""), ("ntasks", "2")]),
        ('#SBATCH "" -n 2', []),
        ("#SBATCH --comment=$HOME", [("comment", "$HOME")]),
        ("#SBATCH", []),
        (" #SBATCH -n 2", []),
        ("# SBATCH -n 2", []),
        ("##SBATCH -n 2", []),
        ("#sbatch -n 2", []),
        ("#SLURM -n 2", [("ntasks", "2")]),
        ("#SBATCH --tasks-per-node=2", [("ntasks-per-node", "2")]),
        ("#SBATCH -n 2 hetjob -p x", [("ntasks", "2")]),
    ],
)
def test_one_line(line: str, expected: list[tuple[str, str | None]]) -> None:
    assert options(line) == expected


def test_a_value_may_stand_on_the_next_directive() -> None:
    assert options("#SBATCH -p", "# remark", "#SBATCH gpu") == [("partition", "gpu")]


def test_reading_stops_at_the_first_command() -> None:
    script = "#!/bin/bash\n#SBATCH -n 1\n\n  # remark\n#SBATCH -p a\nset -e\n#SBATCH -p b\n"
    assert read(script) == (Directive(2, "ntasks", "1"), Directive(5, "partition", "a"))


def test_components_of_a_het_job() -> None:
    script = (
        "#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob --ignored\n#SBATCH -n 2\n#SBATCH PackJob\n#SBATCH -n 3\n"
    )
    assert [(item.value, item.component) for item in read(script)] == [("1", 0), ("2", 1), ("3", 2)]
    assert separators(script) == (3, 5)
    assert separators("#!/bin/sh\n#SBATCH -n 1 hetjob\n#SBATCH hetjobs\ntrue\n#SBATCH hetjob\n") == ()
    assert separators("#!/bin/sh\n#SBATCHhetjob") == (2,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#SBATCH -J Big simulation", "line 3: 'simulation' is not an option"),
        ('#SBATCH -J "Big', 'line 3: the quote " is not closed'),
        ("#SBATCH --bogus=1", "line 3: sbatch has no option --bogus"),
        ("#SBATCH -j", "line 3: sbatch has no option -j"),
        ("#SBATCH --x11", "line 3: sbatch has no option --x11"),
        ("#SBATCH --time", "line 3: --time lacks its value"),
        ("#SBATCH --hold=1", "line 3: --hold takes no value"),
        ("#SBATCH --mem-", "--mem- may be any of"),
        ("#SBATCH : -n 1", "line 3: a directive can't have a word that begins with a colon"),
    ],
)
def test_errors_name_the_line(line: str, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read(f"#!/bin/bash\n\n{line}\n")
    assert message in error.value.message


def test_a_misspelt_option_gets_the_nearest() -> None:
    with pytest.raises(FormatError) as error:
        read("#SBATCH --partitoin=x")
    assert error.value.hint == "Did you mean partition?"


SCRIPT = """#!/bin/bash
# a remark
#SBATCH --time=1:00:00   # one hour
#SBATCH -p gpu -n 4
##SBATCH --mem=4G

echo "#SBATCH -n 5"
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"time": "2:00:00"}, "--time=1:00:00   # one", "--time=2:00:00   # one"),
        ({"partition": "big"}, "-p gpu -n 4", "-p big -n 4"),
        ({"partition": None}, "-p gpu -n 4", "-n 4"),
        ({"ntasks": None}, "-p gpu -n 4", "-p gpu"),
        ({"ntasks": None, "partition": None}, "#SBATCH -p gpu -n 4\n", ""),
        ({"time": None}, "#SBATCH --time=1:00:00   # one", "#SBATCH # one"),
        ({"mem": "8G"}, "-n 4\n", "-n 4\n#SBATCH --mem=8G\n"),
        ({"hold": ""}, "-n 4\n", "-n 4\n#SBATCH --hold\n"),
        ({"comment": ""}, "-n 4\n", '-n 4\n#SBATCH --comment=""\n'),
        ({"job-name": 'a "b" \\c #d'}, "-n 4\n", '-n 4\n#SBATCH --job-name="a \\"b\\" \\\\c #d"\n'),
        ({"mem": None, "time": "1:00:00"}, "", ""),
        ({"partition": ""}, "-p gpu -n 4", '-n 4\n#SBATCH --partition=""'),
    ],
)
def test_changes_in_place(changes: dict[str, str | None], old: str, new: str) -> None:
    assert change(SCRIPT, changes) == SCRIPT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("line", "changes", "expected"),
    [
        ("-pgpu", {"partition": "big"}, "-pbig"),
        ("-Hpgpu", {"partition": "a b"}, '-Hp"a b"'),
        ("-Hp gpu -n 1", {"hold": None}, "-p gpu -n 1"),
        ("-Hp gpu -n 1", {"partition": None}, "-H -n 1"),
        ("-Hk -Q", {"no-kill": "off"}, "-Hkoff -Q"),
        ("-vvv -n 1", {"verbose": None}, "-n 1"),
        ("-vQv", {"verbose": None}, "-Q"),
        ("--exclusive=user", {"exclusive": ""}, "--exclusive"),
        ("--exclusive", {"exclusive": "user"}, "--exclusive=user"),
        ("--partition gpu", {"partition": "a#b"}, '--partition "a#b"'),
        ("--part=gpu", {"partition": "big"}, "--partition=big"),
        ("-p a -n 1 -p b", {"partition": "c"}, "-n 1 -p c"),
    ],
)
def test_keeps_the_form(line: str, changes: dict[str, str | None], expected: str) -> None:
    assert change(f"#!/bin/sh\n#SBATCH {line}\ntrue", changes) == f"#!/bin/sh\n#SBATCH {expected}\ntrue"


def test_adds_to_a_script_without_directives() -> None:
    assert change("#!/bin/sh\necho\n", {"time": "5"}) == "#!/bin/sh\n#SBATCH --time=5\necho\n"
    assert change("echo\n", {"time": "5"}) == "#SBATCH --time=5\necho\n"


def test_changes_the_first_component_of_a_het_job() -> None:
    script = "#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2 --mem=1G\n"
    changed = change(script, {"ntasks": "8", "mem": "2G"})
    assert changed == "#!/bin/sh\n#SBATCH -n 8\n#SBATCH --mem=2G\n#SBATCH hetjob\n#SBATCH -n 2 --mem=1G\n"


@pytest.mark.parametrize(
    "changes",
    [{"comment": "a\nrm -rf /"}, {"comment": "a\0"}, {"comment": "\r"}, {"partitoin": "a"}, {"hold": "1"}],
)
def test_refuses_what_can_not_stand_in_a_directive(changes: dict[str, str | None]) -> None:
    with pytest.raises(UsageError):
        change(SCRIPT, changes)


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])),
    st.sampled_from(["-J old", "-Jold", "--job-name=old", "--job-name old", "-n 1", "-HJ old -Q", "-Jx -Jy"]),
)
@example(":", "-J old")
@example("HetJob", "-J old")
def test_any_value_comes_back_and_nothing_breaks_out(value: str, line: str) -> None:
    script = f"#!/bin/sh\n#SBATCH {line} # remark\n#SBATCH -c 2\ntrue\n"
    changed = change(script, {"job-name": value})
    found = {item.name: item.value for item in read(changed)}
    assert found["job-name"] == value
    others = {item.name: item.value for item in read(script)}
    others["job-name"] = value
    assert found == others
    assert changed.endswith("\ntrue\n")
    assert change(changed, {"job-name": value}) == changed


@settings(deadline=None)
@given(st.text(st.sampled_from("#SBATCH -p\n\"'\\ hetjob=x:H")))
def test_reading_never_fails_otherwise(text: str) -> None:
    try:
        read(text)
    except FormatError:
        return
    change(text, {"time": "1"})
    change(text, {"partition": None, "hold": None})


def test_options_of_a_command_line() -> None:
    assert split_options(["-p", "gpu", "--time=5", "run.sh", "-x"]) == (
        (Option("partition", "gpu"), Option("time", "5")),
        ("run.sh", "-x"),
    )
    assert split_options(["-H", "--", "-x.sh"]) == ((Option("hold"),), ("-x.sh",))
    with pytest.raises(FormatError):
        split_options(["--nothing-like-it"])
    assert Option("job-name", "a b").argument == "--job-name=a b"


@pytest.mark.skipif(shutil.which("sbatch") is None, reason="compares with Slurm's own sbatch")
@pytest.mark.parametrize(
    "line",
    [
        "-J \"Big sim\" --comment='it\\'s' -n 2#x",
        '-J "a\'b" -c\'3\' --comment="a\\\\b \\"c\\" #d" # end',
        "--comment=a\\\tb -n 1",
        "--comment=a\\\\ -n 1\\",
        '"" -n 2',
        "-n 3 hetjob -p x",
        "-n 3 HETJOB",
        "hetjobs -n 3",
        "-p$HOME -J`x` ;#",
        "-J 'ä ö' \v -n\f2",
        "",
    ],
)
def test_words_are_those_that_sbatch_finds(line: str, tmp_path: Path) -> None:
    config = tmp_path / "slurm.conf"
    config.write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n")
    # The last directive is wrong, so that sbatch ends before it looks for a controller.
    script = f"#!/bin/sh\n#SBATCH {line}\n#SBATCH stop-here\ntrue\n"
    (tmp_path / "job.sh").write_text(script)
    done = subprocess.run(
        ["sbatch", "-vvv", str(tmp_path / "job.sh")],
        env={"PATH": os.environ["PATH"], "SLURM_CONF": str(config)},
        capture_output=True,
        timeout=20,
    )
    said = done.stderr.decode()
    assert "Invalid directive" in said or "unrecognized option" in said
    found = re.findall(r'Found in script, argument "(.*)"$', said, re.MULTILINE)
    assert [word.text for word in _components(script.split("\n"))[0]] == found
