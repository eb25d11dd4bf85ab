"""Seeing to it that what was changed is acted on."""

from __future__ import annotations

import os

from tfjobtui.schedulers.local import dispatch, waiter
from tfjobtui.schedulers.local.place import TOKEN_VARIABLE
from tfjobtui.schedulers.local.store import Store


def make_pass_soon(store: Store) -> None:
    """Make a pass; from within a job the waiter makes it, whose processes are not the job's."""
    if TOKEN_VARIABLE in os.environ and waiter.is_there(store.place):
        return
    dispatch.make_pass(store.place, store)
