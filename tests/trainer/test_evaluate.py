"""The evaluation of runs."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.children import answer
from tests.trainer.running import LIMIT_S, SHORT, TRAINER, break_off, environment, state
from tfjob_trainer import evaluate
from tfjob_trainer.errors import UsageError

trainer = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run tfjob-evaluate to its end."""
    return subprocess.run(
        [sys.executable, str(TRAINER), "evaluate", *map(str, arguments)],
        cwd=cwd,
        env=environment(SLURM_JOB_ID="77"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def result(folder: Path) -> dict[str, Any]:
    """What evaluation.json holds."""
    values: dict[str, Any] = json.loads((folder / "evaluation.json").read_text())
    return values


class TestDigits:
    """On runs of the trainer itself."""

    pytestmark = trainer

    def test_it_finds_what_training_found(self, finished: tuple[Path, str], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(finished[0], tmp_path / "run"))
        done = run("--model-dir", folder, "--which", "last", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        found, metrics = result(folder), state(folder)["metrics"]
        assert found["top1"] == pytest.approx(metrics["val_accuracy"], abs=1e-9)
        assert found["loss"] == pytest.approx(metrics["val_loss"], rel=1e-4)
        assert found["top1"] <= found["top5"] <= 1
        assert (found["version"], found["count"], found["broken"], found["step"]) == (1, 297, 0, 92)
        assert (found["status"], found["job_id"], found["which"]) == ("completed", "77", "last")
        assert found["model"] == str(folder / "model.keras")
        assert (
            f"297 examples of validation: loss {found['loss']:.4f}, top-1 {found['top1']:.4f}" in done.stdout
        )
        assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]

    def test_an_unfinished_run(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        break_off(signal.SIGTERM, "step 35/", *SHORT, "--model-dir", folder, cwd=tmp_path)
        refused = run("--model-dir", folder, cwd=tmp_path)
        assert refused.returncode == 2
        assert "is not complete (stopped, step " in refused.stderr
        assert not (folder / "evaluation.json").exists()
        done = run("--model-dir", folder, "--allow-unfinished", "--which", "last", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = result(folder)
        assert found["model"] == f"{folder}/checkpoints/ckpt-{state(folder)['step']}"
        assert found["status"] == "stopped"
        assert found["top1"] > 0.6


@pytest.fixture(scope="module")
def records(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run on TFRecords with a model that sees how grey an image is, and the figures as they have to be."""
    script = """
    import keras
    import numpy as np
    from tests.trainer import small_data
    from tfjob_trainer import models, state
    from tfjob_trainer.data import ImageForm
    folder = Path(sys.argv[1])
    small_data.make(folder / "set", [9, 9], [7, 4])
    run = folder / "run"
    run.mkdir()
    form = ImageForm((16, 16, 3), 5, True)
    model = models.build("digits", 0, "float32", form)
    model.save(run / "model.keras")
    settings = {"model": "digits", "seed": 0, "batch_size": 4, "data_dir": str(folder / "set"), "precision": "float32"}
    (run / "run.json").write_text(json.dumps({"version": 1, "settings": settings}))
    state.write(run, state.State("completed", 3, 1, None, 0, 0, 0.0))
    def figures(count):
        images = np.stack([np.full((16, 16, 3), number, "uint8") for number in range(count)])
        labels = np.arange(count) % 5
        logits = model(images).numpy()
        return {
            "loss": float(keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)),
            "top1": float((logits.argmax(-1) == labels).mean()),
        }
    result = {"train": figures(18), "said": ""}
    from tfjob_trainer import data, evaluation
    from tfjob_trainer.errors import UsageError
    try:
        examples = data.open_data(data.DataOptions(seed=0, folder=folder / "set"))
        evaluation._check_output(models.build("digits", 0, "float32"), examples, run / "model.keras")
    except UsageError as error:
        result["said"] = str(error)
    """
    folder = tmp_path_factory.mktemp("records")
    figures: dict[str, Any] = answer(script, folder)
    return folder, figures


class TestRecords:
    """On 18 records in batches of 4: the last one is padded."""

    pytestmark = trainer

    def test_every_record_counts_once(self, records: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(records[0] / "run", tmp_path / "run"))
        done = run("--model-dir", folder, "--split", "train", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = result(folder)
        assert (found["count"], found["top5"]) == (18, None)  # of five classes each is among the first five
        assert found["loss"] == pytest.approx(records[1]["train"]["loss"], rel=1e-3)
        assert found["top1"] == pytest.approx(records[1]["train"]["top1"])
        assert found["data"] == {
            "name": "small",
            "folder": str(records[0] / "set"),
            "split": "train",
            "image_size": 16,
        }

    def test_data_of_other_classes(self, records: tuple[Path, dict[str, Any]]) -> None:
        assert "model.keras tells 10 classes apart, but the data set small has 5" in records[1]["said"]


def test_what_is_no_run(tmp_path: Path) -> None:
    options = evaluate.Options(**vars(evaluate.make_parser().parse_args(["--model-dir", str(tmp_path)])))
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="is not a run folder of tfjob-train"):
            evaluate.check_run(folder, options)
