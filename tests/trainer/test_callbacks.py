"""Our callbacks in a user's own script, with `model.fit`, beside a module of theirs that is called trainer."""

from pathlib import Path

import pytest

from tests.trainer.children import answer
from tfjobtui.runs.telemetry import read_lines, read_run, read_status

pytestmark = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]

SCRIPT = """
import keras, numpy as np
import trainer
from tfjob_trainer.callbacks import TelemetryCallback, TensorBoardCallback
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
features, labels = np.random.default_rng(0).random((96, 4)), np.arange(96) % 3
telling = [
    TelemetryCallback("run", batch_size=8, every=4),
    TensorBoardCallback("run/tensorboard", every=4),
]
history = model.fit(features, labels, batch_size=8, epochs=2, verbose=0, callbacks=telling,
                    validation_data=(features, labels))

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
def read(part):
    events = EventAccumulator(f"run/tensorboard/{part}").Reload()
    tags = events.Tags()["tensors"]
    return {tag: [(e.step, e.tensor_proto.float_val[0]) for e in events.Tensors(tag)] for tag in tags}
result = {"mine": trainer.MINE, "history": history.history}
result |= {part: read(part) for part in ("train", "validation")}
"""


def test_a_users_own_script(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("MINE = True\n")
    found = answer(f"sys.path.insert(0, '.'){SCRIPT}", cwd=tmp_path)
    assert found["mine"]
    history = found["history"]
    assert [step for step, _ in found["train"]["batch_loss"]] == [4, 8, 12, 16, 20, 24]
    for name in ("loss", "accuracy"):
        assert found["train"][f"epoch_{name}"] == [
            [0, pytest.approx(history[name][0])],
            [1, pytest.approx(history[name][1])],
        ]
        held = [pytest.approx(value) for value in history[f"val_{name}"]]
        assert [value for _, value in found["validation"][f"epoch_{name}"]] == held
    assert found["train"]["epoch_learning_rate"][0] == [0, pytest.approx(0.001)]

    about, status = read_run(tmp_path / "run"), read_status(tmp_path / "run")
    assert about
    assert status
    assert (about.total_steps, about.steps_per_epoch, about.attempt) == (24, 12, 0)
    assert (status.status, status.step, status.epoch, status.epochs) == ("completed", 24, 2, 2)
    assert status.val_accuracy == pytest.approx(history["val_accuracy"][1])
    lines, _ = read_lines(tmp_path / "run" / "telemetry-0-0.jsonl")
    assert [line.kind for line in lines] == ["start", *["step"] * 3, "epoch", *["step"] * 3, "epoch", "end"]
    assert (lines[1].number("samples_per_s") or 0) > 0
