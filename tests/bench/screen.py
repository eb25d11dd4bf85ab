"""How fast the screen is with many jobs: first rows, keys, stalls through a refresh, idle cost, memory, requests.

Run by `make bench` as an ordinary user on the test cluster. The reference is turm, a peer written in Rust,
started in the same run on the same queue, turn by turn; what counts are the ratios.

    python tests/bench/screen.py [--jobs N]...
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.terminal import Terminal

MARK = b"bench-"
"""The names of the submitted jobs begin with it: once it is on the screen, rows are."""


def main() -> None:
    options = _options()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    env = {**os.environ, "LANG": "C.UTF-8"}
    home = tempfile.mkdtemp(prefix="tfjobtui-bench-")
    env |= {f"XDG_{kind}_HOME": f"{home}/{kind}" for kind in ("CONFIG", "STATE", "CACHE")}
    for count in options.jobs:
        _fill(count)
        print(f"\n== {count:,} jobs in the queue")
        _first_rows(env, options.runs)
        if count >= 1000 or options.all:
            _keys(env)
            _idle(env)
    _version()
    subprocess.run(["scancel", f"--user={os.getuid()}"], check=False)
    shutil.rmtree(home, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, nargs="+", default=[10, 10_000])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--all", action="store_true", help="measure keys and idle cost with few jobs too")
    return parser.parse_args()


def _queue_length() -> int:
    listed = subprocess.run(["squeue", "-h", "--me", "-o", "%A"], capture_output=True, text=True, check=True)
    return len(listed.stdout.split())


def _fill(count: int) -> None:
    """Bring the user's queue to `count` held jobs."""
    there = _queue_length()
    if there > count:
        subprocess.run(["scancel", f"--user={os.getuid()}"], check=True)
        until = time.monotonic() + 120
        while (there := _queue_length()) and time.monotonic() < until:
            time.sleep(0.5)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "job.sh")
        script.write_text("#!/bin/bash\nsleep 60\n")
        always = ["sbatch", "-Q", "--hold", "-c4", "--mem=4G", "-t60", "-D", folder]
        for number in range(there, count):
            argv = [*always, "-J", f"bench-{number % 97}", f"--gpus={number % 4 + 1}", str(script)]
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def _time_to_mark(argv: list[str], env: Mapping[str, str]) -> float:
    """Seconds from the start of a program to the first row on its screen."""
    with Terminal(argv, env, emulate=False) as terminal:
        until = time.perf_counter() + 30
        while MARK not in terminal.raw and time.perf_counter() < until:
            terminal.pump(0.002)
        return time.perf_counter() - terminal.started_at


def _first_rows(env: Mapping[str, str], runs: int) -> None:
    """Ours and turm's in turn."""
    ours, theirs = [], []
    turm = shutil.which("turm")
    for _ in range(runs):
        ours.append(_time_to_mark(["tfjobtui"], env))
        if turm:
            theirs.append(_time_to_mark([turm, "--me"], env))
    mine = statistics.median(ours)
    line = f"first rows: {mine:.3f} s (best {min(ours):.3f})"
    if theirs:
        other = statistics.median(theirs)
        line += f"; turm {other:.3f} s; ratio {mine / other:.2f}"
    print(line)


def _keys(env: Mapping[str, str]) -> None:
    """From a key to the repaint it causes, every 50 ms for 25 s: at least two refreshes come in meanwhile."""
    with Terminal(["tfjobtui"], env, emulate=False) as terminal:
        _wait_rows(terminal)
        times = []
        until = time.perf_counter() + 25
        number = 0
        while time.perf_counter() < until:
            terminal.pump(0)
            key = b"j" if number % 40 < 20 else b"k"
            number += 1
            started = time.perf_counter()
            os.write(terminal._fd, key)
            terminal.pump(2.0)
            times.append(time.perf_counter() - started)
            time.sleep(0.03)
    times.sort()
    p95 = times[int(len(times) * 0.95)]
    print(
        f"key to repaint: median {statistics.median(times) * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms, "
        f"longest {times[-1] * 1000:.1f} ms over {len(times)} keys"
    )


def _wait_rows(terminal: Terminal) -> None:
    until = time.perf_counter() + 30
    while MARK not in terminal.raw and time.perf_counter() < until:
        terminal.pump(0.01)
    settle = time.perf_counter() + 2
    while time.perf_counter() < settle:
        terminal.pump(0.1)


def _cpu_s(pid: int) -> float:
    """User and system time of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory now and at its highest, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return int(values["VmRSS"]) / 1000, int(values["VmHWM"]) / 1000


def _requests() -> int:
    """How many requests slurmctld has had from this user, as it counts itself (`sdiag`, part "by user")."""
    text = subprocess.run(["sdiag"], capture_output=True, text=True, check=True).stdout
    part = text.split("by user", 1)[1]
    for line in part.splitlines():
        if f"({os.getuid()})" in line or line.split("(")[0].strip() == os.environ.get("USER", ""):
            return int(line.split("count:")[1].split()[0])
    return 0


def _idle(env: Mapping[str, str]) -> None:
    """30 s of nothing but refreshes: CPU, memory and requests; then a minute with a job's details open."""
    with Terminal(["tfjobtui"], env, emulate=False) as terminal:
        _wait_rows(terminal)
        cpu, asked = _cpu_s(terminal.pid), _requests()
        began = time.perf_counter()
        while time.perf_counter() < began + 60:
            if time.perf_counter() < began + 30:
                cpu_30 = _cpu_s(terminal.pid)
            terminal.pump(0.25)
        now, highest = _memory_mb(terminal.pid)
        table = _requests() - asked - 1  # sdiag's own
        print(f"idle: {cpu_30 - cpu:.2f} CPU s in 30 s; memory {now:.0f} MB, at most {highest:.0f} MB")
        terminal.press("enter")
        asked = _requests()
        began = time.perf_counter()
        while time.perf_counter() < began + 60:
            terminal.pump(0.25)
        details = _requests() - asked - 1
    print(f"requests to slurmctld in a minute: {table} from the table, {details} with details open")


def _version() -> None:
    times = []
    for _ in range(10):
        started = time.perf_counter()
        subprocess.run(["tfjobtui", "--version"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    print(
        f"\ntfjobtui --version: median {statistics.median(times) * 1000:.0f} ms, best {min(times) * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
