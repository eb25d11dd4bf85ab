"""`tfjob-train`: the command. TensorFlow is imported only once the options and the environment are right."""

import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from tfjob_trainer import chatter
from tfjob_trainer.attempt import Attempt, begin
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.log import complain, say
from tfjob_trainer.options import parse
from tfjob_trainer.stop import StopRequest

NEEDED = {
    "tensorflow": "tensorflow",
    "tensorboard": "tensorboard",
    "sklearn": "scikit-learn",
}  # module: package


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code where TensorFlow was not started, else ends the process."""
    began = time.monotonic()
    options = parse(arguments)
    stop = StopRequest()
    try:
        require_packages()
        if options.check:
            say(f"TensorFlow is here, with {sys.executable}")
            return 0
        stop.install()
        attempt = begin(options, began)
    except TrainerError as error:
        complain(str(error))
        return error.exit_code
    except OSError as error:
        complain(f"cannot write in the run folder: {error}")
        return 1
    return _train(attempt, stop) if attempt else 0


def _train(attempt: Attempt, stop: StopRequest) -> NoReturn:
    try:
        with chatter.filtered():
            _import_tensorflow()
        from tfjob_trainer.session import train

        train(attempt, stop)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the border of the program
        attempt.note_failure(error)
        code = _tell(error)
    _leave(stop, code)


def _tell(error: BaseException) -> int:
    """Say what ended the training; returns the exit code."""
    if isinstance(error, TrainerError):
        complain(str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted before the save; the run goes on from its last checkpoint when started again")
        return 130
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def require_packages() -> None:
    """Say what has to be installed, as far as that can be seen without importing it."""
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"{sys.executable} does not have {', '.join(missing)}. Install what is missing there:\n"
            f"    {sys.executable} -m pip install {' '.join(missing)}\n"
            "or run with another environment (VENV or MODULES in the job script). On GPU nodes without a "
            "CUDA module take 'tensorflow[and-cuda]'."
        )


def _import_tensorflow() -> None:
    try:
        import tensorflow as tf

        tf.config.list_physical_devices()  # finds the devices, with messages of its own
    except ImportError as error:
        raise UsageError(
            f"TensorFlow is installed for {sys.executable} but cannot be imported: {error}"
        ) from error


def _leave(stop: StopRequest, code: int) -> NoReturn:
    """End at once: TensorFlow's own shutdown can crash or hang on a late signal, and all is written."""
    stop.ignore()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
