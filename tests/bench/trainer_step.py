"""What all that watches a training costs: a step with callbacks, telemetry and checks ÷ the same step in a bare loop.

    python tests/bench/trainer_step.py [--pairs N] [--steps N] [--log-steps N]...

A step is that of the net for digits, and a wait that makes it 50 ms long, as on a GPU. The two loops are measured
in turn; what counts is the median of the pairs' ratios, with a log line every 50 steps (the default). It has to
be at most 1.02.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from tfjob_trainer import data, models
from tfjob_trainer.agreement import Agreement
from tfjob_trainer.callbacks import LogLines, TelemetryCallback, TensorBoardCallback
from tfjob_trainer.checkpoints import Checkpoints, Progress
from tfjob_trainer.engine import Best, Engine, Surroundings
from tfjob_trainer.steps import Plan, Sums, make_train_step
from tfjob_trainer.stop import StopRequest
from tfjob_trainer.telemetry import Telemetry
from tfjob_trainer.usage import Sampler

WANTED = 1.02
STEP_S = 0.050
BATCH = 15
FIRST = 10  # the steps before are not timed: they compile, and fill caches


def main() -> int:
    options = _options()
    model, examples = _model_and_data()
    wait_s = max(0.0, STEP_S - _step_s(model, examples))
    print(f"a step takes {1000 * (STEP_S - wait_s):.1f} ms, and waits for {1000 * wait_s:.1f} ms")
    worst = 0.0
    for log_steps in options.log_steps:
        ratios = []
        for _ in range(options.pairs):
            bare = _bare(model, examples, wait_s, options.steps)
            watched = _watched(model, examples, wait_s, options.steps, log_steps)
            ratios.append(watched / bare)
        ratio = statistics.median(ratios)
        print(
            f"log line every {log_steps} step(s): ratio {ratio:.4f} "
            f"(pairs: {', '.join(f'{one:.4f}' for one in sorted(ratios))})"
        )
        if log_steps == 50:
            worst = ratio
    print(f"watched ÷ bare: {worst:.4f}, wanted at most {WANTED}")
    return int(worst > WANTED)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--log-steps", type=int, nargs="+", default=[50, 1])
    return parser.parse_args()


def _model_and_data() -> tuple[Any, Any]:
    model = models.build("digits", 0, "float32")
    return model, data.open_data(data.DataOptions(seed=0))


def _plan(model: Any, examples: Any, steps: int, log_steps: int) -> Plan:
    optimizer = keras.optimizers.Adam(1e-6)
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    epochs = -(-steps // (examples.training_examples // BATCH))
    return Plan(
        model=model,
        optimizer=optimizer,
        rate=lambda step: 1e-6,
        strategy=strategy,
        data=examples,
        policy="float32",
        global_batch=BATCH,
        accumulate=1,
        epochs=epochs,
        total_steps=steps,
        log_steps=log_steps,
        validate_epochs=0,
    )


class Stopwatch:
    """A step and a wait; from the beginning of step FIRST to that of the last one."""

    def __init__(self, step: Callable[[Any], None], wait_s: float) -> None:
        self._step = step
        self._wait_s = wait_s
        self.began: list[float] = []

    def __call__(self, batch: Any) -> None:
        self.began.append(time.perf_counter())
        self._step(batch)
        time.sleep(self._wait_s)

    @property
    def seconds(self) -> float:
        return self.began[-1] - self.began[FIRST]


def _step_s(model: Any, examples: Any) -> float:
    watch = Stopwatch(_waiting_step(_plan(model, examples, 50, 50)), 0.0)
    for batch in examples.training(0, 0, BATCH, tf.distribute.InputContext()).take(50):
        watch(batch)
    return watch.seconds / (49 - FIRST)


def _waiting_step(plan: Plan) -> Callable[[Any], None]:
    """A step that is over when it returns, which the loop itself does not wait for."""
    sums = Sums(plan.strategy)
    step = make_train_step(plan, sums)

    def waiting(batch: Any) -> None:
        step(batch)
        plan.optimizer.iterations.numpy()

    return waiting


def _bare(model: Any, examples: Any, wait_s: float, steps: int) -> float:
    plan = _plan(model, examples, steps, steps)
    watch = Stopwatch(make_train_step(plan, Sums(plan.strategy)), wait_s)
    while len(watch.began) < steps:
        for batch in examples.training(0, 0, BATCH, tf.distribute.InputContext()).take(
            steps - len(watch.began)
        ):
            watch(batch)
    return watch.seconds


def _watched(model: Any, examples: Any, wait_s: float, steps: int, log_steps: int) -> float:
    with tempfile.TemporaryDirectory(prefix="tfjobtui-bench-") as name:
        folder = Path(name)
        (folder / "checkpoints").mkdir()
        telemetry = Telemetry(folder, 0)
        plan = _plan(model, examples, steps, log_steps)
        progress, stop = Progress(), StopRequest()
        stop.install()
        saved = Checkpoints(
            folder / "checkpoints", model, plan.optimizer, progress, every_steps=None, every_s=600, keep=3
        )
        around = Surroundings(telemetry.event, lambda: None, Best("val_accuracy", folder / "best.keras"))
        engine = Engine(plan, progress, saved, Agreement(plan.strategy, None, stop), around)
        watch = engine._train_step = Stopwatch(engine._train_step, wait_s)  # type: ignore[assignment]
        telling = keras.callbacks.CallbackList(
            [
                TelemetryCallback(telemetry, total_steps=steps, epochs=plan.epochs, every=1),
                TensorBoardCallback(folder / "tensorboard", every=1),
                LogLines(steps, plan.epochs),
            ],
            model=model,
            epochs=plan.epochs,
            steps=plan.steps_per_epoch,
        )
        sampler = Sampler(
            folder, lambda sample: telemetry.event("usage", engine.step, **sample), 0, every_s=1.0
        )
        sampler.start()
        with contextlib.redirect_stdout(io.StringIO()):
            engine.train(telling)
        sampler.end()
        return watch.seconds


if __name__ == "__main__":
    sys.exit(main())
