"""`tfjob-train`: the command. TensorFlow is imported only once the options and the environment are right."""

import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from tfjob_trainer import chatter, cluster, log
from tfjob_trainer.attempt import Attempt, begin
from tfjob_trainer.errors import TrainerError, UsageError
from tfjob_trainer.log import complain, say
from tfjob_trainer.options import Options, parse
from tfjob_trainer.peers import PeerError, Peers
from tfjob_trainer.stop import StopRequest

PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")
LOSS_SHOWS_S = 2.0  # after a failure in TensorFlow, until it is known whether a peer's end was the cause


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code where TensorFlow was not started, else ends the process."""
    began = time.monotonic()
    options = parse(arguments)
    stop = StopRequest()
    peers: Peers | None = None
    try:
        require_packages(digits=options.data_dir is None)
        if options.check:
            say(f"TensorFlow is here, with {sys.executable}")
            return 0
        stop.install()
        peers = _open_peers(options, stop)
        attempt = begin(options, began, peers)
    except (TrainerError, OSError) as error:
        return _failed_early(error, peers)
    return _train(attempt, stop) if attempt else 0


def _open_peers(options: Options, stop: StopRequest) -> Peers | None:
    """The line to the other processes, where there are some."""
    ours = cluster.from_environment(os.environ)
    if ours is None:
        return None
    for name in (*PROXIES, *map(str.upper, PROXIES)):
        os.environ.pop(name, None)  # one hangs TensorFlow's traffic between nodes without a word
    if not ours.is_chief:
        log.become_worker(ours.name(ours.rank))
    return Peers(ours, options.peer_timeout, stop)


def _failed_early(error: Exception, peers: Peers | None) -> int:
    reason = str(error) if isinstance(error, TrainerError) else f"cannot write in the run folder: {error}"
    if not getattr(error, "told", False):
        complain(reason)
    if peers:
        peers.fail(reason)
    return error.exit_code if isinstance(error, TrainerError) else 1


def _train(attempt: Attempt, stop: StopRequest) -> NoReturn:
    if attempt.peers:
        attempt.peers.on_lost = lambda error: _give_up(attempt, error)
    try:
        with chatter.filtered():
            _import_tensorflow()
        from tfjob_trainer.session import train

        train(attempt, stop)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the border of the program
        cause = _cause(error, attempt)
        attempt.note_failure(cause)
        code = _tell(cause)
        if attempt.peers:
            attempt.peers.fail(str(cause) or type(cause).__name__)
    stop.ignore()
    attempt.release()
    if code == 0 and attempt.peers:
        attempt.peers.leave()
    _leave(code)


def _cause(error: BaseException, attempt: Attempt) -> BaseException:
    """The loss of a peer, where that is what has made TensorFlow fail."""
    if attempt.peers is None or isinstance(error, TrainerError | KeyboardInterrupt):
        return error
    if type(error).__module__.startswith("tensorflow"):
        time.sleep(LOSS_SHOWS_S)
    return attempt.peers.lost or error


def _give_up(attempt: Attempt, error: PeerError) -> None:
    """In a thread: a peer is lost, and the main thread hangs in TensorFlow. What is saved is saved."""
    attempt.note_failure(error)
    if not error.told:
        complain(f"{error}. The run goes on from its last checkpoint when started again")
    if attempt.peers:
        attempt.peers.fail(str(error))
    attempt.release()
    _leave(1)


def _tell(error: BaseException) -> int:
    """Say what ended the training; returns the exit code."""
    if isinstance(error, TrainerError):
        if not getattr(error, "told", False):
            complain(str(error))
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted before the save; the run goes on from its last checkpoint when started again")
        return 130
    sys.excepthook(type(error), error, error.__traceback__)
    return 1


def require_packages(*, digits: bool = True) -> None:
    """Say what has to be installed, as far as that can be seen without importing it."""
    needed = {"tensorflow": "tensorflow"} | ({"sklearn": "scikit-learn"} if digits else {})  # module: package
    missing = [package for module, package in needed.items() if importlib.util.find_spec(module) is None]
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


def _leave(code: int) -> NoReturn:
    """End at once: TensorFlow's own shutdown can crash or hang on a late signal, and all is written."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
