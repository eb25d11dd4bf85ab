"""Submitting a template: a form for its options and parameters, and beside it the script that will run."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Static

from tfjobtui.actions.submit import SubmitPlan
from tfjobtui.actions.trainer_setup import known_values
from tfjobtui.errors import QueryError, TfjobtuiError
from tfjobtui.model.text import printable
from tfjobtui.schedulers.scheduler import Scheduler
from tfjobtui.templates.catalogue import Template
from tfjobtui.ui import foreground
from tfjobtui.ui.screens.choose import ChoiceDialog
from tfjobtui.ui.screens.dialog import Dialog, Entry, bind, button, plain, printable_lines, script_lines
from tfjobtui.ui.submit_form import FormField, FormState, fields_of, make_plan, problems
from tfjobtui.ui.widgets.lines_view import LinesView

USUAL = "train"
"""The template that most users want first."""
_WIDE = 130
"""Cells from which on the script has room beside the form."""


class FieldRow(Vertical):
    """A field's label, its value, and below it what is wrong with it."""

    DEFAULT_CSS = """
    FieldRow {
        height: auto;
        & > Horizontal { height: 1; }
        & .label { width: 18; height: 1; }
        & Input { width: 1fr; background: $panel; }
        & Input:focus { background: $primary 30%; }
        & .error { display: none; padding: 0 0 0 2; }
        &.wrong .error { display: block; }
        &:ansi Input { background: ansi_default; text-style: underline; }
        &:ansi Input:focus { background: ansi_default; text-style: bold underline; }
    }
    """

    def __init__(self, item: FormField, value: str) -> None:
        super().__init__(id=f"row-{item.id}")
        self.item = item
        self._value = value

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield plain(self._label, "label")
            yield Entry(
                self._value,
                id=self.item.id,
                placeholder=printable(self.item.help),
                compact=True,
                suggester=self._suggester,
                select_on_focus=False,
            )
        yield Static(classes="error", markup=False)

    @property
    def _label(self) -> str:
        return f"{self.item.label}{' ▾' if self.item.choices else ''}"

    @property
    def _suggester(self) -> SuggestFromList | None:
        return SuggestFromList(self.item.choices, case_sensitive=False) if self.item.choices else None

    def show_item(self, item: FormField) -> None:
        """The same field with other choices; they may come before the row is drawn for the first time."""
        self.item = item
        for label in self.query(".label").results(Static):
            label.update(Content(self._label))
        for entry in self.query(Input):
            entry.suggester = self._suggester

    @property
    def value(self) -> str:
        return self.query_one(Input).value

    def show_problem(self, problem: str) -> None:
        self.set_class(bool(problem), "wrong")
        self.query_one(".error", Static).update(Content(printable_lines(problem)))


class Form(VerticalScroll, inherit_bindings=False):
    """The fields. Up and down are not for scrolling here: they go from field to field."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bind("pagedown", "page_down", "Page down", "form-page-down", "Scroll the form down", show=False),
        bind("pageup", "page_up", "Page up", "form-page-up", "Scroll the form up", show=False),
    ]


class SubmitScreen(Dialog[SubmitPlan]):
    """Choose a template, fill it in, look at the script, submit it. Gives the plan, or `None`."""

    TITLE_TEXT = "Submit"
    LARGE = True
    AUTO_FOCUS = ""
    GUARDED: ClassVar[frozenset[str]] = frozenset({"ctrl+s", "enter"})
    BINDINGS: ClassVar[list[BindingType]] = [
        bind("ctrl+s", "submit", "Submit", "submit", "Submit the script that is shown"),
        bind(
            "ctrl+t,f2",
            "script",
            "Script or form",
            "submit-script",
            "Show the script in place of the form, or back",
        ),
        Binding(
            "ctrl+e,f4",
            "edit",
            "Edit",
            id="dialog.submit-edit",
            tooltip="Change the script in your editor; what is shown then is what runs",
            priority=True,
        ),
        bind("ctrl+r", "form", "Back to the form", "submit-form", "Drop what was changed in the editor"),
        bind("f3", "template", "Template", "submit-template", "Choose another template"),
        bind("down", "app.focus_next", "Next field", "submit-next", show=False),
        bind("up", "app.focus_previous", "Field before", "submit-previous", show=False),
    ]
    DEFAULT_CSS = """
    SubmitScreen {
        & #parts { height: 1fr; }
        & #form { width: 1fr; height: 1fr; scrollbar-size-vertical: 1; padding: 0 1 0 0; }
        & #preview { width: 1fr; height: 1fr; border-left: solid $primary 50%; padding: 0 0 0 1; }
        & #help { height: 2; }
        & #broken { height: auto; max-height: 6; }
        & #template { width: auto; }
        & #box.narrow #preview { display: none; }
        & #box.narrow.script #preview { display: block; border: none; padding: 0; }
        & #box.narrow.script #form { display: none; }
    }
    """

    def __init__(self, templates: Sequence[Template], state: FormState, scheduler: Scheduler) -> None:
        super().__init__()
        self._templates = tuple(templates)
        self._state = state
        self._scheduler = scheduler
        self._partitions: tuple[str, ...] = ()
        self._fields: tuple[FormField, ...] = ()
        self._template: Template | None = None
        self._plan: SubmitPlan | None = None
        self._edited: str | None = None

    def compose_body(self) -> ComposeResult:
        yield Button(Content(" "), id="template", compact=True)
        yield Static(id="broken", classes="error", markup=False)
        with Horizontal(id="parts"):
            yield Form(id="form", can_focus=False)
            yield LinesView(id="preview")
        yield Static(id="help", classes="note", markup=False)

    def compose_buttons(self) -> ComposeResult:
        yield button("Leave", "leave", "esc")
        yield button("Script", "script", "^t")
        yield button("Edit", "edit", "^e")
        yield button("Submit", "submit", "^s", danger=True)

    def on_mount(self) -> None:
        super().on_mount()
        self.begin()
        self._read_partitions()

    # -- templates ------------------------------------------------------------------------

    @work
    async def begin(self) -> None:
        """Show the template that was used last, or the only one; of several let the user choose."""
        good = [template for template in self._templates if not template.error]
        before = next((template for template in good if str(template.path) == self._state.template), None)
        usual = next((template for template in good if template.name == USUAL), None)
        await self._use(before or usual or next(iter(good or self._templates), None))
        if before is None and len(good) > 1:
            self.action_template()

    @work
    async def action_template(self) -> None:
        """Let the user choose a template; a broken one is listed with what is wrong with it."""
        choices = [(number, _template_line(template)) for number, template in enumerate(self._templates)]
        here = self._templates.index(self._template) if self._template in self._templates else None
        number: int | None = await self.app.push_screen_wait(ChoiceDialog("Template", choices, current=here))
        if number is not None:
            await self._use(self._templates[number])

    async def _use(self, template: Template | None) -> None:
        """Show the form of this template, with what was filled in when it was used last."""
        self._template = template
        self._edited = None
        if template is not None:
            self._state.template = str(template.path)
        usable = template is not None and not template.error
        self._fields = self._fields_of(template) if template is not None and usable else ()
        label = _template_line(template) if template is not None else "there is no template"
        self.query_one("#template", Button).label = Content(f" {label} ▾ (F3) ")
        form = self.query_one("#form", VerticalScroll)
        typed = self._typed()
        async with self.batch():
            await form.remove_children()
            await form.mount_all(FieldRow(item, typed.get(item.id, item.default)) for item in self._fields)
        entries = form.query(Input)
        (entries.first() if entries else self.query_one("#template")).focus()
        self._show()

    def _fields_of(self, template: Template) -> tuple[FormField, ...]:
        known = known_values(template) if self._scheduler.capabilities.runs_here else {}
        return fields_of(template, self._partitions, known)

    @work(exclusive=True, group="partitions")
    async def _read_partitions(self) -> None:
        """The partitions to choose from; where they cannot be had, the field takes any text."""
        try:
            found = await self._scheduler.partitions()
        except QueryError:
            return
        usual = [item.name for item in found if item.is_default]
        self._partitions = (*usual, *(item.name for item in found if not item.is_default))
        if self._template is not None and not self._template.error:
            self._fields = self._fields_of(self._template)
            by_id = {item.id: item for item in self._fields}
            for row in self.query(FieldRow):
                row.show_item(by_id[row.item.id])

    # -- the form -------------------------------------------------------------------------

    def _typed(self) -> dict[str, str]:
        return self._state.of(self._template) if self._template is not None else {}

    def on_input_changed(self, event: Input.Changed) -> None:
        """Keep what was typed, check it, and show the script with it."""
        item = next((item for item in self._fields if item.id == event.input.id), None)
        if item is None:
            return
        typed = self._typed()
        if event.value == item.default:
            typed.pop(item.id, None)
        else:
            typed[item.id] = event.value
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter opens the choices of a field that has some, else goes to the next field."""
        item = next((item for item in self._fields if item.id == event.input.id), None)
        if item is not None and item.choices:
            self._choose(item, event.input)
        else:
            self.app.action_focus_next()

    @work
    async def _choose(self, item: FormField, entry: Input) -> None:
        choices = [(choice, choice or "(empty)") for choice in item.choices]
        chosen: str | None = await self.app.push_screen_wait(
            ChoiceDialog(item.label, choices, current=entry.value)
        )
        if chosen is not None:
            entry.value = chosen
            entry.cursor_position = len(chosen)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._show_help()

    def _show_help(self) -> None:
        """A word about the field that has the focus, and how its value is understood."""
        row = next((node for node in self._focus_path() if isinstance(node, FieldRow)), None)
        if row is None:
            text = "Up and down go through the fields, Enter opens a list of choices."
        else:
            text = f"{row.item.label}: {row.item.help}"
            with contextlib.suppress(TfjobtuiError):
                text = f"{text}. {row.item.check(row.value)[1]}".rstrip(". ")
        self.query_one("#help", Static).update(Content(printable_lines(text)))

    def _focus_path(self) -> Sequence[Any]:
        return self.focused.ancestors_with_self if self.focused is not None else ()

    # -- the script -----------------------------------------------------------------------

    def _show(self) -> None:
        """Bring the script, the errors and the help up to date."""
        wrong = problems(self._fields, self._typed())
        for row in self.query(FieldRow):
            row.show_problem(wrong.get(row.item.id, ""))
        self._plan, problem = self._make_plan(wrong)
        self.query_one("#broken", Static).update(Content(printable_lines(problem)))
        self.query_one("#broken").display = bool(problem)
        for entry in self.query(Input):
            entry.disabled = self._edited is not None
        if self._plan is not None:
            text = self._plan.script
            self.query_one("#preview", LinesView).show(lambda width: script_lines(text, width))
        self._show_help()

    def _make_plan(self, wrong: Mapping[str, str]) -> tuple[SubmitPlan | None, str]:
        """The submission, or why there can be none."""
        template = self._template
        if template is None:
            return (
                None,
                "No template was found: `templates.folders` in the configuration names their folders.",
            )
        if template.error:
            return None, f"{template.name} is broken: {template.error} ({template.path})"
        if wrong:
            return None, ""
        try:
            plan = make_plan(template, self._fields, self._typed())
        except TfjobtuiError as error:
            return None, str(error)
        if self._edited is None:
            return plan, "\n".join(plan.notes)
        note = "Changed in the editor: what is shown runs, the form does not count (^r: back to the form)."
        return dataclasses.replace(plan, script=self._edited), note

    def on_resize(self, event: events.Resize) -> None:
        self.query_one("#box").set_class(event.size.width < _WIDE, "narrow")

    def action_script(self) -> None:
        """On a narrow terminal: the script in place of the form, or back."""
        box = self.query_one("#box")
        box.toggle_class("script")
        if box.has_class("script") or box.has_class("narrow") is False:
            self.query_one("#preview").focus()
        elif entries := self.query(Input):
            entries.first().focus()

    def action_edit(self) -> None:
        """The script in the user's editor; if it comes back changed, it runs as it is."""
        if self._plan is None:
            self._say_why_not()
            return
        try:
            with tempfile.TemporaryDirectory(prefix="tfjobtui-") as folder:
                path = Path(folder, self._plan.file_name)
                path.write_text(self._plan.script, encoding="utf-8", errors="surrogateescape")
                code = foreground.run(self.app, foreground.editor_argv(str(path)))
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
        except (TfjobtuiError, OSError) as error:
            self.app.notify(printable_lines(str(error)), severity="error", markup=False)
            return
        if code:
            words = f"The editor ended with {code}: the script is as it was."
            self.app.notify(words, severity="warning", markup=False)
        elif code == 0 and text != self._plan.script:
            self._edited = text
        self._show()

    def action_form(self) -> None:
        self._edited = None
        self._show()

    # -- the end --------------------------------------------------------------------------

    def guards(self, key: str) -> bool:
        """Enter submits only where the button has the focus."""
        if key == "enter":
            return self.focused is not None and self.focused.id == "submit"
        return super().guards(key)

    def action_submit(self) -> None:
        plan = self._plan
        if plan is None:
            self._say_why_not()
        else:
            self.act(lambda: self._close(plan))

    def _say_why_not(self) -> None:
        """Go to the first field that has to be put right."""
        wrong = next((row for row in self.query(FieldRow) if row.has_class("wrong")), None)
        if wrong is not None:
            self.query_one("#box").remove_class("script")
            wrong.query_one(Input).focus()
        self.app.notify("Not yet: something in the form does not fit.", severity="warning", markup=False)

    def _close(self, plan: SubmitPlan) -> None:
        self.dismiss(plan)


def _template_line(template: Template) -> str:
    if template.error:
        return f"{template.name}  ✗ {printable(template.error)}"
    return f"{printable(template.name)}  {printable(template.title)}"
