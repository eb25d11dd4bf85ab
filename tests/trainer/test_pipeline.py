"""The input pipeline: its order, what is left out, what is broken."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.children import answer
from tfjob_trainer import limits, manifest
from tfjob_trainer.errors import UsageError
from tfjob_trainer.manifest import Manifest, Shard, Split

trainer = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


@pytest.fixture(scope="module")
def ordered(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What one process found out about the order; 40 shards are three groups."""
    script = """
    import numpy as np
    import tensorflow as tf
    from tests.trainer import small_data
    from tests.trainer.small_data import context
    from tfjob_trainer import data, images, order
    folder = Path(sys.argv[1]) / "set"
    small_data.make(folder, [9 + number % 3 for number in range(40)], [7, 11, 5])

    def opened(seed=3):
        return data.open_data(data.DataOptions(seed=seed, folder=folder))

    def greys(batches):
        return [[int(value) for value in images[:, 0, 0, 0]] for images, *_ in batches]

    ours = opened()
    whole = greys(ours.training(1, 0, 20, context()))
    tf.random.set_seed(99)
    result = {"whole": whole, "examples": ours.training_examples, "form": [*ours.form.shape, ours.form.classes]}
    result["again"] = greys(opened().training(1, 0, 20, context()))
    result["tails"] = {step: greys(ours.training(1, step, 20, context())) for step in (1, 13, 19)}
    result["epoch"] = greys(ours.training(2, 0, 20, context()))
    result["seed"] = greys(opened(4).training(1, 0, 20, context()))
    result["workers"] = [greys(ours.training(1, 0, 24, context(3, number, 2))) for number in range(3)]
    result["tail_of_worker"] = greys(ours.training(1, 11, 24, context(3, 1, 2)))
    held = [list(ours.validation(12, context(2, number, 2))) for number in range(2)]
    result["held_batches"] = [len(batches) for batches in held]
    result["held"] = sorted(
        int(label)
        for batches in held for _, labels, weights in batches
        for label, weight in zip(labels, weights) if weight
    )
    for number in order.file_order(3, 1, 40)[:16]:  # the first group
        (folder / f"train-{number:05}-of-00040.tfrecord").unlink()
    result["without"] = greys(ours.training(1, 10, 20, context()))

    ramp = np.broadcast_to(np.arange(100, dtype=np.uint8)[None, :, None] * 2, (60, 100, 3))
    encoded = tf.io.encode_jpeg(ramp, quality=100)
    crops = [images.random_crop(encoded, 32, tf.constant([5, number], tf.int64)).numpy() for number in range(40)]
    again = [images.random_crop(encoded, 32, tf.constant([5, number], tf.int64)).numpy() for number in range(40)]
    rises = [crop[16, -1, 0].astype(int) - crop[16, 0, 0] for crop in crops]
    middle = images.centre(encoded, 32).numpy()
    result["images"] = {
        "same": all((one == other).all() for one, other in zip(crops, again)),
        "dtype": str(crops[0].dtype), "shape": list(crops[0].shape),
        "mirrored": sum(int(rise < 0) for rise in rises),
        "widths": len(set(map(int, rises))),
        "widest": int(max(map(abs, rises))),
        "middle": [int(middle[16, 0, 0]), int(middle[16, -1, 0])],
        "whole": int(images.whole(encoded, 50).numpy()[25, -1, 0]),
    }
    """
    found: dict[str, object] = answer(script, tmp_path_factory.mktemp("ordered"))
    return found


class TestOrder:
    """On 399 records whose greys are their numbers (modulo 256), in batches of 20."""

    pytestmark = trainer

    def test_it_hangs_on_seed_and_epoch_alone(self, ordered: dict[str, list[list[int]]]) -> None:
        assert ordered["form"] == [16, 16, 3, 5]
        assert len(ordered["whole"]) == 19
        assert ordered["again"] == ordered["whole"]
        assert ordered["epoch"] != ordered["whole"]
        assert ordered["seed"] != ordered["whole"]

    def test_it_is_mixed(self, ordered: dict[str, list[list[int]]]) -> None:
        flat = [grey for batch in ordered["whole"] for grey in batch]
        neighbours = sum(abs(one - other) == 1 for one, other in pairwise(flat))
        assert neighbours < 20

    def test_it_can_be_taken_up_at_any_step(self, ordered: dict[str, dict[str, object]]) -> None:
        for step, tail in ordered["tails"].items():
            assert tail == list(ordered["whole"])[int(step) :], step

    def test_workers_share_the_records(self, ordered: dict[str, list[list[list[int]]]]) -> None:
        """Three workers with two replicas each: 16 steps of 24, two batches of 4 a worker and step."""
        assert [len(batches) for batches in ordered["workers"]] == [32, 32, 32]
        seen = sorted(grey for batches in ordered["workers"] for batch in batches for grey in batch)
        expected = [number % 256 for number in range(399)]
        assert len(seen) == 384
        for grey in set(seen):
            assert seen.count(grey) <= expected.count(grey)
        assert ordered["tail_of_worker"] == ordered["workers"][1][22:]

    def test_validation_has_every_record_once(self, ordered: dict[str, object]) -> None:
        assert ordered["held_batches"] == [4, 4]
        assert ordered["held"] == sorted(number % 5 for number in range(23))

    def test_what_comes_before_the_step_is_not_read(self, ordered: dict[str, object]) -> None:
        assert ordered["without"] == list(ordered["whole"])[10:]  # type: ignore[call-overload]

    def test_images_are_cropped_and_mirrored_by_their_seed_alone(self, ordered: dict[str, Any]) -> None:
        """On an image that is brighter from left to right."""
        found = ordered["images"]
        assert found["same"]
        assert (found["dtype"], found["shape"]) == ("uint8", [32, 32, 3])
        assert 10 < found["mirrored"] < 30
        assert found["widths"] > 10
        assert found["widest"] > 100
        assert found["middle"] == [
            pytest.approx(48, abs=3),
            pytest.approx(150, abs=3),
        ]  # 52 of 60 pixels: 24 to 75
        assert found["whole"] > 190


KINDS = {
    "no JPEG": r"record 7 at offset \d+ has no JPEG that can be decoded",
    "label": r"record 7 at offset \d+ has label 9, where the 5 classes have 0 to 4",
    "frame": r"record 7 at offset \d+: corrupted record",
    "short": r"train-00001-of-00003.tfrecord has 7 records where dataset.json says 12",
}


@pytest.fixture(scope="module")
def broken(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """For each kind of damage: the steps before the error, what is said, and what --skip-broken makes of it."""
    script = """
    import tensorflow as tf
    from tests.trainer import small_data
    from tests.trainer.small_data import context
    from tfjob_trainer import data, records
    folder = Path(sys.argv[1]) / "set"
    small_data.make(folder, [12, 12, 12], [5])
    file = "train-00001-of-00003.tfrecord"
    whole = (folder / file).read_bytes()
    good = [one for _, one in records.scan(folder / file)]
    offset = records.offset_of(folder / file, 7)

    def with_record(change):
        example = tf.train.Example.FromString(good[7])
        change(example.features.feature)
        small_data.write(folder / "other", [*good[:7], example.SerializeToString(), *good[8:]])
        return (folder / "other").read_bytes()

    def no_jpeg(feature):
        feature["image/encoded"].bytes_list.value[0] = b"no image"

    def label(feature):
        feature["image/class/label"].int64_list.value[0] = 9

    damages = {
        "no JPEG": with_record(no_jpeg), "label": with_record(label),
        "frame": whole[:offset + 30] + bytes([whole[offset + 30] ^ 1]) + whole[offset + 31:],
        "short": whole[:offset],
    }
    result = {}
    for kind, damaged in damages.items():
        small_data.change(folder, file, damaged)
        strict = data.open_data(data.DataOptions(seed=0, folder=folder))
        done, said = 0, None
        try:
            for _ in strict.training(0, 0, 6, context()):
                done += 1
        except tf.errors.OpError as error:
            said = str(strict.explain(error, done))
        result[kind] = {"said": said}
        if kind in ("label", "short"):
            continue
        lax = data.open_data(data.DataOptions(seed=0, folder=folder, skip_broken=True))
        labels = [int(label) for _, labels in lax.training(0, 0, 6, context()) for label in labels]
        again = [int(label) for _, labels in lax.training(0, 4, 6, context()) for label in labels]
        result[kind] |= {"labels": labels, "again": again, "broken": lax.broken_records}
    small_data.change(folder, file, whole)
    # In validation a broken record weighs nothing.
    held = "validation-00000-of-00001.tfrecord"
    small_data.write(folder / "other", [b"junk", *[small_data.record(number) for number in range(1, 5)]])
    small_data.change(folder, held, (folder / "other").read_bytes())
    lax = data.open_data(data.DataOptions(seed=0, folder=folder, skip_broken=True))
    weights = [float(value) for *_, weights in lax.validation(4, context()) for value in weights]
    result["validation"] = {"weights": weights, "broken": lax.broken_records}
    """
    found: dict[str, dict[str, object]] = answer(script, tmp_path_factory.mktemp("broken"))
    return found


class TestBroken:
    """Damage in record 7 of the second of three shards of 12."""

    pytestmark = trainer

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_named(self, broken: dict[str, dict[str, str]], kind: str) -> None:
        assert re.search(KINDS[kind], broken[kind]["said"]), broken[kind]["said"]
        assert "--skip-broken" in broken[kind]["said"]

    @pytest.mark.parametrize(("kind", "count"), [("no JPEG", 1), ("frame", 5)])
    def test_it_is_left_out(self, broken: dict[str, dict[str, list[int]]], kind: str, count: int) -> None:
        """After a broken frame nothing of the file can be read. The number of steps stays as it is."""
        found = broken[kind]
        assert found["broken"] == count
        assert len(found["labels"]) == 36
        assert set(found["labels"]) <= set(range(5))
        assert found["again"] == found["labels"][24:]

    def test_in_validation_it_weighs_nothing(self, broken: dict[str, dict[str, object]]) -> None:
        assert broken["validation"] == {"weights": [0, 1, 1, 1, 1, 0, 0, 0], "broken": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set of one shard, whose bytes do not matter here."""
    (tmp_path / "train-00000-of-00001.tfrecord").write_bytes(b"x" * 10)
    split = Split(3, (1, 2), (Shard("train-00000-of-00001.tfrecord", 3, 10, ""),))
    manifest.write(tmp_path, Manifest("small", ("a", "b"), {"train": split}, label_base=1))
    return tmp_path


def test_a_manifest_is_read_as_written(folder: Path) -> None:
    described = manifest.read_checked(folder)
    assert (described.classes, described.label_base, described.augment) == (("a", "b"), 1, None)
    assert described.splits["train"].size_bytes == 10


def test_a_folder_that_is_no_data_set(folder: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        manifest.read_checked(folder / "nowhere")
    (folder / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no dataset.json and no TFRecords.*tfjob-preprocess --source"):
        manifest.read_checked(folder / "empty")
    (folder / "dataset.json").unlink()
    with pytest.raises(UsageError, match=r"run: tfjob-preprocess --check"):
        manifest.read_checked(folder)


def test_a_shard_that_is_not_as_it_was(folder: Path) -> None:
    shard = folder / "train-00000-of-00001.tfrecord"
    shard.write_bytes(b"x" * 9)
    with pytest.raises(
        UsageError, match=r"train-00000-of-00001.tfrecord has 9 bytes where dataset.json says 10"
    ):
        manifest.read_checked(folder)
    shard.unlink()
    with pytest.raises(UsageError, match=r"train-00000-of-00001.tfrecord.*No such file.*Copy it again"):
        manifest.read_checked(folder)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"splits": {}}, {"splits": {"train": {"examples": 4}}}, {"classes": None}]
)
def test_a_manifest_that_cannot_be(folder: Path, change: dict[str, object]) -> None:
    path = folder / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UsageError, match=r"dataset\.json"):
        manifest.read_checked(folder)


def test_counts_that_do_not_add_up(folder: Path) -> None:
    path = folder / "dataset.json"
    path.write_text(path.read_text().replace('"examples": 3', '"examples": 4', 1))
    with pytest.raises(UsageError, match="4 examples, but its shards have another sum"):
        manifest.read_checked(folder)


@pytest.mark.parametrize(
    ("variables", "files", "memory_mib"),
    [
        ({}, {}, 8000),
        ({"SLURM_MEM_PER_NODE": "2000"}, {}, 2000),
        ({"SLURM_MEM_PER_NODE": "0"}, {}, 8000),  # all of the node
        ({"SLURM_MEM_PER_CPU": "500", "SLURM_CPUS_PER_TASK": "3"}, {}, 1500),
        ({}, {"cgroup": "0::/job/step\n", "sys/fs/cgroup/job/memory.max": str(300 << 20)}, 300),
        ({}, {"cgroup": "0::/job\n", "sys/fs/cgroup/job/memory.max": "max"}, 8000),
        (
            {},
            {
                "cgroup": "5:memory:/slurm\n4:cpu:/x",
                "sys/fs/cgroup/memory/slurm/memory.limit_in_bytes": str(1 << 30),
            },
            1024,
        ),
    ],
)
def test_the_memory_that_we_may_use(
    tmp_path: Path, variables: dict[str, str], files: dict[str, str], memory_mib: int
) -> None:
    files = {"meminfo": f"MemTotal: {8000 * 1024} kB\n", "cgroup": "", **files}
    for name, text in files.items():
        path = tmp_path / {"meminfo": "proc/meminfo", "cgroup": "proc/self/cgroup"}.get(name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert limits.memory_bytes(variables, tmp_path) == memory_mib << 20
