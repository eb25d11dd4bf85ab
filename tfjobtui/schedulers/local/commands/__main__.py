"""Runs one of the commands: `python -m tfjobtui.schedulers.local.commands NAME ARGUMENT…`."""

from __future__ import annotations

import importlib
import sys

from tfjobtui.errors import TfjobtuiError
from tfjobtui.schedulers.local.commands import NAMES
from tfjobtui.schedulers.local.commands.refusal import RefusalError


def main(argv: list[str]) -> int:
    """Run it and give its exit code."""
    name = argv[0] if argv else ""
    if name not in NAMES:
        sys.stderr.write(f"There is no command {name!r} here; there are {', '.join(NAMES)}.\n")
        return 2
    module = importlib.import_module(f"tfjobtui.schedulers.local.commands.{name}")
    try:
        code: int = module.run(argv[1:])
        sys.stdout.flush()
    except RefusalError as refusal:
        sys.stdout.flush()
        sys.stderr.write(f"{refusal.words}\n")
        return refusal.code
    except TfjobtuiError as error:
        sys.stderr.write(f"{name}: error: {error}\n")
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
