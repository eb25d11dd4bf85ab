"""Published settings under one name. Each value gives way to an option that says otherwise.

resnet50   ResNet-50 v1.5 on ImageNet: 77 % top-1 after 90 epochs on 8 A100 in about 2 hours (NVIDIA,
           DeepLearningExamples, TensorFlow and PyTorch READMEs of RN50 v1.5). The learning rate is 0.256 for
           each 256 images of the batch, after a linear warm-up; weight decay leaves out biases and the
           normalisation's parameters.
"""

from collections.abc import Mapping
from typing import Any

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "resnet50": {
        "model": "resnet50",
        "image_size": 224,
        "epochs": 90,
        "batch_per_replica": 256,
        "optimizer": "sgd",
        "momentum": 0.875,
        "learning_rate": 0.256,
        "learning_rate_batch": 256,
        "schedule": "cosine",
        "warmup_epochs": 8.0,
        "weight_decay": 1 / 32768,
        "label_smoothing": 0.1,
        "log_steps": 100,
    },
}

DEFAULTS: Mapping[str, Any] = {
    "model": "digits",
    "optimizer": "adam",
    "momentum": 0.9,
    "schedule": "constant",
    "warmup_epochs": 0.0,
    "decay_epochs": (30.0, 60.0, 80.0),
    "decay_rate": 0.1,
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "accumulate": 1,
    "log_steps": 50,
}
EPOCHS = 12  # where neither epochs nor steps are asked for
BATCH_SIZE = 64  # where no batch is asked for
LEARNING_RATES: Mapping[str, float] = {"adam": 1e-3, "adamw": 1e-3, "sgd": 0.1}
