"""Taking up a run: its folder, what stands there already, and the record that we are at it.

All of this comes before TensorFlow, which takes seconds to import: the log's first line is there at once.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfjob_trainer import job, state
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.job import Job
from tfjob_trainer.log import say
from tfjob_trainer.options import Options
from tfjob_trainer.state import State
from tfjob_trainer.telemetry import Telemetry, next_attempt


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of training in a run folder: what is known of it, and its files."""

    options: Options
    job: Job
    folder: Path
    number: int
    telemetry: Telemetry
    began: float  # time.monotonic()

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        return self.folder / "tensorboard"

    def write_state(self, status: str, step: int, epoch: int, **more: Any) -> None:
        """Replace state.json, and tell the same in the telemetry."""
        now = State(
            status=status,
            step=step,
            epoch=epoch,
            job_id=self.job.job_id,
            restart=self.job.restart,
            attempt=self.number,
            time=time.time(),
            **more,
        )
        state.write(self.folder, now)
        self.telemetry.status(status=status)
        if status != "running":
            self.telemetry.event("end", step, status=status, message=more.get("message"))

    def note_failure(self, error: BaseException) -> None:
        """Put the failure into the state file, as far as the disk lets us."""
        reason = str(error) if isinstance(error, TrainerError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError, TrainerError):
            known = state.read(self.folder)
            step, epoch = (known.step, known.epoch) if known else (0, 0)
            self.write_state("failed", step, epoch, message=reason)


def begin(options: Options, began: float) -> Attempt | None:
    """Open the run folder and note that the run is at work; None where it is complete already.

    `began` is the time.monotonic() at which the process began.
    """
    ours = job.from_environment(os.environ)
    folder = open_folder(options, ours, os.environ)
    say(f"run folder {folder}")
    before = state.read(folder)
    if before and before.status == "completed" and before.epoch >= options.epochs:
        _say_complete(before, folder)
        return None
    number = next_attempt(folder)
    attempt = Attempt(options, ours, folder, number, Telemetry(folder, number), began)
    attempt.write_state("running", before.step if before else 0, before.epoch if before else 0)
    return attempt


def open_folder(options: Options, ours: Job, environment: Mapping[str, str]) -> Path:
    """The run folder, made where it does not exist yet; an absolute path."""
    runs = Path(environment.get("TFJOB_RUNS") or "runs")
    name = ours.folder_name or f"{job.safe_name(ours.name)}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder = (options.model_dir or runs / name).expanduser().absolute()
    try:
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        (folder / "tensorboard").mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make the run folder {folder}: {error.strerror} ({error.filename})"
        ) from None
    if not os.access(folder, os.W_OK):
        raise UsageError(f"the run folder {folder} cannot be written to")
    return folder


def _say_complete(before: State, folder: Path) -> None:
    say(
        f"completed already: {before.epoch} epochs, {before.step} steps{accuracy_text(before.metrics or {})}; "
        f"nothing to do. To train more, ask for more --epochs or another --model-dir; run folder {folder}"
    )


def accuracy_text(figures: Mapping[str, float]) -> str:
    """The part of a final line that tells the accuracy; empty where none is known."""
    return f", val_accuracy {figures['val_accuracy']:.3f}" if "val_accuracy" in figures else ""
