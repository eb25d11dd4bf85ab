"""Which descriptors a step's tasks get for their input and output."""

from __future__ import annotations

import os
import selectors

from tfjobtui.schedulers.local.commands.refusal import RefusalError
from tfjobtui.schedulers.local.commands.step_files import Kind, Opened, StepIds, Target
from tfjobtui.schedulers.local.commands.step_request import StepRequest
from tfjobtui.schedulers.local.commands.step_streams import Input, Labels, has_input
from tfjobtui.schedulers.local.place import host_name

_WORDS = ("stdin", "stdout", "stderr")
Streams = tuple[int, int, int]


class Wiring:
    """Opens what the tasks need, and passes on what goes through srun."""

    def __init__(self, request: StepRequest, selector: selectors.BaseSelector) -> None:
        self._request = request
        self._labels = Labels(selector, request.task_count) if request.is_labelled else None
        self._input = Input(selector)
        is_taken = request.wants_terminal and os.isatty(0)
        self._has_input = request.stdin.kind in (Kind.OWN, Kind.ONE) and not is_taken and has_input()
        ids = StepIds(request.base, request.number, host_name())
        self._files = Opened(ids, request.folder, append=request.append)
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._of_this_task: list[int] = []

    def streams_of(self, task: int) -> Streams:
        """The task's three descriptors.

        Raises:
            RefusalError: a file cannot be opened.
        """
        request, at = self._request, 0
        try:
            stdin = self._reading(request.stdin, task)
            at = 1
            stdout = self._writing(request.stdout, task, 1)
            at = 2
            if request.stderr is not None:
                stderr = self._writing(request.stderr, task, 2)
            else:  # as standard output, into the same stream where that was named
                stderr = self._writing(request.stdout, task, 2 if request.stdout.kind is Kind.OWN else 1)
        except OSError as error:
            raise RefusalError(f"srun: error: Could not open {_WORDS[at]} file: {error.strerror}") from error
        return stdin, stdout, stderr

    def started(self) -> None:
        """The task has its descriptors: what of them was for it alone is closed here."""
        while self._of_this_task:
            os.close(self._of_this_task.pop())

    def _reading(self, where: Target, task: int) -> int:
        if where.kind in (Kind.SHARED, Kind.EACH):
            descriptor = self._files.read(where, task)
        elif self._has_input and where.reads(task):
            descriptor = self._input.pipe()
        else:
            return self._null
        self._of_this_task.append(descriptor)
        return descriptor

    def _writing(self, where: Target, task: int, own: int) -> int:
        if where.kind in (Kind.SHARED, Kind.EACH):
            descriptor = self._files.write(where, task)
        elif where.reads(task):
            descriptor = own
        else:
            return self._null
        if self._labels is None:
            return descriptor
        self._of_this_task.append(self._labels.pipe(task, descriptor))
        return self._of_this_task[-1]

    def begin(self) -> None:
        """All tasks run: what is on standard input is for them."""
        self._input.begin()

    def end(self) -> None:
        """No task runs any more."""
        self._input.end()
