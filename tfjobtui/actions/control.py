"""Cancel, hold, release, requeue, change: the answer in one sentence, and a note in the command log."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from tfjobtui.actions.command_log import CommandLog
from tfjobtui.actions.fields import field_named
from tfjobtui.errors import ActionError, UsageError
from tfjobtui.model.text import printable
from tfjobtui.schedulers.scheduler import ActionResult, Capability, Scheduler, Target

_MOST_NAMED = 3
"""How many refusals a summary spells out."""

SIGNALS = ("INT", "TERM", "KILL", "USR1", "USR2", "HUP", "CONT", "STOP", "QUIT", "ABRT", "ALRM")
"""Signals to choose from, by name; SIGUSR1 is what training scripts take for "write a checkpoint"."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action: a sentence for the user, and the result for each job."""

    summary: str
    results: tuple[ActionResult, ...]

    @property
    def ok(self) -> bool:
        return all(result.ok for result in self.results)

    @property
    def refused(self) -> tuple[ActionResult, ...]:
        return tuple(result for result in self.results if not result.ok)


class Control:
    """The actions on jobs. Targets are fixed by the caller when the user chooses them.

    Every method raises `ActionError` where the scheduler cannot do it at all, and otherwise gives an
    outcome, also of a refusal.
    """

    def __init__(self, scheduler: Scheduler, log: CommandLog) -> None:
        self._scheduler = scheduler
        self._log = log

    async def cancel(self, targets: Sequence[Target], signal: str | None = None) -> Outcome:
        """Cancel, or send a signal; of `pending_only` targets only what still waits."""
        if signal is None:
            return await self._act("cancel", "cancelled", targets, self._scheduler.cancel(targets))
        name = check_signal(signal)
        done = f"sent SIG{name} to" if not name.isdigit() else f"sent signal {name} to"
        return await self._act(f"signal {name}", done, targets, self._scheduler.cancel(targets, name))

    async def hold(self, targets: Sequence[Target]) -> Outcome:
        _require(self._scheduler.capabilities.hold)
        return await self._act("hold", "held", targets, self._scheduler.hold(targets))

    async def release(self, targets: Sequence[Target]) -> Outcome:
        _require(self._scheduler.capabilities.hold)
        return await self._act("release", "released", targets, self._scheduler.release(targets))

    async def requeue(self, targets: Sequence[Target]) -> Outcome:
        _require(self._scheduler.capabilities.requeue)
        return await self._act("requeue", "requeued", targets, self._scheduler.requeue(targets))

    async def update(self, targets: Sequence[Target], changes: Mapping[str, str]) -> Outcome:
        """Change fields, by the scheduler's names; the values are checked first.

        Raises:
            UsageError: a field cannot be changed, or a value does not fit.
        """
        _require(self._scheduler.capabilities.update)
        fields = {name: field_named(name) for name in changes}
        checked = {field.name: field.check(changes[name]).value for name, field in fields.items()}
        words = ", ".join(f"{name}={value}" for name, value in checked.items())
        return await self._act(f"set {words} of", "changed", targets, self._update_each(targets, checked))

    async def _update_each(
        self, targets: Sequence[Target], changes: Mapping[str, str]
    ) -> tuple[ActionResult, ...]:
        return tuple([await self._scheduler.update(target, changes) for target in targets])

    async def _act(
        self, purpose: str, done: str, targets: Sequence[Target], call: Awaitable[tuple[ActionResult, ...]]
    ) -> Outcome:
        results = await call
        ids = " ".join(str(target.id) for target in targets)
        self._log.add(f"{purpose} {ids}", (result.command for result in results))
        return Outcome(summarize(done, results), results)


def check_signal(text: str) -> str:
    """`usr1`, `SIGUSR1` or `10` as scancel takes it.

    Raises:
        UsageError: it is no signal.
    """
    import signal  # it builds two enums, so only where it is needed

    name = text.strip().upper().removeprefix("SIG")
    if name.isdigit() and 0 < int(name) < 65:
        return name
    if f"SIG{name}" in signal.Signals.__members__:
        return name
    raise UsageError(f"there is no signal {text!r}", f"Signals are: {' '.join(SIGNALS)}.")


def summarize(done: str, results: Sequence[ActionResult]) -> str:
    """`cancelled 3 of 4 jobs; 5782_7: Access/permission denied`."""
    good = [result for result in results if result.ok]
    bad = [result for result in results if not result.ok]
    parts = []
    if len(results) == 1 and good:
        remark = f" ({_remark(good[0])})" if good[0].message else ""
        parts.append(f"{done} {good[0].target.id}{remark}")
    elif good or not results:
        of = f" of {len(results)}" if bad else ""
        remarks = [f"{result.target.id}: {_remark(result)}" for result in good if result.message]
        more = ", …" if len(remarks) > _MOST_NAMED else ""
        told = f" ({', '.join(remarks[:_MOST_NAMED])}{more})" if remarks else ""
        parts.append(f"{done} {len(good)}{of} jobs{told}")
    elif len(bad) == 1:
        parts.append(_not(done))
    else:
        parts.append(f"{done} none of {len(bad)} jobs")
    parts.extend(f"{result.target.id}: {_words(result)}" for result in bad[:_MOST_NAMED])
    if len(bad) > _MOST_NAMED:
        parts.append(f"and {len(bad) - _MOST_NAMED} more were refused")
    return "; ".join(parts)


def _not(done: str) -> str:
    """`not cancelled`, `SIGUSR1 not sent`."""
    if done.endswith(" to"):
        return f"{done.removeprefix('sent ').removesuffix(' to')} not sent"
    return f"not {done}"


def _remark(result: ActionResult) -> str:
    """What was said of a job that it was done to: `it had already ended`."""
    words = printable(" ".join(result.message.split())).rstrip(".")
    return f"{words[:1].lower()}{words[1:]}"


def _words(result: ActionResult) -> str:
    return printable(" ".join(result.message.split())) or "refused"


def _require(capability: Capability) -> None:
    if not capability:
        raise ActionError(capability.reason or "this cannot be done here")
