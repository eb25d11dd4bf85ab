"""The options of `tfjob-train`, checked before TensorFlow is imported."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tfjob_trainer import model_names, recipes
from tfjob_trainer.errors import UsageError

DEVICES = ("auto", "cpu", "gpu")
PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
OPTIMIZERS = ("adam", "adamw", "sgd")
SCHEDULES = ("constant", "cosine", "step")
MONITORED = ("val_accuracy", "val_loss")

_EPILOG = """\
A run lives in its run folder: checkpoints/, tensorboard/, best.keras, model.keras, state.json, run.json,
status.json and telemetry-*.jsonl. The same command on the same folder goes on at the step where it was stopped,
on as many GPUs and nodes as there are now; on a run that is complete it says so and trains nothing. SIGTERM,
SIGUSR1 and SIGUSR2 save and stop, on all nodes at the same step.

Several nodes: start one process per node with srun (--ntasks-per-node=1).

exit codes: 0 completed or stopped by a signal (state.json tells which), 1 failed, 2 wrong use
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for, a recipe filled in. None: to be chosen by what is found."""

    recipe: str | None
    model: str
    weights: str | None
    data_dir: Path | None
    image_size: int | None
    augment: bool | None
    skip_broken: bool
    epochs: int | None  # None: as many as the steps take
    steps: int | None  # of the whole run; None: all of the epochs
    batch_size: int | None  # examples per step over all replicas; None: batch_per_replica says it
    batch_per_replica: int | None
    accumulate: int
    optimizer: str
    learning_rate: float
    learning_rate_batch: int | None  # the learning rate is for this many examples per step; None: as it is
    momentum: float
    weight_decay: float
    schedule: str
    warmup_epochs: float
    decay_epochs: tuple[float, ...]
    decay_rate: float
    label_smoothing: float
    validate_epochs: int
    best: str
    go_on_with_nan: bool
    seed: int
    device: str
    replicas: int | None
    precision: str
    xla: bool
    peer_timeout: float  # seconds
    model_dir: Path | None
    log_steps: int
    checkpoint_steps: int | None
    checkpoint_minutes: float
    keep: int
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


def _model(text: str) -> str:
    try:
        return model_names.canonical(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--model ")) from None


def _epoch_list(text: str) -> tuple[float, ...]:
    try:
        epochs = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of epochs such as 30,60,80") from None
    if list(epochs) != sorted(set(epochs)) or not all(0 < epoch < math.inf for epoch in epochs):
        raise argparse.ArgumentTypeError(f"{text}: the epochs have to rise, and to be above 0")
    return epochs


def make_parser() -> argparse.ArgumentParser:
    """The command line of `tfjob-train`. Its defaults are None where a recipe may say something."""
    parser = argparse.ArgumentParser(
        prog="tfjob-train",
        usage="tfjob-train [OPTION …]   (tfjob-train --help lists them)",
        description="Train a Keras model on the devices of this job, safely against limits and requeues.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_model_and_data(parser.add_argument_group("model and data").add_argument)
    _add_length(parser.add_argument_group("length and batch").add_argument)
    _add_optimization(parser.add_argument_group("optimization").add_argument)
    _add_devices(parser.add_argument_group("devices").add_argument)
    _add_run(parser.add_argument_group("run").add_argument)
    return parser


def _add_model_and_data(add: Callable[..., Any]) -> None:
    add("--recipe", choices=tuple(recipes.RECIPES), help="published settings; other options change them")
    add(
        "--model",
        type=_model,
        metavar="NAME",
        help="digits, resnet50, a model of keras.applications, or your own as module:function; default digits",
    )
    add("--weights", metavar="WHAT", help="to start from: imagenet, or a file; default random")
    add("--data-dir", type=Path, metavar="FOLDER", help="TFRecords; default: digits, which need no files")
    add(
        "--image-size",
        type=_within(int, 1, 8192),
        metavar="N",
        help="side of the images; default: the data's",
    )
    add(
        "--augment",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="random crops and mirroring; default: as suits the data",
    )
    add("--skip-broken", action="store_true", help="leave broken records out and count them")
    add(
        "--seed",
        type=_within(int, 0, 2**31 - 1),
        default=0,
        metavar="N",
        help="of weights, dropout and data order, default 0",
    )


def _add_length(add: Callable[..., Any]) -> None:
    epochs = f"passes over the data, default {recipes.EPOCHS}, or what --steps takes"
    add("--epochs", type=_within(int, 1, 1_000_000), metavar="N", help=epochs)
    add("--steps", type=_within(int, 1, 10**12), metavar="N", help="end after so many steps in all")
    add(
        "--batch-size",
        type=_within(int, 1, 1_000_000),
        metavar="N",
        help=f"examples per step over all replicas, default {recipes.BATCH_SIZE}",
    )
    add(
        "--batch-per-replica",
        type=_within(int, 1, 1_000_000),
        metavar="N",
        help="examples that a replica holds at a time, instead of --batch-size",
    )
    add(
        "--accumulate",
        type=_within(int, 1, 10_000),
        metavar="N",
        help="parts in which a replica takes its share of a step, to save memory; default 1",
    )
    add(
        "--validate-epochs",
        type=_within(int, 0, 1_000_000),
        default=1,
        metavar="N",
        help="epochs from one validation to the next; 0: never; default 1",
    )


def _add_optimization(add: Callable[..., Any]) -> None:
    add("--optimizer", choices=OPTIMIZERS, help="default adam")
    add(
        "--learning-rate",
        type=_within(float, 0.0, 1000.0, open_low=True),
        metavar="X",
        help="the highest; default 0.001, of sgd 0.1",
    )
    add(
        "--learning-rate-batch",
        type=_within(int, 1, 1_000_000),
        metavar="N",
        help="the learning rate is for N examples per step: it is scaled to the real number",
    )
    add("--momentum", type=_within(float, 0.0, 0.9999), metavar="X", help="of sgd, default 0.9")
    add(
        "--weight-decay",
        type=_within(float, 0.0, 1.0),
        metavar="X",
        help="of sgd (L2) and adamw, not for biases and normalisation; default 0",
    )
    add("--label-smoothing", type=_within(float, 0.0, 0.9), metavar="X", help="default 0")
    add("--schedule", choices=SCHEDULES, help="of the learning rate; default constant")
    add(
        "--warmup-epochs",
        type=_within(float, 0.0, 10_000.0),
        metavar="X",
        help="epochs in which the learning rate rises from 0; default 0",
    )
    add("--decay-epochs", type=_epoch_list, metavar="A,B,…", help="of --schedule step; default 30,60,80")
    add(
        "--decay-rate",
        type=_within(float, 0.0, 1.0, open_low=True),
        metavar="X",
        help="of --schedule step, default 0.1",
    )
    add("--go-on-with-nan", action="store_true", help="train on where the loss is not a number")


def _add_devices(add: Callable[..., Any]) -> None:
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
        help="copies of the model on a node (MirroredStrategy above 1): default all GPUs, or 1 on CPUs",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="auto: mixed_bfloat16 from compute capability 8, else float32",
    )
    add("--xla", action="store_true", help="compile the model with XLA: often faster on GPUs, a slower start")
    add(
        "--peer-timeout",
        type=_within(float, 1.0, 86_400.0),
        default=300.0,
        metavar="SECONDS",
        help="how long to wait for the other nodes, default 300",
    )


def _add_run(add: Callable[..., Any]) -> None:
    add(
        "--model-dir",
        type=Path,
        metavar="FOLDER",
        help="run folder; default <job name>-<job id> in $TFJOB_RUNS, else in ./runs",
    )
    add(
        "--log-steps",
        type=_within(int, 1, 10_000_000),
        metavar="N",
        help="steps between two log lines, default 50",
    )
    add(
        "--checkpoint-steps",
        type=_within(int, 1, 10_000_000),
        metavar="N",
        help="steps between two checkpoints; default: only the time counts",
    )
    add(
        "--checkpoint-minutes",
        type=_within(float, 0.0, 10_000.0, open_low=True),
        default=10.0,
        metavar="X",
        help="save at the latest after this time, default 10",
    )
    add("--keep", type=_within(int, 1, 10_000), default=3, metavar="N", help="checkpoints kept, default 3")
    add("--best", choices=MONITORED, default=MONITORED[0], help="what best.keras is the best in")
    add("--check", action="store_true", help="say whether TensorFlow is here, train nothing")


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The options in `arguments` (default: the command line); a wrong one ends the process with code 2."""
    parser = make_parser()
    asked = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    if {"batch_size", "batch_per_replica"} <= asked.keys():
        parser.error("--batch-size and --batch-per-replica exclude each other")
    options = _fill(asked)
    if options.weight_decay and options.optimizer == "adam":
        parser.error("--weight-decay goes with --optimizer sgd or adamw")
    return options


def _fill(asked: dict[str, Any]) -> Options:
    """Options from what was asked for, a recipe, and the defaults, in this order."""
    recipe = dict(recipes.RECIPES.get(asked.get("recipe", ""), {}))
    if "batch_size" in asked:
        recipe.pop("batch_per_replica", None)
    if "steps" in asked:
        recipe.pop("epochs", None)
    values = {**dict.fromkeys(Options.__slots__), **recipes.DEFAULTS, **recipe, **asked}
    if values["learning_rate"] is None:
        values["learning_rate"] = recipes.LEARNING_RATES[values["optimizer"]]
    if values["batch_size"] is None and values["batch_per_replica"] is None:
        values["batch_size"] = recipes.BATCH_SIZE
    if values["epochs"] is None and values["steps"] is None:
        values["epochs"] = recipes.EPOCHS
    return Options(**values)
