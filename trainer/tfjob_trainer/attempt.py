"""Taking up a run: its folder, what stands there already, and the record that we are at it.

All of this comes before TensorFlow, which takes seconds to import: the log's first line is there at once. Of
several processes the chief does it and tells the others.
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
from tfjob_trainer.lock import RunLock
from tfjob_trainer.log import say
from tfjob_trainer.options import Options
from tfjob_trainer.peers import Peers, StoppedWhileWaiting
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
    peers: Peers | None  # where several processes train together
    lock: RunLock | None  # of the chief

    @property
    def rank(self) -> int:
        return self.peers.cluster.rank if self.peers else 0

    @property
    def is_chief(self) -> bool:
        return self.rank == 0

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        return self.folder / "tensorboard"

    def check_folder(self) -> None:
        """Raise TrainerError where the folder is not ours any more."""
        if self.lock:
            self.lock.check()

    def write_state(self, status: str, step: int, epoch: int, **more: Any) -> None:
        """Replace state.json, and tell the same in the telemetry; the state is the chief's to write."""
        if self.is_chief:
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
        if status != "running":
            self.telemetry.event("end", step, status=status, message=more.get("message"))
        self.telemetry.status(status=status)

    def note_failure(self, error: BaseException) -> None:
        """Put the failure into the state file, as far as the disk lets us."""
        reason = str(error) if isinstance(error, TrainerError) else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError, TrainerError):
            known = state.read(self.folder)
            step, epoch = (known.step, known.epoch) if known else (0, 0)
            self.write_state("failed", step, epoch, message=reason)

    def release(self) -> None:
        """Let the folder go."""
        if self.lock:
            self.lock.release()


def begin(options: Options, began: float, peers: Peers | None) -> Attempt | None:
    """Open the run folder and note that the run is at work; None where there is nothing to do (any more).

    `began` is the time.monotonic() at which the process began. Raises TrainerError.
    """
    if peers and not peers.cluster.is_chief:
        return _follow(options, began, peers)
    ours = job.from_environment(os.environ)
    folder = open_folder(options, ours, os.environ)
    say(f"run folder {folder}")
    if is_complete(state.read(folder), options):
        _leave_complete(folder, peers)
        return None
    lock = RunLock(folder, ours)
    lock.take()
    try:
        return _begin_locked(options, ours, folder, began, peers, lock)
    except BaseException:
        lock.release()
        raise


def _begin_locked(
    options: Options, ours: Job, folder: Path, began: float, peers: Peers | None, lock: RunLock
) -> Attempt | None:
    before = state.read(folder)
    if is_complete(before, options):  # by whoever held the lock
        lock.release()
        _leave_complete(folder, peers)
        return None
    number = next_attempt(folder)
    attempt = Attempt(options, ours, folder, number, Telemetry(folder, number), began, peers, lock)
    step, epoch = (before.step, before.epoch) if before else (0, 0)
    attempt.write_state("running", step, epoch)
    if peers:
        try:
            peers.meet()
        except StoppedWhileWaiting as stopped:
            # SIGTERM is what srun ends us with when a worker has failed: that must not come back for ever.
            status = "failed" if "SIGTERM" in str(stopped) else "stopped"
            attempt.write_state(status, step, epoch, message=str(stopped))
            say(f"{status}: {stopped}; run folder {folder}")
            peers.fail(str(stopped))
            lock.release()
            return None
        except TrainerError as error:
            attempt.note_failure(error)
            raise
        peers.from_chief("attempt", {"folder": str(folder), "number": number})
    return attempt


def _follow(options: Options, began: float, peers: Peers) -> Attempt | None:
    """Take part in the attempt that the chief begins."""
    try:
        peers.meet()
    except StoppedWhileWaiting:
        return None
    told = peers.from_chief("attempt")
    if told is None:
        peers.leave()
        return None
    folder = Path(told["folder"])
    if not folder.is_dir():
        raise UsageError(
            f"the run folder {folder} is not to be seen here: it has to lie on a file system that all nodes share"
        )
    ours = job.from_environment(os.environ)
    telemetry = Telemetry(folder, told["number"], peers.cluster.rank)
    return Attempt(options, ours, folder, told["number"], telemetry, began, peers, None)


def _leave_complete(folder: Path, peers: Peers | None) -> None:
    before = state.read(folder)
    assert before
    say(
        f"completed already: {before.epoch} epochs, {before.step} steps{accuracy_text(before.metrics or {})}; "
        f"nothing to do. To train more, ask for more --epochs or --steps, or another --model-dir; "
        f"run folder {folder}"
    )
    if peers:
        with contextlib.suppress(StoppedWhileWaiting):
            peers.meet()
            peers.from_chief("attempt", None)
            peers.leave()


def is_complete(before: State | None, options: Options) -> bool:
    """Has the run been trained to the end that is asked for now?"""
    if before is None or before.status != "completed":
        return False
    enough_epochs = options.epochs is not None and before.epoch >= options.epochs
    enough_steps = options.steps is not None and before.step >= options.steps
    return enough_epochs or enough_steps


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


def accuracy_text(figures: Mapping[str, float]) -> str:
    """The part of a final line that tells the accuracy; empty where none is known."""
    return f", val_accuracy {figures['val_accuracy']:.3f}" if "val_accuracy" in figures else ""
