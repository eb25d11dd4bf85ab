"""A user for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.schedulers.local.commands.user import User


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    made = User(tmp_path_factory.mktemp("commands"))
    yield made
    made.close()
