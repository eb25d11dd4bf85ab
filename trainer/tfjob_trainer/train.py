"""`tfjob-train`: the command. TensorFlow is imported only once the options and the environment are right."""

import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from tfjob_trainer import chatter
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.log import complain, say
from tfjob_trainer.options import Options, parse
from tfjob_trainer.stop import StopRequest

NEEDED = {
    "tensorflow": "tensorflow",
    "tensorboard": "tensorboard",
    "sklearn": "scikit-learn",
}  # module: package


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code where TensorFlow was not started, else ends the process."""
    options = parse(arguments)
    try:
        require_packages()
        if options.check:
            say(f"TensorFlow is here, with {sys.executable}")
            return 0
    except TrainerError as error:
        complain(str(error))
        return error.exit_code
    return _train(options)


def _train(options: Options) -> NoReturn:
    began = time.monotonic()
    stop = StopRequest()
    stop.install()
    try:
        with chatter.filtered():
            _import_tensorflow()
        from tfjob_trainer.session import run

        run(options, stop, began)
        code = 0
    except TrainerError as error:
        complain(str(error))
        code = error.exit_code
    except KeyboardInterrupt:
        complain("interrupted before the save; the run goes on from its last checkpoint when started again")
        code = 130
    except BaseException:  # noqa: BLE001 - the border of the program: TensorFlow's own failures, with the traceback
        sys.excepthook(*sys.exc_info())
        code = 1
    _leave(stop, code)


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
