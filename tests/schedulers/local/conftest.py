"""A queue of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.schedulers.local.queue import clean_up
from tfjobtui.schedulers.local.place import Place
from tfjobtui.schedulers.local.store import Store


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place; what it has started is ended afterwards."""
    made = Place(tmp_path / "queue")
    yield made
    clean_up(made)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    opened = Store(place)
    yield opened
    opened.close()
