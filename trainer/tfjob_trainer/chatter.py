"""Keeping TensorFlow's start-up messages out of the log, but never an error.

TF_CPP_MIN_LOG_LEVEL does not reach the messages that TensorFlow writes before its logging is set up. They are
filtered by a child process, so that the last words of a crash in TensorFlow's C++ part still come through.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHATTER = re.compile(
    rb"[IW]\d{4} \d\d:\d\d:|WARNING: All log messages before absl::InitializeLog|To enable the following in"
)
_NO_DRIVER = re.compile(rb"E\d{4} .*failed call to cuInit")  # on a node without a GPU driver this is no news


@contextmanager
def filtered() -> Iterator[None]:
    """Filter stderr for the time of the block. Call it while the process has no threads."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:  # somebody wants to see more, or has chosen already
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    reader, writer = os.pipe()
    original = os.dup(2)
    child = os.fork()
    if not child:
        _filter(reader, writer)
    os.close(reader)
    os.dup2(writer, 2)
    os.close(writer)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
        os.waitpid(child, 0)


def _filter(reader: int, writer: int) -> None:
    """The child: pass on what is not chatter, until the last writer has closed its end."""
    os.close(writer)
    os.setpgid(0, 0)  # a signal to the group of the trainer must not end the filter before it
    no_driver = not Path("/proc/driver/nvidia/version").exists()
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            if not (_CHATTER.match(line) or (no_driver and _NO_DRIVER.match(line))):
                os.write(2, line)
    os._exit(0)
