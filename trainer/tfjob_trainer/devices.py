"""What a run trains on: the devices, and TensorFlow's strategy over them.

CUDA_VISIBLE_DEVICES is read for messages and never changed: the variable is Slurm's way to say which GPUs
are ours.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from tfjob_trainer.errors import TrainerError, UsageError

GPU_VARIABLES = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class Choice:
    """The devices of this process that are to be used; TensorFlow has done nothing with them yet."""

    kind: str  # "cpu" or "gpu"
    count: int
    description: str
    capabilities: tuple[tuple[int, int], ...]  # compute capability of each GPU


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of all processes, and the strategy that spreads the work over them."""

    strategy: Any
    kind: str  # "cpu" or "gpu"
    replicas: int  # in all
    workers: int
    description: str
    capabilities: tuple[tuple[int, int], ...]  # compute capability of each GPU in use


def open_devices(asked: str, replicas: int | None, environment: Mapping[str, str] = os.environ) -> Devices:
    """Choose devices as asked ("auto", "cpu", "gpu") and make the strategy, before all other TensorFlow."""
    choice = choose(asked, replicas, environment)
    return Devices(
        strategy=_strategy(choice.kind.upper(), choice.count),
        kind=choice.kind,
        replicas=choice.count,
        workers=1,
        description=choice.description,
        capabilities=choice.capabilities,
    )


def choose(asked: str, replicas: int | None, environment: Mapping[str, str] = os.environ) -> Choice:
    """Choose the devices of this process. Raises TrainerError where those that Slurm gave cannot be used."""
    _limit_threads(environment)
    gpus = tf.config.list_physical_devices("GPU") if asked != "cpu" else []
    if asked != "cpu":
        _check_gpus(asked, len(gpus), environment)
    return _choose_gpus(gpus, replicas) if gpus else _choose_cpus(replicas or 1)


def given_gpus(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs that Slurm gave to this process, by its own names; empty where it gave none."""
    for variable in GPU_VARIABLES:
        names = tuple(name.strip() for name in environment.get(variable, "").split(",") if name.strip())
        if names and names[0] not in ("-1", "NoDevFiles", "none", "void"):
            return names
    return ()


def _check_gpus(asked: str, seen: int, environment: Mapping[str, str]) -> None:
    """Refuse to train on CPUs in silence while GPUs are held."""
    given = given_gpus(environment)
    if len(given) > seen:
        variables = ", ".join(f"{name}={environment[name]}" for name in GPU_VARIABLES if name in environment)
        raise TrainerError(
            f"this job was given {len(given)} GPU(s) ({variables}) but TensorFlow {tf.__version__} sees "
            f"{seen}: {_why_unseen()}. To train without them: --device cpu (DEVICE=cpu in the job script)"
        )
    if asked == "gpu" and not seen:
        raise UsageError(
            f"--device gpu, but there is no GPU here: {_why_unseen()}. "
            "Ask Slurm for one (sbatch --gpus-per-node=1)"
        )


def _why_unseen() -> str:
    """The likeliest cause, from what can be looked at without a GPU library."""
    if not tf.test.is_built_with_gpu_support():
        return "this TensorFlow is built without GPU support (tensorflow-cpu); install 'tensorflow[and-cuda]'"
    if not Path("/proc/driver/nvidia/version").exists() and not Path("/dev/kfd").exists():
        return "no GPU driver is loaded on this node"
    return (
        "the driver is there, so CUDA's libraries are missing or do not fit (pip install "
        "'tensorflow[and-cuda]', or the site's CUDA module; TF_CPP_MIN_LOG_LEVEL=0 shows what TensorFlow "
        "looked for), or another CUDA_VISIBLE_DEVICES was set in the job script"
    )


def _limit_threads(environment: Mapping[str, str]) -> None:
    """Use the job's CPUs, where TensorFlow would start a thread for each CPU of the node."""
    text = environment.get("SLURM_CPUS_PER_TASK", "")
    if text.isdecimal() and int(text):
        tf.config.threading.set_intra_op_parallelism_threads(int(text))
        tf.config.threading.set_inter_op_parallelism_threads(max(2, int(text)))


def _choose_gpus(gpus: list[Any], replicas: int | None) -> Choice:
    count = replicas or len(gpus)
    if count > len(gpus):
        raise UsageError(f"--replicas {count}, but there are {len(gpus)} GPU(s) here")
    used = gpus[:count]
    tf.config.set_visible_devices(used, "GPU")
    for gpu in used:
        tf.config.experimental.set_memory_growth(gpu, True)  # else memory figures show all of it in use
    details = [tf.config.experimental.get_device_details(gpu) for gpu in used]
    names = sorted({str(detail.get("device_name", "GPU")) for detail in details})
    capabilities = tuple(tuple(detail.get("compute_capability", (0, 0))) for detail in details)
    return Choice("gpu", count, f"{count} × {' / '.join(names)}", capabilities)


def _choose_cpus(count: int) -> Choice:
    tf.config.set_visible_devices([], "GPU")
    if count > 1:
        logical = [tf.config.LogicalDeviceConfiguration()] * count
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
    threads = tf.config.threading.get_intra_op_parallelism_threads() or len(os.sched_getaffinity(0))
    parts = f" in {count} logical devices" if count > 1 else ""
    return Choice("cpu", count, f"CPU, {threads} thread(s){parts}", ())


def _strategy(kind: str, count: int) -> Any:
    if count == 1:
        return tf.distribute.get_strategy()
    tf.get_logger().setLevel("ERROR")  # it warns that CPUs do not use NCCL
    return tf.distribute.MirroredStrategy([f"{kind}:{index}" for index in range(count)])
