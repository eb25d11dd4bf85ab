"""Runs the trainer from its folder: `python /any/where/tfjob_trainer --help`.

The words `preprocess` and `evaluate` in the first place stand for the other commands.

For an environment that has TensorFlow but in which the trainer is not installed. Only this package is made
importable, never the folder around it: that can be the site-packages of another Python.
"""

import importlib.util
import sys
from pathlib import Path

PACKAGE = "tfjob_trainer"


def _load_package(folder: Path) -> None:
    """Register the package in `folder` under its name, and keep the folder itself off the module path."""
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        sys.exit(f"tfjob-train: {folder} is not the trainer's folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def _main(arguments: list[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "preprocess-worker":
        from tfjob_trainer import shards

        return shards.run()
    if command == "preprocess":
        from tfjob_trainer import preprocess

        return preprocess.main(rest)
    if command == "evaluate":
        from tfjob_trainer import evaluate

        return evaluate.main(rest)
    from tfjob_trainer import train

    return train.main(arguments)


if __name__ == "__main__":
    if not __package__:
        _load_package(Path(__file__).resolve().parent)
    sys.exit(_main(sys.argv[1:]))
