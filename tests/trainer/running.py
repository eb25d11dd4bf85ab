"""Running the trainer as a user does: in a process of its own, from its folder."""

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
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
