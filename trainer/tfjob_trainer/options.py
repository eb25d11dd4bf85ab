"""The options of `tfjob-train`, checked before TensorFlow is imported."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

MODELS = ("digits",)
DEVICES = ("auto", "cpu", "gpu")
PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")

_EPILOG = """\
A run lives in its run folder: checkpoints/, tensorboard/, model.keras, state.json, run.json, status.json and
telemetry-*.jsonl. The same command on the same folder goes on at the step where it was stopped; on a run that
is complete it says so and trains nothing. SIGTERM, SIGUSR1 and SIGUSR2 end the step, save and stop.

exit codes: 0 completed or stopped by a signal (state.json tells which), 1 failed, 2 wrong use
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. None: to be chosen by what is found."""

    model: str
    epochs: int
    batch_size: int  # examples per step over all replicas
    learning_rate: float
    seed: int
    device: str
    replicas: int | None
    precision: str
    model_dir: Path | None
    log_steps: int
    checkpoint_steps: int
    checkpoint_minutes: float
    check: bool


Number = TypeVar("Number", int, float)


def _within(
    convert: Callable[[str], Number], low: Number, high: Number, *, open_low: bool = False
) -> Callable[[str], Number]:
    """An argparse type: a number from `low` to `high` (above `low` where `open_low`)."""

    def parse(text: str) -> Number:
        kind = "a whole number" if convert is int else "a number"
        try:
            value = convert(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind}") from None
        if not math.isfinite(value) or value > high or value < low or (open_low and value == low):
            bound = f"above {low}" if open_low else f"at least {low}"
            raise argparse.ArgumentTypeError(f"{text} is out of range: {kind} {bound} and at most {high}")
        return value

    return parse


def make_parser() -> argparse.ArgumentParser:
    """The command line of `tfjob-train`."""
    parser = argparse.ArgumentParser(
        prog="tfjob-train",
        usage="tfjob-train [OPTION …]   (tfjob-train --help lists them)",
        description="Train a Keras model on the devices of this job, safely against limits and requeues.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_training(parser)
    _add_devices(parser)
    _add_run(parser)
    return parser


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    add = group.add_argument
    add("--model", choices=MODELS, default="digits", help="what to train: a small conv net on 8x8 digits")
    add("--epochs", type=_within(int, 1, 1_000_000), default=12, metavar="N", help="default 12")
    add(
        "--batch-size",
        type=_within(int, 1, 1_000_000),
        default=64,
        metavar="N",
        help="examples per step over all replicas, default 64",
    )
    add(
        "--learning-rate",
        type=_within(float, 0.0, 100.0, open_low=True),
        default=1e-3,
        metavar="X",
        help="of Adam, default 0.001",
    )
    add(
        "--seed",
        type=_within(int, 0, 2**31 - 1),
        default=0,
        metavar="N",
        help="of weights, dropout and data order, default 0",
    )


def _add_devices(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("devices")
    add = group.add_argument
    add(
        "--device",
        choices=DEVICES,
        default="auto",
        help="auto: GPUs where the job has some; cpu: leave GPUs alone; default auto",
    )
    add(
        "--replicas",
        type=_within(int, 1, 64),
        metavar="N",
        help="copies of the model (MirroredStrategy above 1): default all GPUs, or 1 on CPUs",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="auto: mixed_bfloat16 from compute capability 8, else float32",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run")
    add = group.add_argument
    add(
        "--model-dir",
        type=Path,
        metavar="FOLDER",
        help="run folder; default <job name>-<job id> in $TFJOB_RUNS, else in ./runs",
    )
    add(
        "--log-steps",
        type=_within(int, 1, 10_000_000),
        default=50,
        metavar="N",
        help="steps between two log lines, default 50",
    )
    add(
        "--checkpoint-steps",
        type=_within(int, 1, 10_000_000),
        default=200,
        metavar="N",
        help="steps between two checkpoints, default 200",
    )
    add(
        "--checkpoint-minutes",
        type=_within(float, 0.0, 10_000.0, open_low=True),
        default=10.0,
        metavar="X",
        help="save at the latest after this time, default 10",
    )
    add("--check", action="store_true", help="say whether TensorFlow is here, train nothing")


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The options in `arguments` (default: the command line); a wrong one ends the process with code 2."""
    return Options(**vars(make_parser().parse_args(arguments)))
