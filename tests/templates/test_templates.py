"""Templates: their header, the values, and the script that comes out."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfjobtui.directives import read as read_directives
from tfjobtui.errors import FormatError, UsageError
from tfjobtui.templates import catalogue
from tfjobtui.templates.catalogue import Template
from tfjobtui.templates.parameters import Parameter, read_header
from tfjobtui.templates.rendering import render

SCRIPT = """#!/bin/bash
#SBATCH --time=00:30:00
##SBATCH --gpus-per-node=1
# A remark.
#TFJOB format = 1
#TFJOB name = small
#TFJOB title = "A small one"
#TFJOB about = 'What "it" does.'
#TFJOB param EPOCHS int default=12 min=1 max=100 help="Passes over the data."
#TFJOB param RATE float default=0.001 above=0 max=100
#TFJOB param KIND choice default=auto choices=auto,cpu,gpu
#TFJOB param DIR path default="" help="Run folder."
#TFJOB param WORDS words
#TFJOB param FAST bool
#TFJOB param TRAINER path default="" set=trainer

# >>> parameters
EPOCHS="${EPOCHS:-12}"
RATE="${RATE:-0.001}"
KIND="${KIND:-auto}"
DIR="${DIR:-}"
WORDS="${WORDS:-}"
FAST="${FAST:-}"
TRAINER="${TRAINER:-}"
# <<< parameters

EPOCHS=${EPOCHS:-unset}
printf '%s\\0' "$EPOCHS" "$RATE" "$KIND" "$DIR" "$WORDS" "$FAST" "$TRAINER"
"""


@pytest.fixture
def template(tmp_path: Path) -> Template:
    (tmp_path / "small.sbatch").write_text(SCRIPT)
    return catalogue.read(tmp_path / "small.sbatch")


def run(script: str) -> list[str]:
    environment = {"PATH": "/usr/bin:/bin", "EPOCHS": "99", "DIR": "/from/the/environment"}
    done = subprocess.run(["bash"], input=script.encode(), capture_output=True, check=True, env=environment)
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


def test_reads_the_header(template: Template) -> None:
    assert template.error == ""
    assert (template.name, template.title, template.about) == ("small", "A small one", 'What "it" does.')
    assert [item.name for item in template.parameters if item.is_shown] == [
        "EPOCHS",
        "RATE",
        "KIND",
        "DIR",
        "WORDS",
        "FAST",
    ]
    assert template.parameters[0] == Parameter(
        "EPOCHS", "int", "12", "Passes over the data.", minimum=1, maximum=100
    )
    assert [item.name for item in template.directives] == ["time"]


def test_renders_defaults_and_no_longer_looks_at_the_environment(template: Template) -> None:
    assert run(render(template, {}, {})) == ["12", "0.001", "auto", "", "", "", ""]


def test_renders_values_and_directives(template: Template) -> None:
    values = {"EPOCHS": "3", "KIND": "GPU", "DIR": "/a b/$(touch x)'\"", "FAST": "yes"}
    script = render(template, values, {"time": "1:00:00", "partition": "a b", "mem": None}, "/opt/trainer")
    assert run(script) == ["3", "0.001", "gpu", "/a b/$(touch x)'\"", "", "1", "/opt/trainer"]
    found = {item.name: item.value for item in read_directives(script)}
    assert found == {"time": "1:00:00", "partition": "a b"}
    assert script.split("\n")[0:2] == ["#!/bin/bash", "#SBATCH --time=1:00:00"]
    assert "##SBATCH --gpus-per-node=1\n# A remark.\n" in script


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])))
def test_no_value_breaks_out(value: str) -> None:
    template = Template("x", Path("x"), SCRIPT, parameters=read_header(SCRIPT).parameters)
    script = render(template, {"DIR": value}, {})
    line = next(line for line in script.split("\n") if line.startswith("DIR="))
    assert shlex.split(line) == [f"DIR={value}"]
    assert len(script.split("\n")) == len(SCRIPT.split("\n"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"EPOCHS": "0"}, "EPOCHS is at least 1, not 0"),
        ({"EPOCHS": "101"}, "EPOCHS is at most 100, not 101"),
        ({"EPOCHS": "1.5"}, "EPOCHS is a whole number, not '1.5'"),
        ({"EPOCHS": "1_0"}, "EPOCHS is a whole number"),
        ({"RATE": "0"}, "RATE is more than 0, not 0"),
        ({"RATE": "nan"}, "RATE is a number, not 'nan'"),
        ({"RATE": "fast"}, "RATE is a number, not 'fast'"),
        ({"KIND": "gpus"}, "Did you mean gpu?"),
        ({"KIND": "tpu"}, "KIND is one of auto, cpu, gpu, not 'tpu'"),
        ({"FAST": "perhaps"}, "FAST is yes or no"),
        ({"DIR": "a\nb"}, "DIR can't have a line break"),
        ({"DIR": "a\0b"}, "DIR can't have a line break"),
        ({"EPOCH": "1"}, "Did you mean EPOCHS?"),
    ],
)
def test_wrong_values(template: Template, values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        render(template, values, {})
    assert message in str(error.value)


def test_an_empty_value_is_the_default(template: Template) -> None:
    assert run(render(template, {"EPOCHS": "", "DIR": ""}, {}))[:4] == ["12", "0.001", "auto", ""]
    assert template.parameters[0].problem("") == "EPOCHS needs a value, such as 12"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("EPOCHS int", "EPOCHS integer", "line 9: 'integer' is no type"),
        ("param EPOCHS int", "param 1EPOCHS int", "line 9: '1EPOCHS' is no name"),
        ("default=12", "default=0", "line 9: the default is not allowed: EPOCHS is at least 1"),
        ('help="Passes over', "help=Passes over", "line 9: No closing quotation"),
        ("max=100", "max=high", "line 9: max is a number"),
        (" choices=auto,cpu,gpu", "", "line 11: the choice KIND has no choices"),
        ("name = small", "name small", "line 6: neither"),
        ("format = 1", "format = 2", "its format is 2"),
        ("param RATE float", "param EPOCHS float", "line 10: the parameter EPOCHS is there twice"),
        ('RATE="${RATE:-0.001}"\n', "", "there is no line RATE=…"),
        ('RATE="${RATE:-0.001}"\n', "RATE=1\nRATE=2\n", "line 20: RATE gets its value twice"),
        ("# <<< parameters", "", "the parameters stand between"),
        ("#SBATCH --time", "#SBATCH --tmie", "line 2: sbatch has no option --tmie"),
        ("#!/bin/bash", "", "first line"),
        ("A remark.", "\r", "DOS"),
    ],
)
def test_a_broken_one_is_listed_with_its_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SCRIPT
    (tmp_path / "broken.sbatch").write_bytes(SCRIPT.replace(old, new, 1).encode())
    (template,) = catalogue.load([tmp_path])
    assert message in template.error
    with pytest.raises(FormatError):
        render(template, {}, {})
    with pytest.raises(UsageError):
        catalogue.find([template], "broken")


def test_later_folders_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    for folder, title in (("site", "Site"), ("user", "User")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.sbatch").write_text(SCRIPT.replace("A small one", title))
    (tmp_path / "user" / "plain.sbatch").write_text("#!/bin/sh\n#SBATCH -n 1\ntrue\n")
    (tmp_path / "user" / "binary.sbatch").write_bytes(b"#!/bin/sh\n\xff")
    (tmp_path / "user" / "notes.txt").write_text("no template")
    found = catalogue.load([tmp_path / "site", tmp_path / "absent", tmp_path / "user"])
    assert [(item.name, item.title) for item in found] == [
        ("binary", ""),
        ("plain", "plain"),
        ("small", "User"),
    ]
    assert found[0].error == "byte 10 is not UTF-8"
    assert catalogue.find(found, "small").title == "User"
    with pytest.raises(UsageError) as error:
        catalogue.find(found, "smal")
    assert error.value.hint == "Did you mean small?"


def test_a_broken_one_does_not_hide_one_that_works(tmp_path: Path) -> None:
    for folder in ("site", "user"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "small.sbatch").write_text(SCRIPT)
    (tmp_path / "user" / "small.sbatch").write_text("echo\n")
    found = catalogue.load([tmp_path / "site", tmp_path / "user"])
    assert [bool(item.error) for item in found] == [False, True]
    assert catalogue.find(found, "small").path.parent.name == "site"


def test_the_shipped_ones_work() -> None:
    templates = catalogue.load([catalogue.shipped_folder()])
    assert [item.error for item in templates] == [""] * len(templates)
    train = catalogue.find(templates, "train")
    script = render(train, {"EPOCHS": "2"}, {"time": "10"}, "/opt/tfjob_trainer")
    assert "\nEPOCHS=2\n" in script
    assert "\nTFJOB_TRAINER=/opt/tfjob_trainer\n" in script
    assert "#SBATCH --time=10\n" in script
    subprocess.run(["bash", "-n"], input=script.encode(), check=True)


def test_a_large_limit_is_told_in_full() -> None:
    parameter = Parameter("SEED", "int", maximum=2147483647, minimum=0.5)
    assert parameter.problem("2147483648") == "SEED is at most 2147483647, not 2147483648"
    assert parameter.problem("0") == "SEED is at least 0.5, not 0"
