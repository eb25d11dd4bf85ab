"""The models by name, and a user's own."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.children import answer
from tfjob_trainer import model_names
from tfjob_trainer.errors import UsageError

trainer = [pytest.mark.trainer, pytest.mark.usefixtures("_tensorflow")]


@pytest.fixture(scope="module")
def built(_tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process found out about the models that come with us."""
    script = """
    import keras
    import numpy as np
    from tfjob_trainer import model_names, models
    from tfjob_trainer.data import ImageForm

    def pixels(form):
        return np.random.default_rng(0).integers(0, 256, (2, *form.shape)).astype("uint8")

    small, large = ImageForm((32, 32, 3), 7, True), ImageForm((64, 64, 3), 1000, True)
    result = {"names": sorted(name for name in dir(keras.applications) if name[0].isupper())}

    digits = [models.build("digits", seed, "float32") for seed in (1, 1, 2)]
    weights = [model.get_weights()[0].tolist() for model in digits]
    result["seeds"] = [weights[0] == weights[1], weights[0] == weights[2]]
    result["digits"] = [models.build("digits", 0, "float32", small).output_shape[-1], digits[0].count_params()]

    resnet = models.build("resnet50", 0, "float32", large)
    result["trainable"] = sum(int(np.prod(w.shape)) for w in resnet.trainable_weights)
    result["strides"] = {
        layer.name: layer.strides[0]
        for layer in resnet.layers
        if isinstance(layer, keras.layers.Conv2D) and layer.strides[0] > 1
    }
    given = pixels(large)
    resnet.save("resnet.keras")
    again = keras.saving.load_model("resnet.keras")
    result["reloaded"] = float(np.abs(resnet(given) - again(given)).max())

    result["kinds"] = {}
    for name in ("resnet50", "digits", "ResNet50", "MobileNetV2"):
        model = models.build(name, 0, "mixed_bfloat16", small)
        logits = model(pixels(small)).numpy()
        last = model.layers[-1]
        inside = [layer.compute_dtype for layer in model.layers if isinstance(layer, keras.layers.Conv2D)][-1]
        result["kinds"][name] = [
            str(logits.dtype), list(logits.shape), last.activation is keras.activations.linear, inside,
        ]
        if name in model_names.APPLICATIONS:
            own = [layer for layer in model.layers if isinstance(layer, keras.layers.Rescaling)][0]
            shown = keras.Model(model.input, own.output)(pixels(small)).numpy()
            make = getattr(keras.applications, name)
            expected = sys.modules[make.__module__].preprocess_input(pixels(small).astype("float32"))
            result["kinds"][name].append(float(np.abs(shown - expected).max()))
    """
    found: dict[str, Any] = answer(script, cwd=tmp_path_factory.mktemp("models"))
    return found


class TestOurs:
    """Those that come with the trainer, and those of keras.applications."""

    pytestmark = trainer

    def test_the_names_of_keras_are_all_known(self, built: dict[str, Any]) -> None:
        assert set(built["names"]) == set(model_names.APPLICATIONS)

    def test_weights_hang_on_the_seed(self, built: dict[str, Any]) -> None:
        assert built["seeds"] == [True, False]
        assert built["digits"] == [7, 94_314]

    def test_resnet50_is_the_version_1_5(self, built: dict[str, Any]) -> None:
        """25,557,032 weights, as published; a stage's stride is in its first 3x3 convolution."""
        assert built["trainable"] == 25_557_032
        assert built["strides"] == {
            "stem_conv": 2,
            **{f"stage{stage}_block1_{part}_conv": 2 for stage in (2, 3, 4) for part in ("shortcut", "2")},
        }
        assert built["reloaded"] == 0

    def test_they_end_in_float32_logits(self, built: dict[str, Any]) -> None:
        for name, (dtype, shape, is_linear, inside, *_) in built["kinds"].items():
            assert (dtype, shape, is_linear, inside) == ("float32", [2, 7], True, "bfloat16"), name

    def test_pixels_come_as_the_family_wants_them(self, built: dict[str, Any]) -> None:
        assert all(built["kinds"][name][4] < 1e-3 for name in ("ResNet50", "MobileNetV2"))


OWN = """
import keras
from beside import DEPTH

def good(classes, input_shape):
    return keras.Sequential([
        keras.Input(input_shape), keras.layers.Rescaling(1 / 255), keras.layers.Flatten(),
        keras.layers.Dense(DEPTH), keras.layers.Dense(classes, activation="softmax"),
    ])

def everything(**given):
    assert set(given) == {"classes", "input_shape", "image_size", "seed"}
    return good(given["classes"], given["input_shape"])

class Layered(keras.Model):
    def __init__(self, classes, activation=None):
        super().__init__()
        self.flat, self.dense = keras.layers.Flatten(), keras.layers.Dense(classes, activation=activation)

    def call(self, images):
        return self.dense(self.flat(keras.ops.cast(images, "float32")))

def subclass(classes):
    return Layered(classes)

def fails(classes):
    raise RuntimeError("no such\\nlayer")

def nothing():
    pass

def three(input_shape):
    return good(3, input_shape)

def wants(depth):
    return good(7, (8, 8, 3))

def small_input(classes):
    return good(classes, (4, 4, 3))

def ends_in_softmax(classes, input_shape):
    return keras.Sequential([good(classes, input_shape), keras.layers.Softmax()])

def probabilities(classes):
    return Layered(classes, "softmax")
"""

SAID = {
    "fails": r"own\.py:fails failed: RuntimeError: no such \(\S+own\.py:\d+\)",
    "nothing": r"returned NoneType, not a keras\.Model",
    "three": r"gives \(2, 3\) for a batch of 2, not \(2, 7\)",
    "wants": r"wants 'depth'; it can have: classes, input_shape, image_size, seed",
    "small_input": r"does not take a batch of the data \(uint8 \(2, 8, 8, 3\), 0 to 255",
    "ends_in_softmax": r"ends in a softmax layer: leave it out",
    "probabilities": r"gives probabilities: leave its softmax out",
    "missing": r"there is no function missing in \S+own\.py",
}


@pytest.mark.trainer
@pytest.mark.usefixtures("_tensorflow")
def test_a_users_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "beside.py").write_text("DEPTH = 5\n")
    (tmp_path / "worse.py").write_text("import nowhere_at_all\n")
    script = """
    import keras
    import numpy as np
    from tfjob_trainer import models
    from tfjob_trainer.data import ImageForm
    from tfjob_trainer.errors import UsageError
    form = ImageForm((8, 8, 3), 7, True)
    result = {"said": {}, "good": {}}
    folder, names = sys.argv[1], sys.argv[2].split(",")
    for name in [f"{folder}/own.py:{name}" for name in names] + [f"{folder}/none.py:f", "nowhere_at_all:f", "worse:f"]:
        try:
            models.build(name, 0, "float32", form)
        except UsageError as error:
            result["said"][name.replace(f"{folder}/own.py:", "")] = str(error)
    for name in (f"{folder}/own.py:good", "own:everything", "own:subclass"):
        policy = "float32" if "subclass" in name else "mixed_bfloat16"
        logits = models.build(name, 0, policy, form)(np.full((2, 8, 8, 3), 200, "uint8")).numpy()
        result["good"][name.split(":")[1]] = [str(logits.dtype), bool(np.allclose(logits.sum(-1), 1, atol=1e-3))]
    """
    found = answer(script, tmp_path, ",".join(SAID), cwd=tmp_path)
    for name, pattern in SAID.items():
        assert re.search(pattern, found["said"][name]), found["said"].get(name)
    assert re.search(r"there is no file \S+none\.py", found["said"][f"{tmp_path}/none.py:f"])
    for name in ("nowhere_at_all:f", "worse:f"):
        assert "cannot be imported: ModuleNotFoundError" in found["said"][name]
    # The softmax of the last layer is off; float32 comes out under every policy.
    assert found["good"] == {name: ["float32", False] for name in ("good", "everything", "subclass")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet50", "resnet50"),  # ours
        ("ResNet50", "ResNet50"),  # Keras'
        ("efficientnetv2b0", "EfficientNetV2B0"),
        ("RESNET50", "resnet50"),
        ("my.module:build", "my.module:build"),
        ("/a/b c.py:build", "/a/b c.py:build"),
    ],
)
def test_a_name_as_it_is_written(name: str, expected: str) -> None:
    assert model_names.canonical(name) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet5", "the nearest: resnet50"),
        ("eficientnetb3", "EfficientNetB3"),
        ("what", "not known"),
        (":build", "a model of your own is package.module:function"),
        ("module:", "a model of your own is"),
        ("module:a b", "a model of your own is"),
    ],
)
def test_a_name_that_is_not_known(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model_names.canonical(name)
