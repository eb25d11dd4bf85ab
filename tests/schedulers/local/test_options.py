"""What sbatch's options ask for, without a cluster; `test_options_on_slurm` compares with the real sbatch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfjobtui.directives import OPTION_NAMES
from tfjobtui.errors import SubmissionError
from tfjobtui.schedulers.local.option_table import PASSED_OVER, READERS, WITHOUT_EFFECT
from tfjobtui.schedulers.local.options import ParsedJob, flags_of, parse_job
from tfjobtui.schedulers.local.request import JobRequest

NOW = 1_900_000_000.0
GIB = 1 << 30
FOLDER = "/work/a b"
SCRIPT = f"{FOLDER}/train.sh"


def parse(
    *lines: str,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    script: str | None = None,
    path: str = SCRIPT,
) -> ParsedJob:
    """A script with these directives, submitted with these options."""
    text = "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in lines) + "true\n"
    return parse_job(
        text if script is None else script,
        command_line=[*options, "train.sh", "-x"] if path else options,
        environment=environment or {},
        script_path=path,
        arguments=("-x",) if path else (),
        submit_dir=FOLDER,
        now_s=NOW,
    )


def request(*lines: str, **more: object) -> JobRequest:
    return parse(*lines, **more).request  # type: ignore[arg-type]


def refusal(*lines: str, **more: object) -> SubmissionError:
    with pytest.raises(SubmissionError) as error:
        parse(*lines, **more)  # type: ignore[arg-type]
    return error.value


def test_a_script_that_asks_for_nothing() -> None:
    assert request() == JobRequest(
        name="train.sh", command=SCRIPT, work_dir=FOLDER, submit_dir=FOLDER, arguments=("-x",)
    )


def test_a_script_that_asks_for_much() -> None:
    found = request(
        "-J big -p gpu -A Team --qos=high --comment='a b' --time=1-0 --signal=B:USR1@120 --requeue",
        "-n 2 -c 4 --mem=8G --gres=gpu:a100:2 --array=0-7%2 -o %x-%A_%a.log -e /tmp/err -D run --open-mode=append",
        "--begin=now+1hour --deadline=now+1day --nice=5 --kill-on-invalid-dep=yes -d afterok:7 --hold",
    )
    assert (found.name, found.partition, found.account, found.qos, found.comment) == (
        "big",
        "gpu",
        "team",
        "high",
        "a b",
    )
    assert (found.time_limit_s, found.nice, found.hold, found.requeue) == (86400, 5, True, True)
    assert found.signal is not None
    assert (found.signal.number, found.signal.before_s, found.signal.to_batch) == (10, 120, True)
    assert (found.task_count, found.cpus, found.memory_bytes) == (2, 8, 8 * GIB)
    assert (found.gpus, found.gpu_type) == (2, "a100")
    assert found.array is not None
    assert (list(found.array), found.array.throttle) == (list(range(8)), 2)
    assert (found.work_dir, found.stdout, found.stderr) == (
        f"{FOLDER}/run",
        f"{FOLDER}/run/%x-%A_%a.log",
        "/tmp/err",
    )
    assert (found.stdin, found.append) == ("", True)
    assert (found.begin_s, found.deadline_s) == (NOW + 3600, NOW + 86400)
    assert (found.dependency, found.kill_on_invalid_dependency) == ("afterok:7", True)
    assert found.notes == ()
    assert JobRequest.from_json(found.to_json()) == found


def test_the_command_line_comes_before_the_environment_and_this_before_the_script() -> None:
    lines = ("--time=5 --partition=a --comment=script -n 2",)
    environment = {"SBATCH_TIMELIMIT": "10", "SBATCH_PARTITION": "b", "SLURM_NTASKS": "9"}
    found = request(*lines, environment=environment, options=["-t", "20"])
    assert (found.time_limit_s, found.partition, found.comment, found.ntasks) == (1200, "b", "script", 2)


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("SBATCH_ACCOUNT", "Me", "account", "me"),
        ("SBATCH_ARRAY_INX", "", "array", None),
        ("SBATCH_DISTRIBUTION", "block", "variables", (("DISTRIBUTION", "block"),)),
        ("SBATCH_ERROR", "e", "stderr", f"{FOLDER}/e"),
        ("SBATCH_EXCLUSIVE", "", "exclusive", True),
        ("SBATCH_EXPORT", "NONE", "export", "NONE"),
        ("SBATCH_GPUS", "2", "gpus", 2),
        ("SBATCH_GPUS_PER_NODE", "t4:1", "gpu_type", "t4"),
        ("SBATCH_GRES", "gpu", "gpus", 1),
        ("SBATCH_INPUT", "i", "stdin", f"{FOLDER}/i"),
        ("SBATCH_JOB_NAME", "n", "name", "n"),
        ("SBATCH_MEM_PER_NODE", "1G", "memory_per_node", GIB),
        ("SBATCH_MEM_PER_CPU", "1G", "memory_per_cpu", GIB),
        ("SBATCH_NO_REQUEUE", "yes", "requeue", False),
        ("SBATCH_REQUEUE", "1", "requeue", True),
        ("SBATCH_REQUEUE", "0", "requeue", None),
        ("SBATCH_OPEN_MODE", "append", "append", True),
        ("SBATCH_OUTPUT", "o", "stdout", f"{FOLDER}/o"),
        ("SBATCH_OVERCOMMIT", "", "overcommit", True),
        ("SBATCH_PARTITION", "p", "partition", "p"),
        ("SBATCH_QOS", "q", "qos", "q"),
        ("SBATCH_TIMELIMIT", "UNLIMITED", "time_limit_s", math.inf),
        ("SLURM_HINT", "multithread", "variables", (("HINT", "multithread"),)),
    ],
)
def test_variables(variable: str, value: str, name: str, expected: object) -> None:
    assert getattr(request(environment={variable: value}), name) == expected


def test_every_option_is_dealt_with() -> None:
    dealt_with = READERS.keys() | PASSED_OVER.keys() | WITHOUT_EFFECT
    assert dealt_with == set(OPTION_NAMES)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("--partitoin=x", "line 3: sbatch has no option --partitoin", "Did you mean partition?"),
        ("--time=soon", "line 3: Invalid --time specification: 'soon' is no time", "Try 30 (minutes)"),
        ("-n 0", "line 3: Invalid --ntasks specification: Invalid numeric value '0'", "from 1 on"),
        ("-J Big simulation", "line 3: 'simulation' is not an option", "quotes"),
        ("--nodes=2", "line 3: --nodes=2: this machine is one node; several nodes need Slurm", ""),
        ("hetjob", "line 3: a heterogeneous job", ""),
        (
            "--mem=1G --mem-per-cpu=1G",
            "line 3: --mem-per-cpu=1G: --mem, --mem-per-cpu, and --mem-per-gpu are",
            "",
        ),
        ("--gpus-per-task=1", "line 3: --gpus-per-task=1: Invalid generic resource (gres)", ""),
        ("--bb=x", "line 3: Invalid --bb specification: burst buffers need Slurm", "in the script"),
        ("-M other", "line 3: Invalid --clusters specification: there is no cluster 'other' here", "'local'"),
        ("--deadline=now-1hour", "line 3: --deadline=now-1hour: this moment has passed", ""),
        ("-w n[1-2]", "line 3: --nodelist=n[1-2]: this machine is one node", ""),
        ("--nice=-5", "line 3: Invalid --nice specification: Invalid --nice value", "administrator"),
    ],
)
def test_a_wrong_directive_is_named_by_its_line(line: str, message: str, hint: str) -> None:
    error = refusal("-J fine", line)
    assert error.message.startswith(message)
    assert hint in error.hint
    assert error.said == error.message


def test_elsewhere_the_variable_is_named_or_the_option_alone() -> None:
    assert refusal(environment={"SBATCH_TIMELIMIT": "x"}).message.startswith(
        "SBATCH_TIMELIMIT: Invalid --time"
    )
    assert refusal(options=["--time=x"]).message.startswith("Invalid --time specification: 'x'")
    assert "no option --nope" in refusal(options=["--nope"]).message


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "empty"),
        (" \n", "only whitespace"),
        ("\0#!/bin/sh", "only whitespace"),
        ("true\n", "does not look like a batch script"),
        ("#!/bin/sh\n\0", "NULL character"),
        ("#!/bin/sh\r\ntrue\r\n", "DOS line breaks"),
        ("#!/bin/sh\n" + "#" * (4 << 20), "too long"),
    ],
)
def test_what_is_no_script(script: str, words: str) -> None:
    assert words in refusal(script=script).message


@pytest.mark.parametrize("nodes", ["1", "1-1", "1-4", "-3", "0-1", "1,2,4", "1-9:4"])
def test_one_node_is_enough_for(nodes: str) -> None:
    assert request(f"--nodes={nodes}").cpus == 1


def test_no_more_nodes_are_taken_than_there_are_tasks() -> None:
    assert request("-N 4 -n 1").task_count == 1


@pytest.mark.parametrize(
    ("line", "cpus", "tasks"),
    [
        ("", 1, None),
        ("-n 2 -c 3", 6, 2),
        ("--ntasks-per-node=3", 3, 3),
        ("-n 2 --ntasks-per-node=4", 2, 2),
        ("-n 4 -O", 1, 4),
        ("--mincpus=4", 4, None),
        ("-n 8 --mincpus=4", 8, 8),
        ("--gpus=2 --cpus-per-gpu=3", 6, None),
        ("--gpus=2 --ntasks-per-gpu=2", 4, 4),
        ("-N1 -B 1:2:2", 4, 4),
        ("-N1 --sockets-per-node=2 --threads-per-core=2", 4, 4),
        ("--sockets-per-node=2", 1, None),
        ("--tres-per-task=cpu=4,gres/gpu:1 -n 2", 8, 2),
    ],
)
def test_cpus(line: str, cpus: int, tasks: int | None) -> None:
    found = request(line) if line else request()
    assert (found.cpus, found.ntasks) == (cpus, tasks)


def test_what_each_task_gets_by_one_option() -> None:
    found = request("--tres-per-task=cpu=4,gres/gpu:t4:2 -n 2")
    assert (found.cpus_per_task, found.gpus, found.gpu_type) == (4, 4, "t4")
    assert ("GPUS_PER_TASK", "t4:2") in found.variables


@pytest.mark.parametrize(
    ("line", "memory"),
    [
        ("--mem=0", 0),
        ("--mem-per-cpu=0", 0),
        ("--mem-per-cpu=1G -n 3", 3 * GIB),
        ("--mem-per-gpu=1G --gpus=2", 2 * GIB),
        ("-n 3", None),
    ],
)
def test_memory(line: str, memory: int | None) -> None:
    assert request(line).memory_bytes == memory


def test_memory_of_the_environment_gives_way() -> None:
    found = request("--mem=1G", environment={"SBATCH_MEM_PER_CPU": "2G"})
    assert (found.memory_per_node, found.memory_per_cpu) == (GIB, None)
    assert "exclusive" in refusal("--mem=1G", options=["--mem-per-cpu=1G"]).message


def test_notes_on_what_is_passed_over() -> None:
    found = request(
        "--mail-type=END --mail-user=me", "-C a100 --licenses=x", environment={"SBATCH_RESERVATION": "r"}
    )
    assert set(found.notes) == {
        "line 2: --mail-type was passed over: no mail is sent from here.",
        "line 3: --constraint was passed over: this machine has no features to choose nodes by.",
        "line 3: --licenses was passed over: licences are not counted here.",
        "SBATCH_RESERVATION: --reservation was passed over: there are no reservations here.",
    }


def test_no_notes_on_what_changes_nothing() -> None:
    found = request(
        "--mail-user=me --mail-type=NONE --wckey=x --contiguous -k --priority=5 -v --distribution=block",
        "--export=NONE --get-user-env --switches=1 --spread-job",
    )
    assert found.notes == ()
    assert "environment of its submission" in request("--get-user-env").notes[0]


def test_directives_of_other_systems_are_told() -> None:
    script = "#!/bin/sh\n#SBATCH -n 2\n#PBS -l nodes=2\n#PBS -N x\ntrue\n"
    assert request(script=script).notes == (
        "line 3: #PBS lines were passed over: write them as #SBATCH lines.",
    )
    assert request(script=script, options=["--ignore-pbs"]).notes == ()
    assert request(script="#!/bin/sh\ntrue\n#PBS -N x\n").notes == ()


def test_files_get_the_folder_in_front_and_stay_as_they_are() -> None:
    found = request("-D /data/50%u -o %j/%x.out -i ../in -e none")
    assert (found.work_dir, found.submit_dir) == ("/data/50%u", FOLDER)
    assert (found.stdout, found.stderr, found.stdin) == (
        "/data/50%u/%j/%x.out",
        "/dev/null",
        "/data/50%u/../in",
    )


def test_a_wrapped_command() -> None:
    found = parse(script="", path="", options=["--wrap", "echo hello", "-n", "2"])
    assert (found.request.name, found.request.command, found.request.script_is_wrapped) == ("wrap", "", True)
    assert (found.request.ntasks, found.flags.wrap) == (2, "echo hello")
    from_stdin = parse(path="").request
    assert (from_stdin.name, from_stdin.command) == ("sbatch", "")


def test_flags_of_the_command() -> None:
    flags, rest = flags_of(["--parsable", "-WQ", "--test-only", "run.sh", "--help"])
    assert rest == ("run.sh", "--help")
    assert (flags.parsable, flags.wait, flags.quiet, flags.test_only, flags.help) == (True,) * 4 + (False,)
    in_script = parse("--parsable --wait --quiet --wrap=x --help", environment={"SBATCH_WAIT": "no"}).flags
    assert (in_script.parsable, in_script.wait) == (True, False)
    assert (in_script.quiet, in_script.wrap, in_script.help) == (False, None, False)
    assert parse(environment={"SBATCH_WAIT": ""}).flags.wait


def test_what_sbatch_itself_tells_the_job() -> None:
    found = request("--array=1,3-9:2 -m plane=4 -n 4 --open-mode=t --gpus=t4:2 --cpus-per-gpu=1 --export=A=1")
    assert dict(found.variables) == {
        "ARRAY_TASK_STEP": "2",
        "CPUS_PER_GPU": "1",
        "DISTRIBUTION": "plane",
        "DIST_PLANESIZE": "4",
        "GET_USER_ENV": "1",
        "GPUS": "t4:2",
        "OPEN_MODE": "t",
    }
    assert JobRequest.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "name", ["ntasks", "mem", "time", "nodes", "nice", "array", "gpus", "begin", "signal"]
)
def test_absurd_numbers_are_refused(name: str) -> None:
    assert f"Invalid --{name} specification" in refusal(f"--{name}=" + "9" * 5000).message


VALUES = st.text(st.sampled_from("0123456789abgpunow:,%+-=. @/KGMx'"), max_size=12)


@given(st.sampled_from([name for name in OPTION_NAMES if name != "wrap"]), VALUES)
def test_any_value_is_read_or_refused(name: str, value: str) -> None:
    try:
        found = request(options=[f"--{name}={value}"])
    except SubmissionError:
        return
    assert JobRequest.from_json(found.to_json()) == found
