"""Draws the picture in README from the program: `python -m tests.ui.screenshot [FILE.svg [THEME [80x24]]]`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.actions.fakes import FakeScheduler
from tests.jobs import make_job
from tests.ui.screens import until_text
from tfjobtui.config import Config, Ui
from tfjobtui.model.job import ExitCode, Job
from tfjobtui.schedulers.scheduler import Capabilities
from tfjobtui.ui.app import TfjobtuiApp, make_services

LOG = """tfjob-train: run folder /scratch/ada/runs/resnet50-imagenet-6001
tfjob-train: 4 GPUs (NVIDIA A100-SXM4-80GB), MirroredStrategy, mixed_bfloat16, batch 1024 (256 per replica)
tfjob-train: data /scratch/imagenet/tfrecords: 1,281,167 examples, 1,251 steps an epoch
tfjob-train: resumed at step 11,259 (epoch 9) from checkpoints/ckpt-11259
step  11,300/112,590  epoch  9.0  loss 2.9313  accuracy 0.4120  9,214 images/s
step  11,400/112,590  epoch  9.1  loss 2.8871  accuracy 0.4188  9,260 images/s
step  11,500/112,590  epoch  9.2  loss 2.8934  accuracy 0.4179  9,255 images/s
step  11,600/112,590  epoch  9.3  loss 2.8552  accuracy 0.4235  9,249 images/s
step  11,700/112,590  epoch  9.4  loss 2.8611  accuracy 0.4241  9,261 images/s
"""


def _queue(folder: str) -> list[Job]:
    now = int(time.time())
    a100 = {"gpus": ("a100", 4), "cpus": 32, "memory_bytes": 256 << 30}
    return [
        make_job(
            "6001",
            name="resnet50-imagenet",
            nodes="gpu01",
            start_time_s=now - 8130,
            time_limit_s=28800.0,
            work_dir=folder,
            stdout_pattern=f"{folder}/slurm-%j.out",
            **a100,
        ),
        make_job("5782_[5-100%4]", "PENDING", name="sweep-lr", reason="JobArrayTaskLimit", gpus=("v100", 1)),
        make_job("5782_3", name="sweep-lr", nodes="v100-02", start_time_s=now - 1300, gpus=("v100", 1)),
        make_job("5782_4", name="sweep-lr", nodes="v100-02", start_time_s=now - 900, gpus=("v100", 1)),
        make_job("6002", "PENDING", name="evaluate", reason="Dependency", cpus=8, dependency="afterok:6001"),
        make_job("6005", "PENDING", name="bert-large", reason="Priority", start_time_s=now + 5400, **a100),
        make_job(
            "5990",
            "OUT_OF_MEMORY",
            name="preprocess",
            nodes="cpu07",
            start_time_s=now - 4000,
            end_time_s=now - 600,
        ),
        make_job(
            "5985", "COMPLETED", name="digits", nodes="gpu02", start_time_s=now - 4100, end_time_s=now - 4050
        ),
        make_job(
            "5981",
            "FAILED",
            name="unet-try",
            nodes="gpu02",
            start_time_s=now - 9000,
            end_time_s=now - 8700,
            exit_code=ExitCode(1),
        ),
    ]


async def draw(path: Path, theme: str, size: tuple[int, int]) -> None:
    """Open the list with a log below it, and save the picture."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "slurm-6001.out").write_text(LOG)
        scheduler = FakeScheduler(*_queue(folder))
        scheduler.capabilities = Capabilities("Slurm", "24.11.5")
        app = TfjobtuiApp(make_services(Config(ui=Ui(theme=theme)), scheduler))
        async with app.run_test(size=size) as pilot:
            await until_text(pilot, "resnet50-im")
            await pilot.press("l")
            await until_text(pilot, "11,700")
            svg = app.export_screenshot(title="tfjobtui").replace(folder, "/scratch/ada")
    path.parent.mkdir(exist_ok=True)
    path.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/jobs.svg")
    columns, rows = (sys.argv[3] if len(sys.argv) > 3 else "120x30").split("x")
    asyncio.run(draw(target, sys.argv[2] if len(sys.argv) > 2 else "dark", (int(columns), int(rows))))
