"""What is said at the start of an attempt: to people in the log, to programs in run.json."""

import platform
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from tfjob_trainer import network, optimizers
from tfjob_trainer.attempt import Attempt
from tfjob_trainer.devices import Devices
from tfjob_trainer.log import say
from tfjob_trainer.options import Options
from tfjob_trainer.steps import Plan

_NOT_SETTINGS = ("check", "model_dir", "peer_timeout", "batch_per_replica", "learning_rate_batch")


def settings(options: Options, plan: Plan) -> dict[str, Any]:
    """The options in force, for run.json: what was left open is filled in with what was chosen."""
    chosen = {key: value for key, value in asdict(options).items() if key not in _NOT_SETTINGS}
    folder = options.data_dir
    return chosen | {
        "data_dir": str(folder.expanduser().absolute()) if folder else None,
        "image_size": plan.data.form.shape[0],
        "batch_size": plan.global_batch,
        "accumulate": plan.accumulate,
        "learning_rate": optimizers.peak_rate(options, plan.global_batch),
        "precision": plan.policy,
    }


def run_facts(attempt: Attempt, devices: Devices, plan: Plan) -> dict[str, Any]:
    """The contents of run.json."""
    hosts = attempt.peers.cluster.hosts if attempt.peers else (socket.gethostname(),)
    return {
        "job": asdict(attempt.job),
        "hosts": hosts,
        "command": sys.argv,
        "folder_at_start": Path.cwd(),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "settings": settings(attempt.options, plan)
        | {"device": devices.kind, "replicas": devices.replicas, "workers": devices.workers},
        "data": {
            "name": plan.data.name,
            "training_examples": plan.data.training_examples,
            "validation_examples": plan.data.validation_examples,
            "classes": plan.classes,
        },
        "model": {"name": attempt.options.model, "parameters": plan.model.count_params()},
        "steps_per_epoch": plan.steps_per_epoch,
        "total_steps": plan.total_steps,
        "folder": attempt.folder,
        "checkpoints": attempt.checkpoints,
        "tensorboard": attempt.tensorboard,
    }


def say_start(
    attempt: Attempt, devices: Devices, plan: Plan, restored: str | None, earlier: dict[str, Any]
) -> None:
    """What was found, and how to go on, in plain lines."""
    options, ours = attempt.options, attempt.job
    where = f"job {ours.job_id}, restart {ours.restart}" if ours.job_id else "no Slurm job"
    say(f"TensorFlow {tf.__version__}, Keras {keras.__version__} on {socket.gethostname()} ({where})")
    say(f"devices: {devices.description}; {devices.replicas} replica(s); precision {plan.policy}{_xla(plan)}")
    if attempt.peers:
        say(
            f"nodes: {' '.join(attempt.peers.cluster.hosts)}; TensorFlow at {' '.join(attempt.peers.addresses)}"
        )
        for line in network.describe():
            say(line)
    counts = f"{plan.data.training_examples} training and {plan.data.validation_examples} validation examples"
    say(f"model {options.model}, {plan.model.count_params()} parameters; data {plan.data.name}: {counts}")
    say(_batch_words(devices, plan, options))
    steps = f"every {options.checkpoint_steps} steps or " if options.checkpoint_steps else "every "
    every = f"{steps}{options.checkpoint_minutes:g} minutes"
    say(f"checkpoints {every} in {attempt.checkpoints}; to go on after a stop: --model-dir {attempt.folder}")
    say(f"TensorBoard: tensorboard --logdir {attempt.tensorboard}")
    say(
        f"going on from {restored}{_elastic(devices, plan, earlier)}"
        if restored
        else "starting from the beginning"
    )


def _xla(plan: Plan) -> str:
    return ", XLA" if plan.xla else ""


def _batch_words(devices: Devices, plan: Plan, options: Options) -> str:
    share = plan.global_batch // devices.replicas
    parts = f", in {plan.accumulate} parts of {share // plan.accumulate}" if plan.accumulate > 1 else ""
    rate = optimizers.peak_rate(options, plan.global_batch)
    schedule = "" if options.schedule == "constant" else f" ({options.schedule})"
    warmup = f", {options.warmup_epochs:g} epochs of warm-up" if options.warmup_epochs else ""
    length = f"{plan.epochs} epochs of {plan.steps_per_epoch} steps"
    if plan.total_steps != plan.epochs * plan.steps_per_epoch:
        length = f"{plan.total_steps} steps, {plan.steps_per_epoch} in an epoch"
    return (
        f"batch {plan.global_batch} ({share} per replica{parts}), {options.optimizer}, "
        f"learning rate {rate:g}{schedule}{warmup}, {length}"
    )


def _elastic(devices: Devices, plan: Plan, earlier: dict[str, Any]) -> str:
    """What is not as it was in the attempt before."""
    changes = []
    for name, now in (
        ("replicas", devices.replicas),
        ("workers", devices.workers),
        ("precision", plan.policy),
    ):
        if name in earlier and earlier[name] != now:
            changes.append(f"{name} {now} (before: {earlier[name]})")
    return f", now with {', '.join(changes)}" if changes else ""
