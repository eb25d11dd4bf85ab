"""One attempt at a run: from what is found on the node to the final line."""

import contextlib
import math
import os
import socket
import time
from typing import Any

import keras

from tfjob_trainer import batches, checkpoints, data, models, nodes, optimizers, precision, report
from tfjob_trainer.agreement import Agreement
from tfjob_trainer.attempt import Attempt, accuracy_text
from tfjob_trainer.callbacks import LogLines, TelemetryCallback, TensorBoardCallback
from tfjob_trainer.checkpoints import Checkpoints, Progress
from tfjob_trainer.data import Data, DataOptions
from tfjob_trainer.devices import Devices, choose, open_devices
from tfjob_trainer.engine import Best, Engine, Surroundings
from tfjob_trainer.errors import UsageError
from tfjob_trainer.log import say
from tfjob_trainer.options import Options
from tfjob_trainer.peers import PeerError
from tfjob_trainer.steps import Plan
from tfjob_trainer.stop import StopRequest
from tfjob_trainer.telemetry import RUN_FILE, read_json
from tfjob_trainer.usage import Sampler

MODEL_FILE, BEST_FILE = "model.keras", "best.keras"
END_S = 60.0  # for all processes to get to the end
FIXED = ("model", "batch_size", "seed", "data_dir", "image_size", "optimizer")  # they fix what a step is


def train(attempt: Attempt, stop: StopRequest) -> None:
    """Train to the end, or to a stop request. Raises TrainerError where it cannot go on."""
    options = attempt.options
    devices = _open_devices(attempt)
    stop.install()
    earlier = read_json(attempt.folder / RUN_FILE)
    plan = make_plan(options, devices, earlier.get("settings", {}))
    check_settings(attempt, plan, earlier.get("settings", {}))
    progress = Progress()
    saved = _open_checkpoints(attempt, plan, progress)
    restored = _restore(attempt, saved)
    if attempt.is_chief:
        attempt.telemetry.run(report.run_facts(attempt, devices, plan))
        report.say_start(attempt, devices, plan, restored, earlier.get("settings", {}))
    engine = _make_engine(attempt, stop, plan, progress, saved)
    _note_start(attempt, engine)
    sampler = Sampler(
        attempt.folder,
        lambda sample: _note_usage(attempt, engine, sample),
        gpus=devices.replicas // devices.workers if devices.kind == "gpu" else 0,
    )
    sampler.start()
    try:
        figures = engine.train(make_callbacks(attempt, plan, engine.step))
        _end(attempt, plan, engine, stop, figures)
    finally:
        sampler.end()
        saved.close()


def _open_devices(attempt: Attempt) -> Devices:
    options = attempt.options
    if attempt.peers is None:
        return open_devices(options.device, options.replicas)
    return nodes.connect(attempt.peers, options, choose(options.device, options.replicas))


# ---- What is trained.


def make_plan(options: Options, devices: Devices, earlier: dict[str, Any]) -> Plan:
    """Build model, optimizer and data; the optimizer's slots exist already, so that they can be restored.

    `earlier` are the settings of the run so far.
    """
    batch, accumulate = batches.share(options, devices.replicas, earlier.get("batch_size"))
    policy = precision.choose(options.precision, devices.capabilities)
    examples = _open_data(options)
    if batch > examples.training_examples:
        raise UsageError(f"--batch-size {batch} is more than all {examples.training_examples} examples")
    steps_per_epoch = examples.training_examples // batch
    total_steps = min(options.steps or math.inf, (options.epochs or math.inf) * steps_per_epoch)
    with devices.strategy.scope():
        model = models.build(options.model, options.seed, policy, examples.form, options.weights)
        schedule = optimizers.make_schedule(options, batch, steps_per_epoch, int(total_steps))
        optimizer = optimizers.make_optimizer(options, schedule, model.trainable_variables)
        optimizer = precision.wrap_optimizer(optimizer, policy)
        optimizer.build(model.trainable_variables)
    return Plan(
        model=model,
        optimizer=optimizer,
        rate=schedule.at,
        strategy=devices.strategy,
        data=examples,
        policy=policy,
        global_batch=batch,
        accumulate=accumulate,
        epochs=options.epochs or math.ceil(total_steps / steps_per_epoch),
        total_steps=int(total_steps),
        log_steps=options.log_steps,
        label_smoothing=options.label_smoothing,
        l2=optimizers.l2_of(options),
        xla=options.xla,
        validate_epochs=options.validate_epochs,
    )


def _open_data(options: Options) -> Data:
    return data.open_data(
        DataOptions(
            seed=options.seed,
            folder=options.data_dir,
            image_size=options.image_size,
            augment=options.augment,
            skip_broken=options.skip_broken,
        )
    )


def check_settings(attempt: Attempt, plan: Plan, earlier: dict[str, Any]) -> None:
    """Refuse to go on with a run under settings that would make its steps something else."""
    now = report.settings(attempt.options, plan)
    for name in FIXED:
        if name in earlier and earlier[name] != now[name]:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"the run in {attempt.folder} was begun with {option} {earlier[name]}, not {now[name]}: "
                "go on with the same, or take another --model-dir"
            )


# ---- Where it stands.


def _open_checkpoints(attempt: Attempt, plan: Plan, progress: Progress) -> Checkpoints:
    options = attempt.options
    if attempt.is_chief:
        checkpoints.clear_exports(attempt.folder)
    return Checkpoints(
        attempt.checkpoints,
        plan.model,
        plan.optimizer,
        progress,
        every_steps=options.checkpoint_steps,
        every_s=options.checkpoint_minutes * 60,
        keep=options.keep,
        is_chief=attempt.is_chief,
    )


def _restore(attempt: Attempt, saved: Checkpoints) -> str | None:
    """Go back to the newest good checkpoint; the chief chooses it for all."""
    found = checkpoints.find_good(attempt.checkpoints) if attempt.is_chief else None
    if attempt.peers:
        found = attempt.peers.from_chief("checkpoint", found)
    if found:
        saved.restore(found)
    return found


def _make_engine(
    attempt: Attempt, stop: StopRequest, plan: Plan, progress: Progress, saved: Checkpoints
) -> Engine:
    options = attempt.options
    cluster = attempt.peers.cluster if attempt.peers else None

    def note(kind: str, step: int, **values: Any) -> None:
        attempt.telemetry.event(kind, step, **values)
        if kind == "checkpoint":
            attempt.telemetry.status(soon=True, checkpoint_step=step)
        if kind == "best":
            attempt.telemetry.status(soon=True, best=values)

    surroundings = Surroundings(
        note=note,
        check_folder=attempt.check_folder,
        best=Best(options.best, attempt.folder / BEST_FILE if attempt.is_chief else None),
        go_on_with_nan=options.go_on_with_nan,
    )
    return Engine(plan, progress, saved, Agreement(plan.strategy, cluster, stop), surroundings)


# ---- Who is told.


def make_callbacks(attempt: Attempt, plan: Plan, first_step: int) -> Any:
    """Keras' callback list for our loop."""
    total, epochs = plan.total_steps, plan.epochs
    told = TelemetryCallback(
        attempt.telemetry, total_steps=total, epochs=epochs, first_step=first_step, every=1
    )
    callbacks: list[Any] = [told]
    if attempt.is_chief:
        callbacks += [
            TensorBoardCallback(attempt.tensorboard, first_step=first_step, every=1),
            LogLines(total, epochs, first_step=first_step),
        ]
    return keras.callbacks.CallbackList(
        callbacks, model=plan.model, epochs=epochs, steps=plan.steps_per_epoch, verbose=0
    )


def _note_start(attempt: Attempt, engine: Engine) -> None:
    attempt.telemetry.event(
        "start",
        engine.step,
        attempt=attempt.number,
        rank=attempt.rank,
        restart=attempt.job.restart,
        job_id=attempt.job.job_id,
        host=socket.gethostname(),
        pid=os.getpid(),
    )


def _note_usage(attempt: Attempt, engine: Engine, sample: dict[str, Any]) -> None:
    attempt.telemetry.event("usage", engine.step, **sample)
    attempt.telemetry.status(usage=sample)


# ---- The end.


def _end(attempt: Attempt, plan: Plan, engine: Engine, stop: StopRequest, figures: dict[str, float]) -> None:
    if engine.stopped:
        _end_stopped(attempt, plan, engine)
    else:
        stop.ignore()
        _end_completed(attempt, plan, engine, figures)
    if plan.data.broken_records:
        say(f"{plan.data.broken_records} broken records were left out")
    if attempt.peers:
        with contextlib.suppress(PeerError):  # all is saved: whoever is lost now is no matter
            attempt.peers.exchange("end", None, END_S)


def _end_stopped(attempt: Attempt, plan: Plan, engine: Engine) -> None:
    message = f"{engine.stopped} at step {engine.step} of {plan.total_steps}"
    attempt.write_state("stopped", engine.step, engine.epochs_done, message=message)
    took_s = time.monotonic() - attempt.began
    say(f"stopped: {message}, saved, after {took_s:.1f} s; run folder {attempt.folder}")


def _end_completed(attempt: Attempt, plan: Plan, engine: Engine, figures: dict[str, float]) -> None:
    checkpoints.export(plan.model, attempt.folder / MODEL_FILE if attempt.is_chief else None)
    attempt.write_state(
        "completed",
        engine.step,
        engine.epochs_done,
        metrics=figures or None,
        weights_sha256=checkpoints.weights_sha256(plan.model),
    )
    took_s = time.monotonic() - attempt.began
    say(
        f"completed: {engine.epochs_done} epochs, {engine.step} steps{accuracy_text(figures)} "
        f"in {took_s:.1f} s; run folder {attempt.folder}"
    )
