"""The line between the processes of one training, beside TensorFlow's own.

TensorFlow waits for a missing process without a word and for ever, and a process that hangs in TensorFlow does
not notice that another one has died. So the workers first meet at the chief's port, and the connections stay
open to the end: who is missing has a name, a failure reaches all with its reason, and what has to be the same
everywhere (folder, attempt, checkpoint) is said by the chief.

Messages are JSON objects, one per line:

    {"hello": token, "rank": n}          a worker's first
    {"welcome": true}, {"refused": why}  the chief's answer
    {"name": what, "value": …}           a worker's part of an exchange
    {"name": what, "values": […]}        all parts, by rank: the chief's answer to everybody
    {"failed": reason}                   the sender ends because of this
    {"bye": true}                        the sender ends, all is well
"""

import contextlib
import json
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tfjob_trainer import cluster as clusters
from tfjob_trainer.cluster import Cluster
from tfjob_trainer.errors import TrainerError
from tfjob_trainer.log import say
from tfjob_trainer.stop import StopRequest

POLL_S = 0.2
SAY_EVERY_S = 20.0
GRACE_S = 5.0  # for the main thread to notice by itself that a peer is lost
TELL_S = 15.0  # how long a chief that fails at the start waits for workers to tell them
_MAX_LINE = 1 << 20

Message = dict[str, Any]


class PeerError(TrainerError):
    """Another process of this training is missing, or has failed."""

    def __init__(self, message: str, *, told: bool = False) -> None:
        super().__init__(message)
        self.told = told  # the chief has said it in the log already


class StoppedWhileWaiting(Exception):  # noqa: N818 - it is no error
    """A stop signal came before the processes had met; the message says who was missing."""


class _Connection:
    """One socket; what comes is put into a queue by a thread, None for its end."""

    def __init__(self, sock: socket.socket, lost: Callable[["_Connection"], None]) -> None:
        self.socket = sock
        self.messages: queue.Queue[Message | None] = queue.Queue()
        self.ended_well = False
        self._lost = lost
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, option):  # a node that lost its power is noticed after 40 s
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
        self._lines = _lines(sock)

    def start(self) -> None:
        threading.Thread(target=self._read, name="peer", daemon=True).start()

    def _read(self) -> None:
        for message in self._lines:
            if "bye" in message:
                self.ended_well = True
            else:
                self.messages.put(message)
            if "failed" in message:
                break
        self.messages.put(None)
        if not self.ended_well:
            self._lost(self)

    def first(self) -> Message | None:
        """The first message, before `start`; waits for at most 5 s."""
        self.socket.settimeout(5)
        message = next(self._lines, None)
        self.socket.settimeout(None)
        return message

    def send(self, message: Message) -> None:
        """Send, as far as there is still somebody; a loss shows in reading."""
        with contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")


def _lines(sock: socket.socket) -> Iterator[Message]:
    """The messages on a socket, until its end or until something else comes."""
    pending = b""
    while True:
        while b"\n" in pending:
            line, pending = pending.split(b"\n", 1)
            try:
                message = json.loads(line)
            except ValueError:
                return
            if not isinstance(message, dict):
                return
            yield message
        try:
            data = sock.recv(65536)
        except OSError:
            return
        if not data or len(pending) > _MAX_LINE:
            return
        pending += data


class Peers:
    """All processes of a cluster, as one of them sees them.

    The chief listens as soon as this is made. `meet` connects all; `exchange` and `barrier` work after that.
    """

    def __init__(self, cluster: Cluster, timeout_s: float, stop: StopRequest) -> None:
        self.cluster = cluster
        self.lost: PeerError | None = None
        self.on_lost: Callable[[PeerError], None] | None = None  # called in a thread, GRACE_S after a loss
        self._timeout_s = timeout_s
        self._stop = stop
        self._connections: dict[int, _Connection] = {}  # by rank; a worker has the chief's only
        self._closing = False
        self._lock = threading.Lock()
        self._listener = _listen(cluster.port) if cluster.is_chief else None
        self.addresses: tuple[str, ...] = cluster.addresses

    # ---- Meeting.

    def meet(self) -> None:
        """Connect to everybody. Raises PeerError that says who is missing, or StoppedWhileWaiting."""
        meet = self._wait_for_workers if self.cluster.is_chief else self._find_chief
        meet(time.monotonic() + self._timeout_s)
        for connection in self._connections.values():
            connection.start()
        self._agree_on_addresses()

    def _wait_for_workers(self, deadline: float) -> None:
        began = told = time.monotonic()
        while missing := self._missing():
            now = time.monotonic()
            if now > deadline:
                raise PeerError(self._words_for_missing(missing))
            if self._stop.received:
                raise StoppedWhileWaiting(f"{self._stop.received} while waiting for {self._names(missing)}")
            if now - told >= SAY_EVERY_S:
                told = now
                say(f"waiting since {now - began:.0f} s for {self._names(missing)}")
            self._accept()

    def _missing(self) -> list[int]:
        return [rank for rank in range(1, len(self.cluster.hosts)) if rank not in self._connections]

    def _names(self, ranks: list[int]) -> str:
        shown = ", ".join(self.cluster.name(rank) for rank in ranks[:8])
        return f"{shown} and {len(ranks) - 8} more" if len(ranks) > 8 else shown

    def _words_for_missing(self, missing: list[int]) -> str:
        port = self._listener.getsockname()[1] if self._listener else self.cluster.port
        return (
            f"no word for {self._timeout_s:.0f} s from {self._names(missing)}: its process did not start, or "
            f"cannot reach {self.cluster.hosts[0]} port {port} (a firewall between the nodes?). "
            "--peer-timeout is how long to wait"
        )

    def _accept(self) -> None:
        assert self._listener
        try:
            sock, _ = self._listener.accept()
        except OSError:  # nobody for POLL_S
            return
        connection = _Connection(sock, self._note_loss)
        hello = connection.first() or {}
        rank = hello.get("rank")
        if hello.get("hello") != self.cluster.token or rank not in self._missing():
            connection.send({"refused": "another training"})
            sock.close()
            return
        connection.send({"welcome": True})
        self._connections[rank] = connection

    def _find_chief(self, deadline: float) -> None:
        host = self.cluster.hosts[0]
        target = _resolved(host)
        why = "nobody answers"
        while True:
            for port in range(self.cluster.port, self.cluster.port + clusters.PORT_TRIES):
                try:
                    connection = self._knock(target, port)
                except OSError as error:
                    why = str(error) or why
                    continue
                if connection is not None:
                    self._connections[0] = connection
                    return
            if time.monotonic() > deadline:
                raise PeerError(
                    f"no chief was found for {self._timeout_s:.0f} s on {host} ({target}) at the ports from "
                    f"{self.cluster.port}: {why}. Its process did not start, or has ended, or a firewall stands between"
                )
            if self._stop.received:
                raise StoppedWhileWaiting(f"{self._stop.received} while waiting for the chief on {host}")
            time.sleep(POLL_S)

    def _knock(self, target: str, port: int) -> _Connection | None:
        """A connection to the chief if it is ours that listens there. Raises OSError where nobody does."""
        sock = socket.create_connection((target, port), timeout=2)
        connection = _Connection(sock, self._note_loss)
        connection.send({"hello": self.cluster.token, "rank": self.cluster.rank})
        answer = connection.first() or {}
        if answer.get("welcome"):
            return connection
        sock.close()
        if "failed" in answer:
            raise PeerError(str(answer["failed"]), told=True)
        return None

    def _agree_on_addresses(self) -> None:
        """Each one takes a free port for TensorFlow, and all learn of it."""
        if self.addresses:  # given in TF_CONFIG
            return
        ours = free_port()
        seen_by_us = next(iter(self._connections.values())).socket
        peer, own = _ip(seen_by_us.getpeername()), _ip(seen_by_us.getsockname())
        # A worker tells where it has found the chief; the chief where the workers came from.
        told = self.exchange("address", {"port": ours, "own": own, "chief": peer})
        chief = told[0]["own"] if self.cluster.is_chief else told[1]["chief"]
        hosts = [told[1]["chief"] or chief, *(entry["own"] for entry in told[1:])]
        self.addresses = tuple(
            f"[{host}]:{entry['port']}" if ":" in host else f"{host}:{entry['port']}"
            for host, entry in zip(hosts, told, strict=True)
        )

    # ---- Talking.

    def exchange(self, name: str, value: Any, timeout_s: float | None = None) -> list[Any]:
        """The values of all processes, by rank. All have to call it, with the same name.

        Raises PeerError where one has failed, is gone, or does not come within `timeout_s` (default: the
        time-out of the peers).
        """
        deadline = time.monotonic() + (timeout_s or self._timeout_s)
        if not self.cluster.is_chief:
            self._connections[0].send({"name": name, "value": value})
            values = self._receive(0, name, deadline)["values"]
            return list(values)
        values = [value]
        for rank in range(1, len(self.cluster.hosts)):
            values.append(self._receive(rank, name, deadline)["value"])
        for connection in self._connections.values():
            connection.send({"name": name, "values": values})
        return values

    def from_chief(self, name: str, value: Any = None) -> Any:
        """What the chief says."""
        return self.exchange(name, value)[0]

    def _receive(self, rank: int, name: str, deadline: float) -> Message:
        connection = self._connections[rank]
        while True:
            try:
                message = connection.messages.get(timeout=POLL_S)
            except queue.Empty:
                if self.lost:
                    raise self.lost from None
                if time.monotonic() > deadline:
                    raise PeerError(
                        f"{self.cluster.name(rank)} does not answer ({name}, {self._timeout_s:.0f} s)"
                    ) from None
                continue
            if message is None:
                raise self.lost or PeerError(f"{self.cluster.name(rank)} has ended too early")
            if "failed" in message:
                raise self._failed(rank, message)
            if message.get("name") != name:
                raise PeerError(f"{self.cluster.name(rank)} is at {message.get('name')!r}, we at {name!r}")
            return message

    def _failed(self, rank: int, message: Message) -> PeerError:
        reason = str(message["failed"])
        if rank == 0:
            return PeerError(reason, told=True)
        return PeerError(f"{self.cluster.name(rank)}: {reason}")

    # ---- Losing one.

    def _note_loss(self, connection: _Connection) -> None:
        """In a connection's thread: it has ended without a good-bye."""
        with self._lock:
            if self._closing or self.lost:
                return
            rank = next((r for r, known in self._connections.items() if known is connection), 0)
            error = PeerError(
                f"{self.cluster.name(rank)} is gone without a word: killed, or its node has failed"
            )
            with contextlib.suppress(queue.Empty):
                for message in iter(connection.messages.get_nowait, None):
                    if "failed" in message:
                        error = self._failed(rank, message)
                connection.messages.put(None)
            self.lost = error
        timer = threading.Timer(GRACE_S, self._act_on_loss)
        timer.daemon = True
        timer.start()

    def _act_on_loss(self) -> None:
        if self.on_lost and self.lost and not self._closing:
            self.on_lost(self.lost)

    @contextlib.contextmanager
    def within(self, what: str) -> Iterator[None]:
        """A block that may hang in TensorFlow: after the time-out `on_lost` is called with `what`."""

        def too_late() -> None:
            self.lost = self.lost or PeerError(f"{what}: not done after {self._timeout_s:.0f} s")
            self._act_on_loss()

        timer = threading.Timer(self._timeout_s, too_late)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    # ---- Leaving.

    def fail(self, reason: str) -> None:
        """Tell everybody why we end; a chief that has not met its workers waits a little for them."""
        self._closing = True
        for connection in self._connections.values():
            connection.send({"failed": reason})
        deadline = time.monotonic() + TELL_S
        while self._listener and self._missing() and time.monotonic() < deadline and not self._stop.received:
            self._refuse_next(reason)

    def _refuse_next(self, reason: str) -> None:
        assert self._listener
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            connection = _Connection(sock, lambda _: None)
            hello = connection.first() or {}
            if hello.get("hello") == self.cluster.token:
                connection.send({"failed": reason})
                self._connections[hello.get("rank", 0)] = connection
            else:
                connection.send({"refused": "another training"})

    def leave(self) -> None:
        """All is done: the workers say good-bye, the chief waits for that, so that it ends last."""
        self._closing = True
        if not self.cluster.is_chief:
            self._connections[0].send({"bye": True})
            return
        deadline = time.monotonic() + GRACE_S
        for connection in self._connections.values():
            connection.send({"bye": True})
            with contextlib.suppress(queue.Empty):
                connection.messages.get(timeout=max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """Close all connections; what was sent before still arrives."""
        self._closing = True
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
            connection.socket.close()
        if self._listener:
            self._listener.close()


def _listen(first: int) -> socket.socket:
    """A listening socket at the first port that is free."""
    for port in range(first, first + clusters.PORT_TRIES):
        try:
            listener = socket.create_server(("", port), backlog=256)
        except OSError:
            continue
        listener.settimeout(POLL_S)
        return listener
    raise TrainerError(
        f"none of the ports {first} to {first + clusters.PORT_TRIES - 1} is free on {socket.gethostname()}"
    )


def free_port() -> int:
    """A port for TensorFlow that nobody listens at, outside of those for outgoing connections."""
    for port in random.SystemRandom().sample(
        range(clusters.FIRST_PORT, clusters.FIRST_PORT + clusters.PORTS), 50
    ):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise TrainerError(f"no free port was found on {socket.gethostname()}")


def _resolved(host: str) -> str:
    """A name or an address that the system can reach `host` by. Raises PeerError."""
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        address = clusters.address_by_scontrol(host)
        if address is None:
            raise PeerError(
                f"the chief's host {host} cannot be resolved on {socket.gethostname()}: {error}"
            ) from None
        return address
    return host


def _ip(address: Any) -> str:
    return str(address[0])
