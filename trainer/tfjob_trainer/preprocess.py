"""`tfjob-preprocess`: from images to the TFRecords that the trainer reads, and a check of such files.

sources    which images, their classes, what is held back
making     the shards, and going on where it was broken off
checking   reading a data set as a whole
convert    from a file to a JPEG
workers    the worker processes; `shards` is what they do
manifest   dataset.json
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tfjob_trainer import checking, log, making, sources
from tfjob_trainer.errors import TrainerError
from tfjob_trainer.log import complain
from tfjob_trainer.making import Options
from tfjob_trainer.train import require_packages

_EPILOG = """\
The result is a folder of TFRecords in ImageNet's layout with a dataset.json, for tfjob-train --data-dir. JPEGs
are kept as they are; PNG, BMP and GIF become JPEGs. Broken files are named and end the run with code 1, unless
--skip-broken leaves them out. A run that was broken off goes on where it was when it is started again.

  tfjob-preprocess --source photos/ --out /scratch/photos       a sub-folder for each class
  tfjob-preprocess --source list.csv --out /scratch/photos      path,label in each line
  tfjob-preprocess --source digits --out digits                 a small real data set, without a download
  tfjob-preprocess --check /scratch/imagenet                    read and decode everything; makes dataset.json
                                                                for TFRecords of another program
exit codes: 0 done, 1 something is broken or failed, 2 wrong use
"""


def make_parser() -> argparse.ArgumentParser:
    """The command line of `tfjob-preprocess`."""
    parser = argparse.ArgumentParser(
        prog="tfjob-preprocess",
        usage="tfjob-preprocess --source SOURCE --out FOLDER [OPTION …]\n       tfjob-preprocess --check FOLDER",
        description="Make TFRecords for tfjob-train from images, or check them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--source",
        metavar="SOURCE",
        help='folder with a sub-folder for each class (or train/ and val/), CSV, or "digits"',
    )
    add("--out", type=Path, metavar="FOLDER", help="where the data set goes")
    add("--check", type=Path, metavar="FOLDER", help="check the data set in this folder, make none")
    add("--name", help="of the data set; default: the source's")
    add(
        "--validation",
        type=_fraction,
        default=0.1,
        metavar="X",
        help="part of each class that is held back where the source is not divided, default 0.1",
    )
    add(
        "--shards",
        type=_count,
        metavar="N",
        help="files for training; default: of about 128 MB, 16 at least if there is enough",
    )
    add("--workers", type=_count, metavar="N", help="processes; default: the CPUs of the job")
    add("--skip-broken", action="store_true", help="leave broken files out; they are listed and counted")
    add(
        "--convert-odd",
        action="store_true",
        help="convert CMYK and 16-bit images, and the first frame of animations",
    )
    add("--restart", action="store_true", help="throw away what an earlier run has made in the folder")
    add(
        "--label-base",
        type=int,
        choices=(0, 1),
        help="--check: the first class's label; default: 1 where no record has 0",
    )
    add("--quick", action="store_true", help="--check: read every record, decode no image")
    return parser


def _fraction(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < 1:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a part: at least 0, less than 1")


def _count(text: str) -> int:
    if text.isdecimal() and 1 <= int(text) <= 99_999:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 99999")


def parse(arguments: Sequence[str] | None = None) -> Options:
    """The options in `arguments` (default: the command line); a wrong one ends the process with code 2."""
    parser = make_parser()
    options = Options(**vars(parser.parse_args(arguments)))
    if options.check is None and (options.source is None or options.out is None):
        parser.error("--source and --out are needed, or --check")
    if options.check is not None and (options.source or options.out):
        parser.error("--check goes without --source and --out")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    log.set_program("tfjob-preprocess")
    options = parse(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        require_packages(digits=options.source == sources.DIGITS)
        if options.check is not None:
            return checking.check(options.check.expanduser().absolute(), options)
        making.make(options)
    except TrainerError as error:
        complain(str(error))
        return error.exit_code
    except OSError as error:
        complain(f"{error.filename or ''}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        complain("interrupted; finished shards are kept, and the same command goes on from there")
        return 130
    return 0


def _terminated(number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
