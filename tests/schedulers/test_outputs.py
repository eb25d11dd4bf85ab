"""What sinfo, sprio, sstat and sbatch print, and how scancel and scontrol refuse."""

import math

import pytest

from tfjobtui.model.ids import JobId
from tfjobtui.model.node import NodeState
from tfjobtui.schedulers.scheduler import PriorityFactor, Target
from tfjobtui.schedulers.slurm.failures import known_failure, last_words
from tfjobtui.schedulers.slurm.refusals import Complaint, complaints, explained, is_about
from tfjobtui.schedulers.slurm.sbatch import parse_answer
from tfjobtui.schedulers.slurm.sinfo import parse_nodes, parse_partitions
from tfjobtui.schedulers.slurm.sprio import parse_factors
from tfjobtui.schedulers.slurm.sstat import parse_steps


def rows(*values: tuple[str, ...]) -> str:
    return "".join("\x1f".join(row) + "\x1e\n" for row in values)


def test_a_node_counts_once_whatever_its_partitions_and_the_length_of_its_name() -> None:
    name = "a-host-name-of-more-than-twenty-characters"
    gres, used = "gpu:a100:4(S:0-1)", "gpu:a100:3(IDX:0-2)"
    nodes = parse_nodes(
        rows(
            (name, "gpu*", "mixed", "6/10/0/16", "256000", "8192", gres, used, "a100", "none"),
            (name, "short", "mixed", "6/10/0/16", "256000", "8192", gres, used, "a100", "none"),
            (
                "cpu01",
                "short",
                "drained*",
                "0/0/16/16",
                "64000",
                "0",
                "(null)",
                "gpu:0",
                "(null)",
                "bad disk",
            ),
        )
    )
    assert [node.name for node in nodes] == [name, "cpu01"]
    assert nodes[0].partitions == ("gpu", "short")
    assert (nodes[0].gpus.count, nodes[0].gpus_used.count, nodes[0].gpus_free) == (4, 3, 1)
    assert sum(node.gpus.count for node in nodes) == 4
    assert (nodes[0].cpus_used, nodes[0].cpus, nodes[0].memory_used_bytes) == (6, 16, 8 << 30)
    assert [node.state.takes_jobs for node in nodes] == [True, False]
    assert [node.reason for node in nodes] == ["", "bad disk"]


def test_nodes_of_several_clusters_may_have_one_name() -> None:
    row = ("n1", "gpu*", "idle", "0/8/0/8", "1000", "0", "gpu:2", "gpu:0", "(null)", "none")
    nodes = parse_nodes(f"CLUSTER: slate\n{rows(row)}\nCLUSTER: chalk\n{rows(row, row)}")
    assert [(node.cluster, node.name) for node in nodes] == [("slate", "n1"), ("chalk", "n1")]


@pytest.mark.parametrize(
    ("text", "words", "takes_jobs"),
    [
        ("idle", {"IDLE"}, True),
        ("mix", {"MIXED"}, True),
        ("mixed-", {"MIXED", "PLANNED"}, True),
        ("IDLE+CLOUD+POWERED_DOWN", {"IDLE", "CLOUD", "POWERED_DOWN"}, True),
        ("idle~", {"IDLE", "POWERED_DOWN"}, True),
        ("MIXED+DRAIN+PLANNED*", {"MIXED", "DRAIN", "PLANNED", "NOT_RESPONDING"}, False),
        ("drng", {"DRAIN"}, False),
        ("down*", {"DOWN", "NOT_RESPONDING"}, False),
        ("inval", {"INVAL"}, False),
        ("alloc$", {"ALLOCATED", "MAINT"}, False),
    ],
)
def test_the_states_of_a_node(text: str, words: set[str], takes_jobs: bool) -> None:
    state = NodeState.of(text)
    assert state.words == words
    assert state.takes_jobs == takes_jobs


@pytest.mark.parametrize(
    ("gpus", "used", "free"),
    [
        ("gpu:a100:4", "gpu:a100:3(IDX:0-2)", {"a100": 1}),
        ("gpu:a100:4,gpu:v100:2", "gpu:(null):5(IDX:0-4)", {"a100": 0, "v100": 1}),
        ("gpu:4", "gpu:(null):1(IDX:0)", {None: 3}),
        ("(null)", "gpu:0", {}),
    ],
)
def test_free_gpus_by_type(gpus: str, used: str, free: dict[str | None, int]) -> None:
    row = ("n1", "gpu", "mixed", "0/8/0/8", "1000", "0", gpus, used, "(null)", "none")
    (node,) = parse_nodes(rows(row))
    assert dict(node.gpus_free_by_type) == free
    assert sum(free.values()) == node.gpus_free


def test_partitions() -> None:
    text = "CLUSTER: slate\n" + rows(
        ("gpu*", "up", "7-00:00:00", "2", "gpu:a100:4"),
        ("gpu*", "up", "7-00:00:00", "1", "gpu:v100:2"),
        ("long", "up", "infinite", "2", "(null)"),
        ("closed", "down", "n/a", "2", "(null)"),
    )
    gpu, long, closed = parse_partitions(text)
    assert (gpu.name, gpu.is_default, gpu.is_up, gpu.node_count) == ("gpu", True, True, 3)
    assert gpu.gpu_types == (("a100", 8), ("v100", 2))
    assert long.max_time_s == math.inf
    assert (closed.is_up, closed.max_time_s) == (False, None)


def test_priority_factors() -> None:
    text = rows(("9", "12", "0", "500", "107", "1000", "0", "0", "100", "cpu=3.00,gres/gpu=20.00"))
    factors = parse_factors(text)
    assert factors[0] == PriorityFactor("Partition", 1000)
    assert PriorityFactor("Nice", -100) in factors
    assert PriorityFactor("TRES gres/gpu", 20) in factors
    assert [factor.value for factor in factors] == sorted((f.value for f in factors), reverse=True)
    assert parse_factors("") == ()


def test_step_usage() -> None:
    text = (
        "123.extern|1|00:00:00|0|0|cpu=00:00:00,mem=0|cpu=00:00:00\n"
        "123.batch|1|00:01:30|412420K|1K|cpu=00:03:00,mem=842727424,gres/gpuutil=180,gres/gpumem=16E|\n"
        "123.0|8|00:00:10||||\n"
    )
    extern, batch, zero = parse_steps(text)
    assert (extern.step, extern.cpu_s, extern.peak_rss_bytes) == ("extern", 0, 0)
    assert (batch.step, batch.cpu_s, batch.peak_rss_bytes) == ("batch", 180, 412420 * 1024)
    assert (batch.memory_bytes, batch.gpu_percent, batch.gpu_memory_bytes) == (842727424, 180, None)
    assert (zero.cpu_s, zero.peak_rss_bytes, zero.memory_bytes) == (80, None, None)


def test_no_figures_are_not_zero() -> None:
    assert parse_steps("JobID|NTasks|AveCPU|MaxRSS|AveRSS|TRESUsageInTot|TRESUsageInMax\n") == ()


@pytest.mark.parametrize(
    ("text", "number", "cluster", "remarks"),
    [
        ("Submitted batch job 6006 on cluster slate\n", 6006, "slate", ""),
        ("75168;slate\n", 75168, "slate", ""),
        ("123\n", 123, None, ""),
        (
            "-----\nWelcome to the big one, 2024\n--> Checking queue... OK\n99\n75168\n",
            75168,
            None,
            "-----\nWelcome to the big one, 2024\n--> Checking queue... OK\n99",
        ),
        ("Submitted batch job 7\nHave a nice day\n", 7, None, "Have a nice day"),
    ],
)
def test_ids_of_submissions(text: str, number: int, cluster: str | None, remarks: str) -> None:
    taken = parse_answer(text)
    assert taken is not None
    assert (taken.id, taken.cluster, taken.remarks) == (JobId(number), cluster, remarks)


def test_no_id() -> None:
    assert parse_answer("Welcome\n\n") is None


SAID = """\
scancel: Terminating job 25
scancel: error: Kill job error on job id 22_99: Invalid job id specified
scancel: error: Kill job error on job id 25: Access/permission denied
Invalid user id for job 26
slurm_suspend error: No error
22_2: Job has already finished
22_3: No error
23_1-3: Job is pending execution
Job 2_3 not found
"""


@pytest.mark.parametrize(
    "said",
    [  # `scontrol requeue 8` in 24.11.5 and in 26.05.5
        "8_1-2: No error\n8_3-6: Job is pending execution\n",
        "8_[1-2]: No error\n8_[3-6]: Job is pending execution\n",
    ],
)
def test_tasks_in_brackets_and_without(said: str) -> None:
    done, refused = complaints(said)
    assert (done.is_success, refused.is_success) == (True, False)
    assert refused.words == "Job is pending execution"
    for name, about in (("8_[1-2]", (True, False)), ("8_[3-6]", (False, True)), ("8", (True, True))):
        aim = Target(JobId.parse(name), None, "n", "u", None)
        assert (is_about(done, aim), is_about(refused, aim)) == about


def test_the_summary_of_a_refusal_in_newer_releases_is_about_nobody() -> None:
    said = (  # scontrol hold 999999,12 in 26.05.5
        "Invalid job id specified for job 999999\nJob has already finished for job 12\n"
        "slurm_suspend error:Job has already finished\n"
    )
    assert [complaint.about for complaint in complaints(said)] == ["999999", "12"]


def test_who_a_refusal_is_about() -> None:
    assert complaints(SAID) == (
        Complaint("22_99", "Invalid job id specified"),
        Complaint("25", "Access/permission denied"),
        Complaint("26", "Invalid user id"),
        Complaint("22_2", "Job has already finished"),
        Complaint("22_3", "No error"),
        Complaint("23_1-3", "Job is pending execution"),
        Complaint("2_3", "not found"),
    )


@pytest.mark.parametrize(
    ("about", "target", "yes"),
    [
        ("25", "25", True),
        ("25", "26", False),
        ("22_4", "22_[4-6]", True),
        ("22_3", "22_[4-6]", False),
        ("22_3", "22", True),
        ("22_3", "22_3", True),
        ("22_3", "22_4", False),
        ("23_1-3", "23_[1-3]", True),
        ("22_[4-6]", "22_[4-6%2]", True),
        ("8_[1]", "8_[2-4]", False),
        ("8_[1]", "8_1", True),
        ("8_[2-4]", "8_[1-4]", True),
        ("8_[2-4]", "8_3", True),
        ("8_[2-4]", "8_5", False),
        ("8_[2-4]", "8", True),
        ("8_[3-6%2]", "8_[5-9]", True),
        ("66_3-6", "66_4", True),
        ("66_1-2", "66_[3-6]", False),
        ("8_[1,...]", "8_[3-6]", False),
        ("8_[?]", "8_[3-6]", True),
        ("8_[?]", "8_3", False),
        ("22", "22_[4-6]", True),
        ("10+1", "10+1", True),
        ("10+1", "10+0", False),
        ("131", "128_3", True),
    ],
)
def test_matching_refusals(about: str, target: str, yes: bool) -> None:
    raw = 131 if target == "128_3" else None
    aim = Target(JobId.parse(target), None, "n", "u", None, raw_id=raw)
    assert is_about(Complaint(about, "x"), aim) is yes


@pytest.mark.parametrize(
    "words",
    [
        "Access/permission denied",
        "Invalid user id",
        "Job/step already completing or completed",
        "Job is pending execution",
        "Resource temporarily unavailable",
        "Only batch jobs are accepted or processed",
        "Requested operation is presently disabled",
        "sbatch: error: Batch job submission failed: Invalid partition name specified",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, …)",
        "sbatch: error: This does not look like a batch script.  The first",
    ],
)
def test_refusals_are_explained(words: str) -> None:
    told, _ = explained(words)
    assert told


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("slurm_load_jobs error: Socket timed out on send/recv operation", "too busy"),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "does not answer"),
        ("slurm_load_jobs error: Zero Bytes were transmitted or received", "broke off"),
        ("error: Slurm backup controller in standby mode", "standby"),
        ("sacct: error: Problem talking to the database: Connection refused", "accounting database"),
        ("Slurm accounting storage is disabled", "no accounting"),
        ("squeue: error: slurm_load_jobs error: Incompatible versions of client and server code", "version"),
        ("squeue: error: Munge encode failed: Failed to access socket", "munge"),
        ("slurm_load_jobs error: Protocol authentication error", "munge"),
        ("squeue: fatal: Could not establish a configuration source", "slurm.conf"),
        ("Rate limit exceeded, please retry momentarily", "how often"),
        ("Invalid user: NAME", "user"),
    ],
)
def test_failures_in_words(text: str, part: str) -> None:
    failure = known_failure(text)
    assert failure is not None
    assert part in failure.message


def test_the_line_that_says_most() -> None:
    assert last_words("") == ""
    text = "sbatch: hello\nsbatch: error: Batch job submission failed: x\nhave a nice day"
    assert last_words(text) == "Batch job submission failed: x"
