"""The models that can be trained by name. Each ends in float32 logits, without a softmax.

`model_names` has the names, for those who cannot wait for Keras. A model takes images as they come out of the
data: raw ones (uint8, 0 to 255) are brought into its range by its own first layers, so that an exported model
takes the same.
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import numpy as np

from tfjob_trainer import model_names
from tfjob_trainer.data import ImageForm
from tfjob_trainer.errors import UsageError

DIGITS = ImageForm((8, 8, 1), 10, raw=False)
BN_EPSILON, BN_MOMENTUM = 1e-5, 0.9
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pixels, in [0, 1]


def build(name: str, seed: int, policy: str, form: ImageForm = DIGITS, weights: str | None = None) -> Any:
    """The model `name` for images of `form`, with weights that depend on `seed` alone.

    Call it in the strategy's scope. `policy` is the dtype policy; the logits (batch, classes) are float32 under
    each. `weights` (keras.applications only): "imagenet", or a file; None: random.

    Raises UsageError where the name, the user's function or what it returns is wrong.
    """
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(seed)
    name = model_names.canonical(name)
    if weights and name not in model_names.APPLICATIONS:
        raise UsageError(f"--weights is for models of keras.applications, not for {name}")
    if ":" in name:
        return _own(name, seed, form)
    if name in model_names.APPLICATIONS:
        return _application(name, form, weights)
    return {"digits": _digits, "resnet50": _resnet50}[name](seed, form)


def _raw(form: ImageForm) -> Any:
    """The input of a model, as the data gives it."""
    return keras.Input(form.shape, dtype="uint8" if form.raw else "float32", name="images")


def _logits(classes: int, **options: Any) -> Any:
    # Softmax and cross-entropy in half precision lose the training without a warning.
    return keras.layers.Dense(classes, dtype="float32", name="logits", **options)


# ---- Small images.


def _digits(seed: int, form: ImageForm) -> Any:
    """A small convolutional network for images of a few dozen pixels."""
    layers = keras.layers
    return keras.Sequential(
        [
            _raw(form),
            *([layers.Rescaling(1 / 255, dtype="float32")] if form.raw else []),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            # Of 8x8 images every place is kept; larger ones are brought down to as much.
            *([layers.AveragePooling2D(form.shape[0] // 8)] if form.shape[0] >= 16 else []),
            layers.Flatten(),
            layers.Dropout(0.3, seed=seed),
            layers.Dense(64, activation="relu"),
            _logits(form.classes),
        ],
        name="digits",
    )


# ---- ResNet-50 v1.5: the stride of a stage is in the 3x3 convolution of its first block.


def _resnet50(_seed: int, form: ImageForm) -> Any:
    """As in the published recipes: He weights, and the last normalisation of each block starts at 0."""
    images = _raw(form)
    x = keras.layers.Rescaling(1 / 255, dtype="float32")(images) if form.raw else images
    if form.shape[2] == 3:
        x = keras.layers.Normalization(mean=MEAN, variance=tuple(std**2 for std in STD), dtype="float32")(x)
    x = _convolved(x, 64, 7, "stem", strides=2)
    x = keras.layers.MaxPooling2D(3, strides=2, padding="same", name="stem_pool")(x)
    for stage, (filters, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), start=1):
        for block in range(blocks):
            strides = 2 if stage > 1 and block == 0 else 1
            x = _bottleneck(x, filters, strides, f"stage{stage}_block{block + 1}", widen=block == 0)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    logits = _logits(form.classes, kernel_initializer=keras.initializers.RandomNormal(stddev=0.01))(x)
    return keras.Model(images, logits, name="resnet50")


def _bottleneck(x: Any, filters: int, strides: int, name: str, *, widen: bool) -> Any:
    """(n, h, w, c) → (n, h / strides, w / strides, 4 filters)."""
    shortcut = _convolved(x, 4 * filters, 1, f"{name}_shortcut", strides=strides, relu=False) if widen else x
    x = _convolved(x, filters, 1, f"{name}_1")
    x = _convolved(x, filters, 3, f"{name}_2", strides=strides)
    x = _convolved(x, 4 * filters, 1, f"{name}_3", relu=False, gamma="zeros")
    return keras.layers.ReLU(name=f"{name}_out")(keras.layers.Add(name=f"{name}_add")([shortcut, x]))


def _convolved(
    x: Any, filters: int, size: int, name: str, *, strides: int = 1, relu: bool = True, gamma: str = "ones"
) -> Any:
    layers = keras.layers
    if size > 1 and strides > 1:  # the same on both sides, where "same" would put all of it on one
        x = layers.ZeroPadding2D(size // 2, name=f"{name}_pad")(x)
    x = layers.Conv2D(
        filters,
        size,
        strides=strides,
        padding="valid" if size > 1 and strides > 1 else "same",
        use_bias=False,
        kernel_initializer=keras.initializers.VarianceScaling(2.0, "fan_out", "truncated_normal"),
        name=f"{name}_conv",
    )(x)
    x = layers.BatchNormalization(
        momentum=BN_MOMENTUM, epsilon=BN_EPSILON, gamma_initializer=gamma, name=f"{name}_bn"
    )(x)
    return layers.ReLU(name=f"{name}_relu")(x) if relu else x


# ---- keras.applications.


def _application(name: str, form: ImageForm, weights: str | None) -> Any:
    make = getattr(keras.applications, name)
    images = _raw(form)
    pixels = _in_range_of(make, images, form)
    known = weights == "imagenet"
    top = not (known and form.classes != 1000)
    try:
        model = make(
            input_tensor=pixels,
            weights=weights,
            include_top=top,
            **({"classes": form.classes, "classifier_activation": None} if top else {"pooling": "avg"}),
        )
    except (ValueError, OSError) as error:
        raise UsageError(
            f"--model {name} cannot be made for images of {form.shape}: {_first_line(error)}"
        ) from error
    if not top:
        return keras.Model(images, _logits(form.classes)(model.output), name=model.name)
    return _in_float32(keras.Model(images, model.output, name=model.name))


def _in_range_of(make: Callable[..., Any], images: Any, form: ImageForm) -> Any:
    """The images as this family of models wants them: what its `preprocess_input` does, in layers."""
    if not form.raw:
        raise UsageError("models of keras.applications are for data sets of colour images (--data-dir)")
    preprocess = sys.modules[make.__module__].preprocess_input
    # It is the same for every pixel, and linear: so it can be had from four colours.
    probes = np.vstack([np.zeros(3), np.eye(3)]).astype("float32")[:, np.newaxis, np.newaxis]
    answers = np.asarray(preprocess(probes.copy()), "float64")[:, 0, 0]
    offset, matrix = answers[0], answers[1:] - answers[0]
    if matrix[0, 2]:  # blue, green, red
        images, matrix = images[..., ::-1], matrix[::-1]
    if np.allclose(matrix, np.eye(3), atol=1e-6) and not offset.any():
        return keras.layers.Rescaling(1.0, dtype="float32")(images)
    scale = [float(value) for value in np.diagonal(matrix)]
    return keras.layers.Rescaling(scale, offset=[float(value) for value in offset], dtype="float32")(images)


def _in_float32(model: Any) -> Any:
    """The same model, its last layer in float32."""
    last = model.layers[-1]
    if last.compute_dtype != "float32":
        last.dtype_policy = keras.DTypePolicy("float32")
    return model


# ---- The user's own.


def _own(name: str, seed: int, form: ImageForm) -> Any:
    place, _, attribute = name.rpartition(":")
    function = getattr(_module(name, place), attribute, None)
    if not callable(function):
        raise UsageError(f"--model {name}: there is no function {attribute} in {place}")
    offered = {"classes": form.classes, "input_shape": form.shape, "image_size": form.shape[0], "seed": seed}
    try:
        model = function(**_wanted(name, function, offered))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"--model {name} failed: {type(error).__name__}: {_first_line(error)} ({_where(error)})"
        ) from error
    return _checked(name, model, form)


def _module(name: str, place: str) -> ModuleType:
    """The module at `place`: a file, or a name that can be imported from the present folder or as installed."""
    try:
        if place.endswith(".py") or "/" in place:
            return _module_of_file(Path(place).expanduser().absolute(), name)
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)  # last: a file there must not shadow an installed module
        return importlib.import_module(place)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"--model {name}: {place} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _module_of_file(path: Path, name: str) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"--model {name}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"tfjob_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--model {name}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.parent))  # for what it imports from beside it
    spec.loader.exec_module(module)
    return module


def _wanted(name: str, function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments on offer that the function takes."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return offered
    for parameter in parameters:
        if (
            parameter.default is parameter.empty
            and parameter.name not in offered
            and parameter.kind
            not in (
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            )
        ):
            raise UsageError(f"--model {name} wants {parameter.name!r}; it can have: {', '.join(offered)}")
    return {parameter.name: offered[parameter.name] for parameter in parameters if parameter.name in offered}


def _checked(name: str, model: Any, form: ImageForm) -> Any:
    """The model, if it gives logits for a batch of the data; without its softmax."""
    if not isinstance(model, keras.Model):
        raise UsageError(f"--model {name} returned {type(model).__name__}, not a keras.Model")
    batch = np.zeros((2, *form.shape), "uint8" if form.raw else "float32")
    kind = f"{batch.dtype} {batch.shape}" + (
        ", 0 to 255: begin with keras.layers.Rescaling(1 / 255)" if form.raw else ""
    )
    try:
        logits = model(batch, training=False)
    except Exception as error:
        raise UsageError(
            f"--model {name} does not take a batch of the data ({kind}): {_first_line(error)}"
        ) from error
    shape = tuple(getattr(logits, "shape", ()))
    if shape != (2, form.classes):
        raise UsageError(
            f"--model {name} gives {shape or type(logits).__name__} for a batch of 2, not (2, {form.classes})"
        )
    if isinstance(model, keras.Sequential) or hasattr(model, "operations"):  # its last layer gives its output
        return _in_float32(_without_softmax(name, model))
    values = np.asarray(logits, "float32")
    if (values >= 0).all() and np.allclose(values.sum(-1), 1, atol=1e-2):
        raise UsageError(f"--model {name} gives probabilities: leave its softmax out, training takes logits")
    if keras.backend.standardize_dtype(logits.dtype) != "float32":
        raise UsageError(
            f'--model {name} gives {logits.dtype.name}: make its last layer with dtype="float32"'
        )
    return model


def _without_softmax(name: str, model: Any) -> Any:
    last = model.layers[-1]
    softmax = keras.activations.softmax
    if isinstance(last, keras.layers.Softmax | keras.layers.Activation):
        if isinstance(last, keras.layers.Softmax) or last.activation is softmax:
            raise UsageError(f"--model {name} ends in a softmax layer: leave it out, training takes logits")
    elif getattr(last, "activation", None) is softmax:
        last.activation = keras.activations.linear
    return model


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _where(error: BaseException) -> str:
    """The innermost place of a failure, as file:line."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
