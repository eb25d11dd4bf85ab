"""One attempt at a run: from what is found on the node to the final line."""

import os
import platform
import socket
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer import checkpoints, data, models, precision
from tfjob_trainer.attempt import Attempt, accuracy_text
from tfjob_trainer.callbacks import BatchScalars, LogLines, TelemetryCallback
from tfjob_trainer.checkpoints import Checkpoints, Progress
from tfjob_trainer.devices import Devices, open_devices
from tfjob_trainer.engine import Engine, Plan
from tfjob_trainer.errors import UsageError
from tfjob_trainer.log import say
from tfjob_trainer.options import Options
from tfjob_trainer.stop import StopRequest
from tfjob_trainer.telemetry import RUN_FILE, read_json

MODEL_FILE = "model.keras"
FIXED = ("model", "batch_size", "seed")  # settings that a run cannot change: they fix what a step is


def train(attempt: Attempt, stop: StopRequest) -> None:
    """Train to the end, or to a stop request. Raises TrainerError where it cannot go on."""
    options = attempt.options
    devices = open_devices(options.device, options.replicas)
    stop.install()
    plan = make_plan(options, devices)
    _check_settings(attempt.folder, options)
    progress = Progress()
    saved = Checkpoints(
        attempt.checkpoints,
        plan.model,
        plan.optimizer,
        progress,
        options.checkpoint_steps,
        options.checkpoint_minutes * 60,
    )
    restored = saved.restore()
    _write_run_file(attempt, devices, plan)
    _say_start(attempt, devices, plan, restored)
    engine = Engine(plan, progress, saved, attempt.telemetry, stop)
    attempt.telemetry.event(
        "start",
        engine.step,
        attempt=attempt.number,
        rank=0,
        restart=attempt.job.restart,
        job_id=attempt.job.job_id,
        host=socket.gethostname(),
        pid=os.getpid(),
    )
    figures = engine.train(make_callbacks(attempt, plan, engine.step))
    _end(attempt, plan, engine, stop, figures)


def make_plan(options: Options, devices: Devices) -> Plan:
    """Build model, optimizer and data; the optimizer's slots exist already, so that they can be restored."""
    check_batch(options.batch_size, devices.replicas)
    policy = precision.choose(options.precision, devices.capabilities)
    examples = data.load(options.model, options.seed)
    if options.batch_size > examples.training_examples:
        raise UsageError(
            f"--batch-size {options.batch_size} is more than all {examples.training_examples} examples"
        )
    with devices.strategy.scope():
        model = models.build(options.model, options.seed, policy)
        optimizer = precision.wrap_optimizer(keras.optimizers.Adam(options.learning_rate), policy)
        model.compile(optimizer=optimizer, auto_scale_loss=False, jit_compile=False)
        optimizer.build(model.trainable_variables)
    return Plan(
        model=model,
        optimizer=optimizer,
        strategy=devices.strategy,
        data=examples,
        policy=policy,
        global_batch=options.batch_size,
        epochs=options.epochs,
        log_steps=options.log_steps,
    )


def check_batch(batch_size: int, replicas: int) -> None:
    """Every replica takes the same share of a batch."""
    if batch_size % replicas:
        near = max(replicas, round(batch_size / replicas) * replicas)
        raise UsageError(
            f"--batch-size {batch_size} cannot be shared by {replicas} replicas; the nearest that can: {near}"
        )


def _check_settings(folder: Path, options: Options) -> None:
    """Refuse to go on with a run under settings that would make its steps something else."""
    earlier = read_json(folder / RUN_FILE).get("settings", {})
    for name in FIXED:
        if name in earlier and earlier[name] != getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"the run in {folder} was begun with {option} {earlier[name]}, not {getattr(options, name)}: "
                "go on with the same, or take another --model-dir"
            )


def make_callbacks(attempt: Attempt, plan: Plan, first_step: int) -> Any:
    """Keras' callback list for our loop."""
    steps, epochs = plan.steps_per_epoch, plan.epochs
    board = attempt.tensorboard
    return keras.callbacks.CallbackList(
        [
            keras.callbacks.TensorBoard(str(board), update_freq="epoch", write_graph=False),
            BatchScalars(board / "train", first_step=first_step),
            TelemetryCallback(attempt.telemetry, steps, epochs, first_step=first_step),
            LogLines(steps, epochs, first_step=first_step),
        ],
        model=plan.model,
        epochs=epochs,
        steps=steps,
        verbose=0,
    )


def _write_run_file(attempt: Attempt, devices: Devices, plan: Plan) -> None:
    options = attempt.options
    chosen = replace(options, device=devices.kind, replicas=devices.replicas, precision=plan.policy)
    settings = {key: value for key, value in asdict(chosen).items() if key not in ("check", "model_dir")}
    attempt.telemetry.run(
        {
            "job": asdict(attempt.job),
            "command": sys.argv,
            "folder_at_start": Path.cwd(),
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "settings": settings,
            "data": {
                "name": plan.data.name,
                "training_examples": plan.data.training_examples,
                "validation_examples": plan.data.validation_examples,
            },
            "steps_per_epoch": plan.steps_per_epoch,
            "total_steps": plan.total_steps,
            "folder": attempt.folder,
            "checkpoints": attempt.checkpoints,
            "tensorboard": attempt.tensorboard,
        }
    )


def _say_start(attempt: Attempt, devices: Devices, plan: Plan, restored: str | None) -> None:
    options, ours = attempt.options, attempt.job
    where = f"job {ours.job_id}, restart {ours.restart}" if ours.job_id else "no Slurm job"
    say(f"TensorFlow {tf.__version__}, Keras {keras.__version__} on {socket.gethostname()} ({where})")
    say(f"devices: {devices.description}; {devices.replicas} replica(s); precision {plan.policy}")
    counts = f"{plan.data.training_examples} training and {plan.data.validation_examples} validation examples"
    say(f"model {options.model}, {plan.model.count_params()} parameters; data {plan.data.name}: {counts}")
    share = plan.global_batch // devices.replicas
    say(
        f"batch {plan.global_batch} ({share} per replica), learning rate {options.learning_rate:g}, "
        f"{plan.epochs} epochs of {plan.steps_per_epoch} steps"
    )
    every = f"every {options.checkpoint_steps} steps or {options.checkpoint_minutes:g} minutes"
    say(f"checkpoints {every} in {attempt.checkpoints}; to go on after a stop: --model-dir {attempt.folder}")
    say(f"TensorBoard: tensorboard --logdir {attempt.tensorboard}")
    say(f"going on from {restored}" if restored else "starting from the beginning")


def _end(attempt: Attempt, plan: Plan, engine: Engine, stop: StopRequest, figures: dict[str, float]) -> None:
    stopped = engine.epochs_done < plan.epochs
    took_s = time.monotonic() - attempt.began
    if stopped:
        message = f"{stop.received} at step {engine.step} of {plan.total_steps}"
        attempt.write_state("stopped", engine.step, engine.epochs_done, message=message)
        say(f"stopped: {message}, saved, after {took_s:.1f} s; run folder {attempt.folder}")
        return
    stop.ignore()
    checkpoints.export(plan.model, attempt.folder / MODEL_FILE)
    attempt.write_state(
        "completed",
        engine.step,
        engine.epochs_done,
        metrics=figures or None,
        weights_sha256=checkpoints.weights_sha256(plan.model),
    )
    say(
        f"completed: {engine.epochs_done} epochs, {engine.step} steps{accuracy_text(figures)} "
        f"in {took_s:.1f} s; run folder {attempt.folder}"
    )
