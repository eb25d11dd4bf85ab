"""What the keys of the job list do to jobs: fix the targets, ask, act, and say what became of it.

The dialogs are imported where they are opened: this module is on the way of every start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tfjobtui.actions.control import Control, Outcome
from tfjobtui.errors import TfjobtuiError
from tfjobtui.model.text import printable
from tfjobtui.monitor.view import Row
from tfjobtui.schedulers.scheduler import Submitted, Target
from tfjobtui.ui.selection import Selection, select

if TYPE_CHECKING:
    from textual.app import App

    from tfjobtui.actions.submit import SubmitOutcome, SubmitPlan
    from tfjobtui.templates.catalogue import Template
    from tfjobtui.ui.services import Services
    from tfjobtui.ui.submit_form import FormState

Answer = TypeVar("Answer")
LATE_S = 1.5
"""From here on an answer is late enough to say that it is waited for."""


class JobActions:
    """Each action is a coroutine for a worker (it waits for its dialog). The jobs are fixed before it first waits."""

    def __init__(self, app: App[Any], services: Services) -> None:
        self._app = app
        self._services = services
        self._control = Control(services.scheduler, services.command_log)
        self._form: FormState | None = None

    # -- what is there already --------------------------------------------------------------

    async def cancel(self, rows: Sequence[Row]) -> None:
        """Cancel, or send a signal; of an array the user says whether what runs of it is meant too."""
        selection = self._select(rows).only(lambda item: not item.is_over)
        if not selection:
            self._tell("Nothing to cancel: it has ended already.")
            return
        from tfjobtui.ui.screens.confirm import CancelChoice, CancelDialog

        def targets_of(choice: CancelChoice) -> tuple[Target, ...]:
            if choice.signal is not None:
                return selection.active()
            return selection.waiting() if choice.waiting_only else selection.everything()

        def commands(choice: CancelChoice) -> Sequence[Sequence[str]]:
            return self._commands("cancel", targets_of(choice), choice.signal)

        choice: CancelChoice | None = await self._app.push_screen_wait(CancelDialog(selection, commands))
        if choice is not None:
            await self._act("Cancel", self._control.cancel(targets_of(choice), choice.signal))

    async def hold(self, rows: Sequence[Row]) -> None:
        """Keep waiting jobs from starting."""
        selection = self._select(rows).only(lambda item: not item.is_over)
        targets = _waiting_first(selection)
        if not targets:
            self._tell("Nothing to hold: it has ended already.")
        elif len(selection) == 1 or await self._confirm(
            "Hold", "They will wait until they are released.", selection, targets
        ):
            await self._act("Hold", self._control.hold(targets))
            if any(item.active and not item.waiting for item in selection.items):
                self._tell("What runs goes on; it would wait only after a requeue.")

    async def release(self, rows: Sequence[Row]) -> None:
        """Let held jobs start again."""
        selection = self._select(rows).only(lambda item: not item.is_over)
        targets = _waiting_first(selection)
        if not targets:
            self._tell("Nothing to release: it has ended already.")
        elif len(selection) == 1 or await self._confirm(
            "Release", "They may start again.", selection, targets
        ):
            await self._act("Release", self._control.release(targets))

    async def requeue(self, rows: Sequence[Row]) -> None:
        """Stop what runs and queue it once more, under the same id; what has ended too."""
        selection = self._select(rows).only(lambda item: bool(item.active or item.ended))
        targets = tuple(target for item in selection.items for target in item.active or item.ended)
        if not targets:
            self._tell("Nothing to requeue: it waits already.")
            return
        text = (
            "What runs is stopped, and starts again from the beginning of its script. "
            "Its log is emptied then, unless the script says --open-mode=append."
        )
        if await self._confirm("Requeue", text, selection, targets):
            await self._act("Requeue", self._control.requeue(targets))

    async def change(self, rows: Sequence[Row]) -> None:
        """Change the time limit or another field, the same for all."""
        from tfjobtui.ui.screens.change import Change, ChangeDialog, changes_for

        plan = changes_for(rows)
        if not plan.fields:
            self._tell("Nothing of it can be changed: it has ended already.")
            return
        answer: Change | None = await self._app.push_screen_wait(ChangeDialog(plan))
        if answer is not None:
            targets = plan.targets(answer.field)
            await self._act("Change", self._control.update(targets, {answer.field.name: answer.value}))

    # -- new jobs ---------------------------------------------------------------------------

    async def submit(self) -> Submitted | None:
        """Fill in a template and submit it. After a refusal the form comes back as it was."""
        from tfjobtui.templates import catalogue
        from tfjobtui.ui.screens.submit import SubmitScreen

        scheduler = self._services.scheduler
        if not scheduler.capabilities.submit:
            self._tell(scheduler.capabilities.submit.reason)
            return None
        templates = catalogue.load((catalogue.shipped_folder(), *self._services.config.templates.folders))
        while True:
            screen = SubmitScreen(templates, self._form_state(), scheduler)
            plan: SubmitPlan | None = await self._app.push_screen_wait(screen)
            if plan is None:
                return None
            submitted = await self._submit_plan(plan, templates)
            if submitted is not None:
                return submitted

    async def _submit_plan(self, plan: SubmitPlan, templates: Sequence[Template]) -> Submitted | None:
        """Submit it, where TensorFlow is missing after a job that installs it."""
        from tfjobtui.actions.submit import submit
        from tfjobtui.ui.trainer_offer import with_trainer

        services = self._services

        async def send(some: SubmitPlan) -> Submitted | None:
            return await self._submitted(
                submit(services.scheduler, services.records, services.command_log, some)
            )

        try:
            ready = await with_trainer(self._app, services, plan, templates, send)
        except TfjobtuiError as error:
            await self._explain("Not submitted", str(error))
            return None
        return await send(ready) if ready is not None else None

    async def resubmit(self, row: Row) -> Submitted | None:
        """Submit the same again: of an array's row the array, of one of its tasks that task."""
        from tfjobtui.actions import resubmit

        scheduler, records = self._services.scheduler, self._services.records
        is_array = bool(row.members) or row.job.id.tasks is not None
        job = replace(row.job, id=row.job.id.leader) if is_array else row.job
        try:
            plan = await resubmit.plan(scheduler, records, job)
        except TfjobtuiError as error:
            await self._explain("Submit again: not possible", str(error))
            return None
        from tfjobtui.ui.screens.resubmit import ResubmitScreen

        what = f"{'array' if is_array else 'job'} {job.id}"
        answer: bool | None = await self._app.push_screen_wait(ResubmitScreen(plan, what))
        if not answer:
            return None
        return await self._submitted(resubmit.submit(scheduler, records, self._services.command_log, plan))

    async def _submitted(self, call: Awaitable[SubmitOutcome]) -> Submitted | None:
        """Wait for the submission, and say what became of it."""
        outcome = await self._answer(call)
        if isinstance(outcome, TfjobtuiError):
            await self._explain("Not submitted", str(outcome))
            return None
        self._tell(
            " ".join((_sentence(outcome.summary), *outcome.notes, *outcome.submitted.messages.splitlines()))
        )
        return outcome.submitted

    def _form_state(self) -> FormState:
        """What was filled in before."""
        from tfjobtui.ui.submit_form import FormState

        if self._form is None:
            self._form = FormState()
        return self._form

    # -- the parts of an action -------------------------------------------------------------

    def _select(self, rows: Sequence[Row]) -> Selection:
        return select(rows, self._services.poller.store.jobs.values())

    def _commands(
        self, action: str, targets: Sequence[Target], signal: str | None = None
    ) -> Sequence[Sequence[str]]:
        return self._services.scheduler.action_commands(action, targets, signal)

    async def _confirm(self, verb: str, text: str, selection: Selection, targets: Sequence[Target]) -> bool:
        from tfjobtui.ui.screens.confirm import ConfirmDialog

        if selection.left_out:
            text = f"{text}\nLeft out, since it does not apply to them: {selection.left_out}."
        label = f"{verb} {selection.what()}"
        commands = self._commands(verb.lower(), targets)
        dialog = ConfirmDialog(verb, text, selection.labels, yes=label, no="Leave it", commands=commands)
        answer: bool | None = await self._app.push_screen_wait(dialog)
        return bool(answer)

    async def _act(self, verb: str, action: Awaitable[Outcome]) -> None:
        """Wait for the action, and say what became of it."""
        outcome = await self._answer(action)
        if isinstance(outcome, TfjobtuiError):
            await self._explain(f"{verb}: not done", str(outcome))
        elif outcome.ok:
            self._tell(_sentence(outcome.summary))
        else:
            await self._explain(f"{verb}: refused", _refusals(outcome))

    async def _answer(self, action: Awaitable[Answer]) -> Answer | TfjobtuiError:
        """Wait for what the scheduler says; the list is read anew whatever that is, before any dialog is closed."""
        late = self._app.set_timer(LATE_S, lambda: self._tell("Waiting for the scheduler's answer …"))
        try:
            return await action
        except TfjobtuiError as error:
            return error
        finally:
            late.stop()
            self._services.poller.action_done()

    def _tell(self, text: str) -> None:
        self._app.notify(printable(text), markup=False)

    async def _explain(self, title: str, text: str) -> None:
        from tfjobtui.ui.screens.confirm import MessageDialog

        lines = "\n".join(printable(line) for line in text.splitlines())
        await self._app.push_screen_wait(MessageDialog(title, lines))


def _waiting_first(selection: Selection) -> tuple[Target, ...]:
    """What waits of each row, or what runs where nothing does (it is then held for a later requeue)."""
    return tuple(
        replace(target, pending_only=False)
        for item in selection.items
        for target in item.waiting or item.active
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _refusals(outcome: Outcome) -> str:
    """What was done, and for each refused job the scheduler's own words."""
    lines = []
    done = len(outcome.results) - len(outcome.refused)
    if done:
        lines += [f"Done for {done} of {len(outcome.results)} jobs. Refused:", ""]
    for result in outcome.refused:
        words = result.message.strip() or "refused, without a word"
        lines.append(
            f"{result.target.id}  {result.target.name}: {words}"
            if done or len(outcome.results) > 1
            else words
        )
    return "\n".join(lines)
