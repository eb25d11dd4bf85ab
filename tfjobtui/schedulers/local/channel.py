"""Requests to the shepherd of a running job: a line of JSON each way, over a Unix socket.

The socket's name is abstract (no file, so neither a full disk nor a network file system matters) and has the
start's token in it; both sides see to it that the other one is the same user. Requests:

    {"do": "ping"}                                                                 → {"ending": "CANCELLED" | null}
    {"do": "signal", "signal": 10, "to": "steps" | "batch" | "all"}
    {"do": "signal", "step": 0, "signal": 10 | null}                    to one step; null cancels it
    {"do": "end", "as": "CANCELLED" | "REQUEUE", "uid": 1000, "hold": false}      answered when it is taken
    {"do": "time_limit", "seconds": 3600 | null}
    {"do": "usage"}                                     → {"usage": {…}, "steps": [{…}]}
    {"do": "step_begin", "pid": 71, "title": "python", "tasks": 2, "cpus": 2 | null, "gpus": 1 | null,
     "shared": false}                                          → {"step": 0, "cpus": [0, 1], "gpus": [3]}
                                        or {"busy": "Requested nodes are busy"}: to be asked again
    {"do": "step_tasks", "step": 0, "pids": [72, 73]}
    {"do": "step_end", "step": 0, "exit_code": 0, "signal": 0, "usage": {"cpu_s": 1.5, …}}

Every answer has `"ok": true`, or `"error"` with a sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

MOST_BYTES = 1 << 20
_PEER_WAIT_S = 2.0
"""How long a connected program may take for its request; the shepherd goes on meanwhile."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class NotReachableError(Exception):
    """There is no shepherd with this token, or it gave no answer."""


def address(token: str) -> str:
    """The name of the socket."""
    return f"\0tfjobtui-{os.getuid()}-{token}"


def ask(token: str, message: Mapping[str, object], timeout_s: float = 10.0) -> dict[str, Any]:
    """Send a request and wait for the answer.

    Raises:
        NotReachableError: nobody listens, or there was no answer in time.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(timeout_s)
            peer.connect(address(token))
            if _uid(peer) != os.getuid():
                raise NotReachableError("the process that listens is somebody else's")
            peer.sendall(json.dumps(dict(message)).encode() + b"\n")
            answer = json.loads(_line(peer, time.monotonic() + timeout_s))
    except (OSError, ValueError) as error:
        raise NotReachableError(f"the job's shepherd did not answer: {error}") from error
    if not isinstance(answer, dict):
        raise NotReachableError("the job's shepherd gave no answer that can be read")
    return answer


def _line(peer: socket.socket, end: float) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        peer.settimeout(max(0.01, end - time.monotonic()))
        more = peer.recv(65536)
        if not more or len(data) > MOST_BYTES:
            raise ValueError("it ended before its end")
        data += more
    return data


def _uid(peer: socket.socket) -> int:
    form = struct.Struct("3i")
    return int(form.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))[1])


class Listener:
    """The shepherd's end. `serve` never waits for a peer: it takes what is there."""

    def __init__(self, token: str) -> None:
        """Begin to listen.

        Raises:
            OSError: the name is taken, so another process has this token.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(address(token))
            self._socket.listen(64)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)
        self._peers: dict[socket.socket, tuple[bytearray, float]] = {}

    def sockets(self) -> list[socket.socket]:
        """What to wait for."""
        return [self._socket, *self._peers]

    def serve(self, answer: Answer) -> None:
        """Take new programs in and answer the requests that are whole."""
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._socket.accept()
                peer.setblocking(False)
                if _uid(peer) == os.getuid():
                    self._peers[peer] = (bytearray(), time.monotonic() + _PEER_WAIT_S)
                else:
                    peer.close()
        for peer in list(self._peers):
            self._serve_one(peer, answer)

    def _serve_one(self, peer: socket.socket, answer: Answer) -> None:
        data, end = self._peers[peer]
        try:
            more = peer.recv(65536)
        except BlockingIOError:
            if time.monotonic() > end:
                self._drop(peer)
            return
        except OSError:
            self._drop(peer)
            return
        data += more
        if not more or len(data) > MOST_BYTES:
            self._drop(peer)
        elif data.endswith(b"\n"):
            self._reply(peer, bytes(data), answer)
            self._drop(peer)

    def _reply(self, peer: socket.socket, data: bytes, answer: Answer) -> None:
        try:
            request = json.loads(data)
            said = answer(request) if isinstance(request, dict) else {"error": "a request is an object"}
        except ValueError:
            said = {"error": "a request is a line of JSON"}
        with contextlib.suppress(OSError):
            peer.settimeout(_PEER_WAIT_S)
            peer.sendall(json.dumps(dict(said)).encode() + b"\n")

    def _drop(self, peer: socket.socket) -> None:
        self._peers.pop(peer, None)
        peer.close()

    def close(self) -> None:
        for peer in list(self._peers):
            self._drop(peer)
        self._socket.close()
