"""From images to TFRecords, as a user does it: in processes, on files."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.children import answer, preprocess
from tests.trainer.running import LIMIT_S, TRAINER, environment
from tfjob_trainer import manifest, progress, sources
from tfjob_trainer import preprocess as command
from tfjob_trainer.errors import UsageError

trainer = pytest.mark.trainer


def bytes_of(folder: Path) -> dict[str, str]:
    """Every file below a folder, by a hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def digits(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The digits as TFRecords, made without a disturbance, and what was said. Tests only read it."""
    folder = tmp_path_factory.mktemp("digits") / "records"
    done = preprocess("--source", "digits", "--out", folder, "--workers", "1", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def images(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of images of all sorts: good ones in train/ and val/, and with them `broken/` and `odd/`."""
    script = """
    import io
    import numpy as np
    from PIL import Image
    root = Path(sys.argv[1])
    random = np.random.default_rng(0)

    def put(name, size=(20, 14), mode="RGB", **options):
        pixels = random.integers(0, 256, (size[1], size[0], 3), np.uint8)
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).convert(mode).save(path, **options)
        return path

    for split in ("train", "val"):
        for number in range(3):
            put(f"{split}/cat/{number}.jpg")
            put(f"{split}/dog é/sub/{number}.JPEG", mode="L" if number else "RGB")
    put("train/cat/palette.png", mode="P")
    put("train/cat/clear.png", mode="RGBA")
    put("train/cat/really a png.jpg", format="PNG")
    put("train/dog é/still.gif", mode="P")
    flat = Image.new("P", (20, 14), 1)
    flat.putpalette([0, 0, 0, 250, 30, 40])
    flat.save(root / "train/dog é/palette.bmp")
    (root / "train/cat/notes.txt").write_text("no image")
    (root / "train/cat/.hidden.jpg").write_text("")

    put("bad/cmyk.jpg", mode="CMYK")
    deep = Image.fromarray(np.full((8, 8), 40_000, np.uint16))
    deep.save(root / "bad/deep.png")
    frames = [Image.new("L", (8, 8), grey) for grey in (0, 128, 255)]
    frames[0].save(root / "bad/film.gif", save_all=True, append_images=frames[1:])
    frames[0].save(root / "bad/film.png", save_all=True, append_images=frames[1:])
    good = put("bad/cut.jpg").read_bytes()
    (root / "bad/cut.jpg").write_bytes(good[:-100])
    (root / "bad/end.jpg").write_bytes(good[:-2])
    (root / "bad/cut.png").write_bytes(put("bad/cut.png").read_bytes()[:-400])
    (root / "bad/empty.jpg").write_bytes(b"")
    (root / "bad/page.jpg").write_bytes(b"<html>404</html>")
    put("bad/web.webp")
    result = None
    """
    root = tmp_path_factory.mktemp("images")
    answer(script, root)
    return root


def records(folder: Path) -> dict[str, Any]:
    """What stands in the records of a folder, by the images' names."""
    script = """
    import hashlib
    import tensorflow as tf
    result = {}
    for path in sorted(Path(sys.argv[1]).glob("*.tfrecord")):
        for one in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            feature = tf.train.Example.FromString(one).features.feature
            encoded = feature["image/encoded"].bytes_list.value[0]
            pixels = tf.io.decode_jpeg(encoded, channels=3).numpy()
            result[feature["image/filename"].bytes_list.value[0].decode()] = {
                "split": path.name.split("-")[0],
                "sha256": hashlib.sha256(encoded).hexdigest(),
                "size": [feature["image/height"].int64_list.value[0], feature["image/width"].int64_list.value[0]],
                "decoded": list(pixels.shape[:2]),
                "label": feature["image/class/label"].int64_list.value[0],
                "text": feature["image/class/text"].bytes_list.value[0].decode(),
                "channels": feature["image/channels"].int64_list.value[0],
                "corner": pixels[0, 0].tolist(),
            }
    """
    found: dict[str, Any] = answer(script, folder)
    return found


@trainer
def test_the_digits(digits: tuple[Path, str]) -> None:
    folder, said = digits
    described = manifest.read_checked(folder)
    assert {name: split.examples for name, split in described.splits.items()} == {
        "train": 1500,
        "validation": 297,
    }
    assert len(described.classes) == 10
    assert sum(described.splits["train"].per_class) == 1500
    assert (described.augment, described.image_size, described.skipped) == (False, 32, 0)
    for split in described.splits.values():
        for shard in split.shards:
            assert hashlib.sha256((folder / shard.file).read_bytes()).hexdigest() == shard.sha256
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["dataset.json", *(shard.file for split in described.splits.values() for shard in split.shards)]
    )
    assert said.endswith(f"train with: tfjob-train --data-dir {folder}\n")
    assert all(line.startswith("tfjob-preprocess: ") for line in said.splitlines())


@trainer
def test_a_complete_data_set_is_left_as_it_is(digits: tuple[Path, str]) -> None:
    folder, _ = digits
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    done = preprocess("--source", "digits", "--out", folder, cwd=folder.parent)
    assert done.returncode == 0
    assert "complete already: 1500 train" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    other = preprocess("--source", "digits", "--out", folder, "--shards", "3", cwd=folder.parent)
    assert other.returncode == 2
    assert "--restart to make it anew" in other.stderr


@trainer
@pytest.mark.usefixtures("_tensorflow")
def test_killed_at_any_moment_the_result_is_the_same(digits: tuple[Path, str], tmp_path: Path) -> None:
    """Killed once when a few shards are there; what is there is kept, and all bytes are the same in the end."""
    out = tmp_path / "records"
    arguments = ["preprocess", "--source", "digits", "--out", str(out), "--workers", "1"]
    with subprocess.Popen(
        [sys.executable, str(TRAINER), *arguments], env=environment(), stdout=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + LIMIT_S
        while len(list(out.glob(".tfjob-preprocess/*.tfrecord.json"))) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*.tfrecord")}
    assert 3 <= len(kept) < 20
    assert not (out / "dataset.json").exists()
    done = preprocess(*arguments[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"going on: \d+ of 20 shards are there already", done.stdout)
    assert bytes_of(out) == bytes_of(digits[0])
    unchanged = [path for path, written in kept.items() if path.stat().st_mtime_ns == written]
    assert len(unchanged) >= 3


@trainer
def test_a_folder_of_images(images: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "pets", tmp_path / "records"
    source.mkdir()
    for split in ("train", "val"):
        (source / split).symlink_to(images / split)
    done = preprocess("--source", source, "--out", out, "--workers", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "passed over, since they are no images by their names: 1 .txt" in done.stdout
    described = manifest.read_checked(out)
    assert (described.name, described.classes) == ("pets", ("cat", "dog é"))
    assert {name: split.per_class for name, split in described.splits.items()} == {
        "train": (6, 5),
        "validation": (3, 3),
    }
    found = records(out)
    assert len(found) == 17
    assert all(record["size"] == record["decoded"] == [14, 20] for record in found.values())
    for name, record in found.items():
        split, text = name.split("/")[:2]
        assert record["split"] == {"train": "train", "val": "validation"}[split]
        assert (record["label"], record["text"]) == (("cat", "dog é").index(text), text)
        original = (images / name).read_bytes()
        if original.startswith(b"\xff\xd8"):
            assert record["sha256"] == hashlib.sha256(original).hexdigest()
    assert found["val/dog é/sub/2.JPEG"]["channels"] == 1
    corner = found["train/dog é/palette.bmp"]["corner"]
    assert corner == [pytest.approx(250, abs=4), pytest.approx(30, abs=4), pytest.approx(40, abs=4)]


REASONS = {
    "cmyk.jpg": "is a JPEG in CMYK",
    "deep.png": "is a PNG with 16 bits a channel",
    "film.gif": "is an animated GIF with 3 frames",
    "film.png": "is an animated PNG",
    "cut.jpg": "cannot be decoded: cut off or damaged",
    "end.jpg": "cannot be decoded: cut off or damaged",
    "cut.png": "cannot be decoded: cut off or damaged",
    "empty.jpg": "is empty (0 bytes)",
    "page.jpg": "is text (HTML or XML)",
    "web.webp": "is a WebP",
}


@trainer
def test_broken_images(images: Path, tmp_path: Path) -> None:
    """They are all named and nothing is made; then they are left out, or the odd ones converted."""
    source, out = tmp_path / "source", tmp_path / "records"
    source.mkdir()
    (source / "bad").symlink_to(images / "bad")
    (source / "cat").symlink_to(images / "train" / "cat")
    (source / "dog").symlink_to(images / "train" / "dog é" / "sub")
    arguments = ("--source", source, "--out", out, "--workers", "1", "--validation", "0")
    done = preprocess(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert "10 image(s) cannot be taken: bad/cmyk.jpg is a JPEG in CMYK" in done.stderr
    assert "--skip-broken" in done.stderr
    listed = dict(line.split("\t") for line in (out / "broken.txt").read_text().splitlines())
    assert set(listed) == {f"bad/{name}" for name in REASONS}
    for name, reason in REASONS.items():
        assert listed[f"bad/{name}"].startswith(reason), name
    assert not (out / "dataset.json").exists()

    # A class of which nothing is left cannot be trained.
    done = preprocess(*arguments, "--skip-broken", cwd=tmp_path)
    assert done.returncode == 1
    assert "nothing is left to train on of: bad" in done.stderr

    done = preprocess(*arguments, "--skip-broken", "--convert-odd", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    described = manifest.read_checked(out)
    assert described.splits["train"].per_class == (4, 6, 3)
    assert described.skipped == 6
    assert "left out as broken, see" in done.stdout


@trainer
@pytest.mark.usefixtures("_tensorflow")
def test_checking(tmp_path: Path) -> None:
    """A set with a damaged record; and TFRecords of another program, with labels from 1."""
    script = """
    import tensorflow as tf
    from tests.trainer import small_data
    from tfjob_trainer import records
    folder = Path(sys.argv[1])
    small_data.make(folder / "damaged", [9, 9], [5])
    path = folder / "damaged/train-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[records.offset_of(path, 4) + 40] ^= 1
    path.write_bytes(data)
    (folder / "foreign").mkdir()
    for name in ("train-00000-of-00001", "validation-00000-of-00001"):
        examples = []
        for number in range(10):
            example = tf.train.Example.FromString(small_data.record(number))
            example.features.feature["image/class/label"].int64_list.value[0] += 1
            del example.features.feature["image/format"]
            examples.append(example.SerializeToString())
        small_data.write(folder / "foreign" / name, examples)
    result = None
    """
    answer(script, tmp_path)
    damaged = preprocess("--check", tmp_path / "damaged", "--workers", "1", cwd=tmp_path)
    assert damaged.returncode == 1
    assert re.search(
        r"train-00001-of-00002.tfrecord: record 4 at offset \d+: corrupted record", damaged.stderr
    )

    foreign = preprocess("--check", tmp_path / "foreign", "--workers", "1", cwd=tmp_path)
    assert foreign.returncode == 0, foreign.stderr
    assert "train: from 2 (a) to 2 (e) records a class" in foreign.stdout
    assert "everything is as it should be" in foreign.stdout
    described = manifest.read_checked(tmp_path / "foreign")
    assert (described.label_base, described.classes) == (1, tuple("abcde"))
    assert described.splits["validation"].per_class == (2, 2, 2, 2, 2)


@trainer
@pytest.mark.usefixtures("_tensorflow")
def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands in for it."""
    out = tmp_path / "records"
    done = preprocess(
        "--source", "digits", "--out", out, "--workers", "1", "--shards", "1", cwd=tmp_path, limits="-f 200"
    )
    assert done.returncode == 1
    assert re.search(
        r"tfjob-preprocess: .*train-00000-of-00001.tfrecord.*(File too large|No space)", done.stderr
    )
    assert "Traceback" not in done.stderr
    assert not list(out.glob(".*.tmp"))
    assert not (out / "dataset.json").exists()


# ---- What needs no TensorFlow.


def touch(root: Path, *names: str) -> None:
    """Files with something in them."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_a_part_of_each_class_is_held_back(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{name}/{number}.jpg" for name in "ab" for number in range(20)), "c/only.jpg")
    found = sources.read(str(tmp_path), 0.1)
    held = Counter(image.label for image in found.images if image.split == "validation")
    assert held == {0: 2, 1: 2}  # never the last image of a class
    # What is added moves nothing else, except that the part may grow.
    touch(tmp_path, "a/20.jpg")
    names = {image.name for image in found.images if image.split == "validation"}
    again = {image.name for image in sources.read(str(tmp_path), 0.1).images if image.split == "validation"}
    assert len(names - again) <= 1
    assert not {image.split for image in sources.read(str(tmp_path), 0.0).images} - {"train"}


def test_a_csv(tmp_path: Path) -> None:
    touch(tmp_path, "x/1.jpg", "x/2, too.jpg", "3.jpg", "4.jpg")
    (tmp_path / "list.csv").write_text(
        'path,label,split\nx/1.jpg,10,train\n"x/2, too.jpg",9,train\n\n3.jpg , 9,val\n4.jpg,10,test\n'
    )
    found = sources.read(str(tmp_path / "list.csv"), 0.5)
    assert found.classes == ("9", "10")
    assert [(image.name, image.label, image.split) for image in found.images] == [
        ("x/1.jpg", 1, "train"),
        ("x/2, too.jpg", 0, "train"),
        ("3.jpg", 0, "validation"),
        ("4.jpg", 1, "validation"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.jpg,a\n2.jpg\n", r"list\.csv, line 2: '2\.jpg' is not path,label"),
        ("1.jpg,a\n2.jpg,b,later\n", r"line 2: '2\.jpg,b,later' is not path,label"),
        ("1.jpg,a\nno.jpg,b\n", r"line 2: .*no\.jpg: cannot be read: No such file"),
        ("1.jpg,a\n1.jpg,b\n", r"has files more than once: 1\.jpg"),
        ("1.jpg,a\n2.jpg,a\n", r"images of one class only \(a\)"),
        ("1.jpg,a,train\n2.jpg,b,val\n", "no images to train on for: b"),
        ("", "holds no images"),
    ],
)
def test_a_csv_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    touch(tmp_path, "1.jpg", "2.jpg")
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        sources.read(str(tmp_path / "list.csv"), 0.1)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ((), r"has no sub-folders: it has to have one for each class"),
        (("1.jpg", "2.jpg"), r"has no sub-folders"),
        (("a/1.jpg", "b/readme.txt"), r"/b holds no images"),
        (("a/1.jpg",), r"images of one class only \(a\)"),
        (
            ("train/a/1.jpg", "train/b/1.jpg", "val/c/1.jpg"),
            r"/val has classes that \S+/train does not have: c",
        ),
        (("train/a/1.jpg", "train/b/1.jpg", "c/1.jpg"), r"is divided into train, but also has c"),
    ],
)
def test_a_folder_that_is_wrong(tmp_path: Path, files: tuple[str, ...], message: str) -> None:
    touch(tmp_path, *files)
    with pytest.raises(UsageError, match=message):
        sources.read(str(tmp_path), 0.1)


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder or file"):
        sources.read(str(tmp_path / "nowhere"), 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--source and --out are needed, or --check"),
        (["--source", "x"], "--source and --out are needed"),
        (["--check", "x", "--out", "y"], "--check goes without"),
        (["--source", "x", "--out", "y", "--validation", "1"], "'1' is not a part"),
        (["--source", "x", "--out", "y", "--shards", "0"], "'0' is not a whole number from 1"),
    ],
)
def test_wrong_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parse(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_the_result_may_not_lie_in_the_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "a/1.jpg", "b/1.jpg")
    from tfjob_trainer import making

    options = command.parse(["--source", str(tmp_path), "--out", str(tmp_path / "out")])
    with pytest.raises(UsageError, match="lies in the source"):
        making.make(options)
    assert not (tmp_path / "out").exists()


def test_progress_on_a_pipe_and_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress.Progress("writing", 400, 100) as plain:
        now += 0.5
        plain.add(50)  # too early for a line
        now += 0.5
        plain.add(50)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [
        "writing: 200 of 400 images, 100 images/s, 2 s left",
        "writing: 200 images, 1.0 s",
    ]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    with progress.Progress("writing", 400, 100) as bar:
        now += 1
        bar.add(100)
        shown = capsys.readouterr().out
    assert shown == "\r\033[K[##########..........] writing: 200 of 400 images, 100"[: len("\r\033[K") + 49]


def test_a_second_one_is_kept_off(tmp_path: Path) -> None:
    from tfjob_trainer import making

    with making._locked(tmp_path), pytest.raises(UsageError, match="another tfjob-preprocess is at work"):  # noqa: SIM117
        with making._locked(tmp_path):
            pass


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    """They go through JSON to the worker and come back as the same bytes."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    touch(folder, "1.jpg")
    touch(tmp_path, "b/1.jpg")
    found = sources.read(str(tmp_path), 0.0)
    (image,) = (image for image in found.images if image.label == 1)
    assert os.fsencode(json.loads(json.dumps(image.path))) == os.fsencode(folder / "1.jpg")
