"""`tfjob-evaluate`: how good the model of a run is on what was held back. Leaves `evaluation.json` in its folder.

    version     1
    model       the file that was loaded: the best or the last model, or a checkpoint of an unfinished run
    which       best | last
    step        steps that the run had done when it was evaluated
    status      of the run: completed, or how it stood with --allow-unfinished
    data        name, folder (null: in memory), split, image_size
    count       examples that went in, each once; broken: those left out with --skip-broken
    loss        mean cross-entropy
    top1, top5  part of the examples whose class is the first guess, or among the first five; top5 is null where
                there are five classes or fewer
    precision, devices, batch_size, duration_s, time (seconds since 1970), job_id

NaN and Inf stand there as strings. Readers ignore keys that they don't know.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjob_trainer import chatter, job, log, state
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.files import replace_atomically
from tfjob_trainer.log import complain, say
from tfjob_trainer.state import State
from tfjob_trainer.telemetry import RUN_FILE, plain, read_json

VERSION = 1
FILE_NAME = "evaluation.json"
BEST_FILE, LAST_FILE = "best.keras", "model.keras"
BATCH_SIZE = 64

_EPILOG = """\
The result is printed and written to evaluation.json in the run folder. A run that is not complete is refused,
so that a half-trained model is not taken for the result.

exit codes: 0 done, 1 failed, 2 wrong use, or the run is not complete
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. None: as in the run."""

    model_dir: Path
    which: str
    data_dir: Path | None
    split: str
    batch_size: int | None
    device: str
    allow_unfinished: bool
    skip_broken: bool


def make_parser() -> argparse.ArgumentParser:
    """The command line of `tfjob-evaluate`."""
    parser = argparse.ArgumentParser(
        prog="tfjob-evaluate",
        usage="tfjob-evaluate --model-dir FOLDER [OPTION …]",
        description="Evaluate the model of a run on what was held back from training.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model-dir", type=Path, required=True, metavar="FOLDER", help="the run folder of tfjob-train")
    add("--which", choices=("best", "last"), default="best", help="the best model (default) or the last one")
    add("--data-dir", type=Path, metavar="FOLDER", help="another data set than the run's")
    add(
        "--split",
        choices=("validation", "train"),
        default="validation",
        help="what of it, default validation",
    )
    add("--batch-size", type=_count, metavar="N", help="over all replicas; default: as in training")
    add("--device", choices=("auto", "cpu", "gpu"), default="auto", help="as for tfjob-train")
    add("--allow-unfinished", action="store_true", help="take what there is of a run that is not complete")
    add("--skip-broken", action="store_true", help="leave broken records out, and count them")
    return parser


def _count(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 1_000_000:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000000")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    log.set_program("tfjob-evaluate")
    options = Options(**vars(make_parser().parse_args(arguments)))
    try:
        from tfjob_trainer.train import require_packages

        folder = options.model_dir.expanduser().absolute()
        stood = check_run(folder, options)
        settings: dict[str, Any] = read_json(folder / RUN_FILE).get("settings", {})
        require_packages(digits=not (options.data_dir or settings.get("data_dir")))
        with chatter.filtered():
            import tensorflow as tf

            tf.config.list_physical_devices()
        evaluate(folder, stood, settings, options)
    except TrainerError as error:
        complain(str(error))
        return error.exit_code
    except OSError as error:
        complain(f"{error.filename or ''}: {error.strerror or error}")
        return 1
    return 0


def check_run(folder: Path, options: Options) -> State:
    """How the run stands. Raises UsageError where there is none, or it is not complete."""
    stood = state.read(folder) if folder.is_dir() else None
    if stood is None:
        raise UsageError(f"{folder} is not a run folder of tfjob-train: it has no {state.FILE_NAME}")
    if stood.status != "completed" and not options.allow_unfinished:
        raise UsageError(
            f"the run in {folder} is not complete ({stood.status}, step {stood.step}, epoch {stood.epoch}). Go on "
            "with it (the same tfjob-train on the same folder), or evaluate what there is: --allow-unfinished"
        )
    return stood


def evaluate(folder: Path, stood: State, settings: Mapping[str, Any], options: Options) -> None:
    """Evaluate, say the result and write it. Needs TensorFlow. Raises TrainerError."""
    from tfjob_trainer import evaluation

    began = time.monotonic()
    result = evaluation.run(folder, settings, options)
    values = {
        "version": VERSION,
        "which": options.which,
        "step": stood.step,
        "status": stood.status,
        **result,
        "duration_s": time.monotonic() - began,
        "time": time.time(),
        "job_id": job.from_environment(os.environ).job_id,
    }
    path = folder / FILE_NAME
    replace_atomically(path, json.dumps(plain(values), indent=1, allow_nan=False) + "\n")
    top5 = f", top-5 {result['top5']:.4f}" if result["top5"] is not None else ""
    say(
        f"{result['count']} examples of {options.split}: loss {result['loss']:.4f}, top-1 {result['top1']:.4f}{top5}, "
        f"in {values['duration_s']:.1f} s; {path}"
    )


if __name__ == "__main__":
    sys.exit(main())
