"""The parts of the trainer that do not need TensorFlow."""

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.trainer.running import environment, run
from tfjob_trainer import attempt, job, options, state, usage
from tfjob_trainer.errors import UsageError
from tfjob_trainer.state import State
from tfjob_trainer.stop import SIGNALS, StopRequest
from tfjob_trainer.telemetry import Telemetry, next_attempt, plain


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "0"], "--epochs: 0 is out of range: a whole number at least 1"),
        (["--epochs", "many"], "--epochs: 'many' is not a whole number"),
        (["--epochs", "1.5"], "--epochs: '1.5' is not a whole number"),
        (["--learning-rate", "0"], "--learning-rate: 0 is out of range: a number above 0"),
        (["--learning-rate", "nan"], "--learning-rate: nan is out of range"),
        (["--model", "resnet"], "--model: resnet is not known; the nearest: "),
        (["--batch-size", "64", "--batch-per-replica", "32"], "--batch-size and --batch-per-replica exclude"),
        (["--weight-decay", "0.1"], "--weight-decay goes with --optimizer sgd or adamw"),
        (["--decay-epochs", "30,20"], "--decay-epochs: 30,20: the epochs have to rise"),
        (["--precision", "float16"], "invalid choice: 'float16'"),
        (["--batchsize", "3"], "unrecognized arguments: --batchsize"),
    ],
)
def test_wrong_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_does_not_wait_for_tensorflow(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--model-dir" in done.stdout
    assert time.monotonic() - began < 1.5  # 0.08 s on an idle machine; TensorFlow alone takes 2 s


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    """-I and -S leave the standard library only."""
    trainer = Path(job.__file__).parent
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(trainer), "--model-dir", str(tmp_path / "run")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert "does not have tensorflow, scikit-learn" in done.stderr
    assert "-m pip install tensorflow scikit-learn" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot make the run folder"):
        attempt.open_folder(
            options.parse(["--model-dir", str(tmp_path / "file")]), job.from_environment({}), {}
        )


def test_the_default_run_folder(tmp_path: Path) -> None:
    ours = job.from_environment({"SLURM_JOB_ID": "12"})
    folder = attempt.open_folder(options.parse([]), ours, {"TFJOB_RUNS": str(tmp_path / "scratch")})
    assert folder == tmp_path / "scratch" / "train-12"
    assert (folder / "checkpoints").is_dir()


@pytest.mark.parametrize(
    ("variables", "job_id", "folder"),
    [
        ({}, None, None),
        ({"SLURM_JOB_ID": "12", "SLURM_JOB_NAME": "a/b é"}, "12", "a_b__-12"),
        (
            {"SLURM_JOB_ID": "15", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"},
            "12_3",
            "train-12_3",
        ),
    ],
)
def test_the_job_of_an_environment(variables: dict[str, str], job_id: str | None, folder: str | None) -> None:
    ours = job.from_environment(variables)
    assert (ours.job_id, ours.folder_name, ours.restart) == (job_id, folder, 0)


def test_figures_that_json_cannot_hold() -> None:
    values = {"a": math.nan, "b": [math.inf, -math.inf, 1.5], "c": Path("/x"), "d": None}
    assert plain(values) == {"a": "NaN", "b": ["Infinity", "-Infinity", 1.5], "c": "/x", "d": None}


def test_telemetry_counts_attempts_and_merges_status(tmp_path: Path) -> None:
    assert next_attempt(tmp_path) == 0
    for number in range(11):
        Telemetry(tmp_path, number).event("step", 3, loss=math.nan)
    assert next_attempt(tmp_path) == 11
    line = json.loads((tmp_path / "telemetry-10-0.jsonl").read_text())
    assert (line["version"], line["kind"], line["step"], line["loss"]) == (1, "step", 3, "NaN")
    telemetry = Telemetry(tmp_path, 11)
    telemetry.status(status="running", loss=0.5)
    telemetry.status(step=7)
    latest = json.loads((tmp_path / "status.json").read_text())
    assert (latest["loss"], latest["step"], latest["attempt"]) == (0.5, 7, 11)


def test_a_disk_that_fails_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    telemetry = Telemetry(folder, 0)
    (folder / "telemetry-0-0.jsonl").unlink()
    folder.rmdir()
    telemetry.status(step=1)
    telemetry.status(step=2)
    assert capsys.readouterr().err.count("cannot write telemetry") == 1


def test_the_state_is_read_as_written(tmp_path: Path) -> None:
    assert state.read(tmp_path) is None
    written = State("stopped", 7, 1, "12_3", 2, 4, 1.5, message='a "b"', metrics=None)
    state.write(tmp_path, written)
    assert state.read(tmp_path) == written
    lines = (tmp_path / "state.json").read_text().splitlines()
    assert ' "status": "stopped",' in lines
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "sta'])
def test_a_foreign_state_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(UsageError, match=r"state\.json"):
        state.read(tmp_path)


def test_the_first_stop_signal_is_kept() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    stop = StopRequest()
    try:
        stop.install()
        signal.raise_signal(signal.SIGUSR2)
        signal.raise_signal(signal.SIGTERM)
        assert stop.received == "SIGUSR2"
        stop.ignore()
        signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_what_a_process_uses(tmp_path: Path) -> None:
    taken: list[dict[str, object]] = []
    sampler = usage.Sampler(tmp_path, taken.append, gpus=0, every_s=0.01)
    sampler.start()
    deadline = time.monotonic() + 10
    while not taken and time.monotonic() < deadline:
        time.sleep(0.01)
    sampler.end()
    one = sampler.sample()
    assert one["rss_bytes"] > 1_000_000
    assert one["rss_peak_bytes"] >= one["rss_bytes"]
    assert one["disk_free_bytes"] > 0
    assert one["cpu_percent"] >= 0
    assert set(taken[0]) == set(one)


def test_gpus_by_what_cuda_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML knows all GPUs of a node; ours are the ones in CUDA_VISIBLE_DEVICES. What one can't tell is left out."""

    class Nvml:
        NVML_TEMPERATURE_GPU = 0

        def __getattr__(self, name: str) -> Callable[..., object]:
            def ask(handle: object = None, *_: object) -> object:
                if name == "nvmlDeviceGetUtilizationRates" and handle == "uuid GPU-b":
                    raise RuntimeError("Not Supported")
                answers: dict[str, object] = {
                    "nvmlDeviceGetHandleByIndex": f"index {handle}",
                    "nvmlDeviceGetHandleByUUID": f"uuid {handle.decode() if isinstance(handle, bytes) else ''}",
                    "nvmlDeviceGetUUID": f"of {handle}",
                    "nvmlDeviceGetName": b"A100",
                    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97),
                    "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=5, total=9),
                    "nvmlDeviceGetPowerUsage": 250_500,
                    "nvmlDeviceGetTemperature": 61,
                }
                return answers.get(name)

            return ask

    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    first, second = usage.Gpus(2, {"CUDA_VISIBLE_DEVICES": "3,GPU-b"}).sample()
    assert first == {
        "index": 0,
        "uuid": "of index 3",
        "name": "A100",
        "utilization_percent": 97,
        "memory_used_bytes": 5,
        "memory_total_bytes": 9,
        "power_w": 250.5,
        "temperature_c": 61,
    }
    assert second["uuid"] == "of uuid GPU-b"
    assert "utilization_percent" not in second
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert usage.Gpus(1, {}).sample() == [{"index": 0}]
