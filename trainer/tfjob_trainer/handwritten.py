"""scikit-learn's 1797 images of handwritten digits, 8x8: a real data set that needs no download."""

from dataclasses import dataclass
from typing import Any

import numpy as np

CLASSES = tuple("0123456789")
VALIDATION_EXAMPLES = 297
_SPLIT_SEED = 20_240_101  # which examples are held back does not depend on the run's seed


@dataclass(frozen=True, slots=True)
class Digits:
    """All images, and which of them are for what."""

    images: np.ndarray[Any, np.dtype[np.float64]]  # (n, 8, 8), 0 to 16
    labels: np.ndarray[Any, np.dtype[np.int64]]
    held: np.ndarray[Any, np.dtype[np.int64]]  # indexes of the 297 that are held back
    kept: np.ndarray[Any, np.dtype[np.int64]]


def load() -> Digits:
    """The images, from scikit-learn's own files."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    mixed = np.random.default_rng(_SPLIT_SEED).permutation(len(loaded.target))
    return Digits(loaded.images, loaded.target, mixed[:VALIDATION_EXAMPLES], mixed[VALIDATION_EXAMPLES:])
