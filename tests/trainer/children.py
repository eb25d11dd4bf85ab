"""What is asked of TensorFlow is asked in a process of its own: the tests' own process stays free of its threads."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.trainer.running import LIMIT_S, TRAINER, TREE, environment

_BEGIN = """
import json, os, sys
from pathlib import Path
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
"""


def answer(script: str, *arguments: str | Path, cwd: Path | None = None) -> Any:
    """What a script gives as `result`; its arguments are in sys.argv."""
    text = f"{_BEGIN}{textwrap.dedent(script)}\nprint('RESULT', json.dumps(result))"
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        cwd=cwd,
        env=environment(PYTHONPATH=f"{TREE / 'trainer'}:{TREE}"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    _, mark, result = done.stdout.rpartition("RESULT ")
    assert mark, done.stdout + done.stderr
    return json.loads(result)


def preprocess(*arguments: str | Path, cwd: Path, limits: str = "") -> subprocess.CompletedProcess[str]:
    """Run tfjob-preprocess to its end, under limits of `ulimit` if wanted."""
    command = [sys.executable, str(TRAINER), "preprocess", *map(str, arguments)]
    if limits:
        command = ["bash", "-c", f'ulimit {limits}; exec "$@"', "bash", *command]
    return subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
