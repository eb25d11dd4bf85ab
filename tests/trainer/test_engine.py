"""The parts of the engine that need TensorFlow, in as few processes as can be."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.children import answer
from tests.trainer.running import SHORT, run
from tfjob_trainer import options, recipes
from tfjob_trainer.errors import UsageError

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


def test_the_recipe_is_the_published_one_and_gives_way() -> None:
    asked = options.parse(["--recipe", "resnet50"])
    assert (asked.model, asked.epochs, asked.batch_per_replica, asked.batch_size) == (
        "resnet50",
        90,
        256,
        None,
    )
    assert (asked.optimizer, asked.momentum, asked.weight_decay) == ("sgd", 0.875, 1 / 32768)
    assert (asked.learning_rate, asked.learning_rate_batch, asked.label_smoothing) == (0.256, 256, 0.1)
    changed = options.parse(
        ["--recipe", "resnet50", "--batch-size", "1024", "--steps", "50", "--momentum", "0.9"]
    )
    assert (changed.batch_size, changed.batch_per_replica) == (1024, None)
    assert (changed.steps, changed.epochs, changed.momentum, changed.schedule) == (50, None, 0.9, "cosine")
    assert all(set(recipe) <= set(options.Options.__slots__) for recipe in recipes.RECIPES.values())


def test_sums_and_steps() -> None:
    """Schedules, smoothing, weight decay, accumulation: against what Keras and numpy say."""
    found = answer(
        """
        import keras, numpy as np, tensorflow as tf
        from tfjob_trainer import data, models, optimizers, options, steps
        result = {}

        asked = options.parse("--recipe resnet50 --warmup-epochs 2 --epochs 10".split())
        schedule = optimizers.make_schedule(asked, 512, 10, 100)
        result["plain"] = [abs(schedule.at(step) - float(schedule(step))) for step in range(0, 120, 7)]
        result["cosine"] = [float(schedule(step)) for step in (0, 9, 19, 20, 60, 100, 200)]
        stepped = optimizers.Schedule("step", 1.0, 0, 100, [30, 60], 0.1)
        result["plain"] += [abs(stepped.at(step) - float(stepped(step))) for step in (0, 29, 30, 60)]
        result["step"] = [float(stepped(step)) for step in (0, 29, 30, 60)]

        logits, labels = tf.random.normal([8, 5], seed=1), tf.range(8) % 5
        smoothed = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, reduction="none")
        expected = smoothed(tf.one_hot(labels, 5), logits).numpy()
        result["smoothing"] = float(np.abs(steps.cross_entropy(labels, logits, 0.1).numpy() - expected).max())

        def weights(*words):
            asked = options.parse(["--optimizer", "sgd", "--learning-rate", "0.1", *words])
            examples = data.open_data(data.DataOptions(seed=0))
            strategy = tf.distribute.get_strategy()
            inputs = keras.Input((8, 8, 1))
            keras.utils.set_random_seed(0)
            hidden = keras.layers.Dense(6, activation="relu")(keras.layers.Flatten()(inputs))
            model = keras.Model(inputs, keras.layers.Dense(10)(hidden))
            optimizer = optimizers.make_optimizer(
                asked, optimizers.make_schedule(asked, 60, 25, 50), model.trainable_variables)
            optimizer.build(model.trainable_variables)
            plan = steps.Plan(
                model, optimizer, stepped.at, strategy, examples, "float32", 60, asked.accumulate, 2, 50, 5,
                l2=optimizers.l2_of(asked), xla=asked.xla)
            sums = steps.Sums(strategy)
            step = steps.make_train_step(plan, sums)
            before = [weight.copy() for weight in model.get_weights()]
            for features, labels in examples.training(0, 0, 60, tf.distribute.InputContext()).take(3):
                step((features, labels))
            return before, model.get_weights(), sums.take().tolist(), sums.take().tolist()

        def distance(one, two):
            return max(float(np.abs(a - b).max()) for a, b in zip(one, two))

        before, plain, sums, again = weights()
        result["sums"], result["again"] = sums, again
        _, parts, in_parts, _ = weights("--accumulate", "4")
        result["accumulated"] = [distance(plain, parts), abs(sums[0] - in_parts[0]), sums[1:] == in_parts[1:]]
        result["xla"] = distance(plain, weights("--xla")[1])
        decayed = weights("--weight-decay", "0.5", "--momentum", "0")[1]
        undecayed = weights("--momentum", "0")[1]
        result["decay"] = [float(np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(decayed, undecayed)]
        adamw = optimizers.make_optimizer(options.parse("--optimizer adamw --weight-decay 0.1".split()), stepped, [])
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
        result["decayed"] = [v.path for v in optimizers.decayed_variables(model.trainable_variables)]
        """
    )
    assert max(found["plain"]) < 1e-6
    assert found["cosine"] == pytest.approx([0.0256, 0.256, 0.512, 0.512, 0.256, 0, 0], abs=1e-6)
    assert found["step"] == pytest.approx([1, 1, 0.1, 0.01])
    assert found["smoothing"] < 1e-6
    assert found["sums"][2] == 180
    assert found["again"] == [0, 0, 0]
    distance, loss, counts_agree = found["accumulated"]
    assert distance < 1e-6
    assert loss < 1e-3
    assert counts_agree
    assert found["xla"] < 1e-6
    kernel, _, second_kernel, _ = found["decay"]
    assert kernel == pytest.approx(0.95**3, abs=0.02)
    assert second_kernel == pytest.approx(0.95**3, abs=0.04)
    assert [path.rpartition("/")[2] for path in found["decayed"]] == ["kernel"]


@pytest.mark.parametrize(
    ("words", "replicas", "earlier", "expected"),
    [
        ("--batch-size 64", 4, None, (64, 1)),
        ("--batch-size 64 --accumulate 4", 2, None, (64, 4)),
        ("--batch-per-replica 32", 4, None, (128, 1)),
        ("--batch-per-replica 32 --accumulate 2", 4, None, (256, 2)),
        # A run keeps its batch on another number of replicas, and each replica what it holds at a time.
        ("--batch-per-replica 32", 1, 128, (128, 4)),
        ("--batch-per-replica 32", 8, 128, (128, 1)),
        ("--batch-per-replica 32", 2, 192, (192, 3)),
        ("--batch-size 63", 2, None, "the nearest that can: 64"),
        ("--batch-size 64 --accumulate 5", 2, None, "in 5 parts each; the nearest that can: 60"),
    ],
)
def test_sharing_a_batch(words: str, replicas: int, earlier: int | None, expected: Any) -> None:
    from tfjob_trainer import batches

    asked = options.parse(words.split())
    if isinstance(expected, str):
        with pytest.raises(UsageError, match=re.escape(expected)):
            batches.share(asked, replicas, earlier)
    else:
        assert batches.share(asked, replicas, earlier) == expected


def test_steps_end_a_run_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    """And with more of them, in parts, with another optimizer's schedule, it goes on from there."""
    folder = tmp_path / "run"
    words = ("--device", "cpu", "--log-steps", "10", "--model-dir", folder, "--optimizer", "sgd")
    done = run(*words, "--steps", "30", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "30 steps, 23 in an epoch" in done.stdout
    assert re.search(r"completed: 1 epochs, 30 steps, val_accuracy 0\.\d+ in ", done.stdout)
    again = run(*words, "--steps", "30", cwd=tmp_path)
    assert "completed already: 1 epochs, 30 steps" in again.stdout
    more = run(*words, "--steps", "46", "--replicas", "2", "--accumulate", "2", cwd=tmp_path)
    assert more.returncode == 0, more.stderr
    assert "ckpt-30, now with replicas 2 (before: 1)\n" in more.stdout
    assert "step 40/46  epoch 2/2" in more.stdout
    assert "completed: 2 epochs, 46 steps" in more.stdout


def test_a_loss_that_is_not_a_number_spares_the_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = (*SHORT, "--optimizer", "sgd", "--learning-rate", "1000", "--model-dir", folder)
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(
        r"the loss is (not a number|infinite) at step \d+: nothing was saved since step 0", done.stderr
    )
    assert not list((folder / "checkpoints").glob("*.index"))
