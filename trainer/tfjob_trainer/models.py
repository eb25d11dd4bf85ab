"""The models that can be trained by name. Each ends in float32 logits, without a softmax."""

from collections.abc import Callable
from typing import Any

import keras


def digits(seed: int) -> Any:
    """A small convolutional network: (batch, 8, 8, 1) float32 in [0, 1] → (batch, 10) float32 logits."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.3, seed=seed),
            layers.Dense(64, activation="relu"),
            # Softmax and cross-entropy in half precision lose the training without a warning.
            layers.Dense(10, dtype="float32"),
        ],
        name="digits",
    )


MODELS: dict[str, Callable[[int], Any]] = {"digits": digits}


def build(name: str, seed: int, policy: str) -> Any:
    """The model `name` with weights that depend on `seed` alone. Call it in the strategy's scope."""
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(seed)
    return MODELS[name](seed)
