"""Writing small files so that no reader ever sees half of one."""

import os
import socket
from pathlib import Path


def replace_atomically(path: Path, text: str, *, durable: bool = True) -> None:
    """Put `text` into `path` as a whole: written beside it, forced to disk if `durable`, then renamed."""
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
