"""Running the trainer as a user does: in a process of its own, from its folder."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TREE = Path(__file__).resolve().parents[2]
TRAINER = TREE / "trainer" / "tfjob_trainer"
TEMPLATE = TREE / "sbatch" / "train.sbatch"
LIMIT_S = 120  # a run takes 7 s alone on two cores; many share them

# Four epochs of 23 steps, with figures and checkpoints close enough to break the run off between them.
SHORT = ("--device", "cpu", "--epochs", "4", "--log-steps", "5", "--checkpoint-steps", "10")


def environment(**more: str) -> dict[str, str]:
    """The variables of a login shell, without anything of Slurm."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | more


def command(*arguments: str | Path) -> list[str]:
    """The command line that runs the trainer from its folder."""
    return [sys.executable, str(TRAINER), *map(str, arguments)]


def run(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the trainer to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=dict(env or environment()),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def break_off(number: signal.Signals, at: str, *arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """Run the trainer until a line of its log begins with `at`, send it a signal; exit code and output."""
    with subprocess.Popen(
        command(*arguments), cwd=cwd, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith(at):
                process.send_signal(number)
                break
        seen.append(process.stdout.read())
        return process.wait(LIMIT_S), "".join(seen)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in sockets]


def start_workers(
    *arguments: str | Path,
    cwd: Path,
    count: int = 2,
    of_rank: Mapping[int, Mapping[str, str]] | None = None,
    **more: str,
) -> list[subprocess.Popen[str]]:
    """Start the processes of one training; the output of each is in `worker-<rank>.log` of the folder `cwd`.

    `more` are variables of all of them, `of_rank` of one.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    started = []
    for rank in range(count):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        with (cwd / f"worker-{rank}.log").open("w") as log:
            started.append(
                subprocess.Popen(
                    command(*arguments),
                    cwd=cwd,
                    env=environment(TF_CONFIG=json.dumps(config), **more)
                    | dict((of_rank or {}).get(rank, {})),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
    return started


def end_of(processes: Sequence[subprocess.Popen[str]]) -> list[int]:
    """The exit codes of processes, once all have ended; none is left behind."""
    deadline = time.monotonic() + LIMIT_S
    try:
        return [process.wait(max(0.1, deadline - time.monotonic())) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def wait_for(path: Path, text: str, processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait until `text` stands in a log."""
    deadline = time.monotonic() + LIMIT_S
    while text not in (path.read_text() if path.exists() else ""):
        assert time.monotonic() < deadline, path.read_text()
        assert processes[0].poll() is None, path.read_text()
        time.sleep(0.05)


def telemetry(folder: Path, attempt: int, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind that an attempt left; an unfinished last line is left out, as readers do."""
    text = (folder / f"telemetry-{attempt}-0.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line["kind"] == kind]


def state(folder: Path) -> dict[str, Any]:
    """What the state file holds."""
    values: dict[str, Any] = json.loads((folder / "state.json").read_text())
    return values


def events(folder: Path) -> Iterator[bytes]:
    """The raw records of TensorBoard's event files in a folder."""
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, position = path.read_bytes(), 0
        while position < len(data):
            (length,) = struct.unpack_from("<Q", data, position)
            yield data[position + 12 : position + 12 + length]
            position += 16 + length
