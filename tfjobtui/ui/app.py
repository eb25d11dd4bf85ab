"""The program on the screen."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType

from tfjobtui.config import Config
from tfjobtui.monitor.pace import PaceLimits
from tfjobtui.monitor.poller import QueuePoller
from tfjobtui.monitor.view import JobView
from tfjobtui.schedulers.scheduler import Scheduler
from tfjobtui.ui.preferences import remember
from tfjobtui.ui.screens.jobs import JobsScreen
from tfjobtui.ui.services import Services


def _bind(keys: str, action: str, description: str, name: str, tooltip: str) -> Binding:
    return Binding(keys, action, description, id=f"app.{name}", tooltip=tooltip, show=False)


class TfjobtuiApp(App[int]):
    """One screen of jobs, and what is opened from it."""

    TITLE = "tfjobtui"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    CSS = """
    Toast { max-width: 80%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        _bind("question_mark,f1", "help", "Help", "help", "The keys of what has the focus"),
        _bind("colon", "command_palette", "Commands", "commands", "All commands, by name"),
        _bind("T", "next_theme", "Theme", "theme", "Dark, light, or the terminal's own colours"),
        _bind("q", "leave", "Quit", "quit", "Quit from the list; elsewhere leave what has the focus"),
        _bind(
            "ctrl+z",
            "to_background",
            "To the shell",
            "suspend",
            "Back to the shell; `fg` brings the program back",
        ),
        _bind("ctrl+c,ctrl+q", "interrupt", "Interrupt", "interrupt", "Press it twice to quit"),
    ]

    def __init__(self, services: Services, view: JobView | None = None) -> None:
        super().__init__()
        self.services = services
        self._last_key_at = 0.0
        self.key_gap_s = 0.0
        """Seconds between the last two keys."""
        self.key_count = 0
        self._jobs_screen = JobsScreen(services, view or JobView(services.config.table.sort))
        self._theme_problem = ""
        self._set_theme(services.config.ui.theme)
        if services.config.keys:
            from tfjobtui.ui.keymap import keymap

            self.set_keymap(keymap(services.config))

    def on_mount(self) -> None:
        # Textual takes the terminal back after `fg`, and draws nothing on it.
        self.app_resume_signal.subscribe(self, lambda _: self.call_later(self.refresh, layout=True))
        if self._theme_problem:
            self.notify(self._theme_problem, severity="warning", timeout=10, markup=False)

    def get_default_screen(self) -> JobsScreen:
        return self._jobs_screen

    def _set_theme(self, name: str) -> None:
        """`auto`: light where the terminal says that it is, and its own colours where it has no more than 16."""
        if name == "auto":
            name = "ansi" if _has_few_colours() else "light" if _is_light() else "dark"
        if name == "ansi":
            name = "ansi-light" if _is_light() else "ansi-dark"
        wanted = {"dark": "textual-dark", "light": "textual-light"}.get(name, name)
        if wanted in self.available_themes:
            self.theme = wanted
        else:
            self._theme_problem = (
                f"There is no theme {name!r} (ui.theme): {', '.join(sorted(self.available_themes))}."
            )

    def first_rows_shown(self) -> None:
        """What start-up made stays: the collector need not look at it again, which stalls a screen of 50,000 jobs."""
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 50, 1000)

    async def on_event(self, event: events.Event) -> None:
        """Every key, click and change of focus tells how closely the queue needs to be watched."""
        if isinstance(event, events.Key | events.MouseDown | events.MouseScrollDown | events.MouseScrollUp):
            self.services.poller.key_pressed()
            if isinstance(event, events.Key) and not event.is_forwarded:
                self.key_gap_s, self._last_key_at = event.time - self._last_key_at, event.time
                self.key_count += 1
        elif isinstance(event, events.AppFocus):
            self.services.poller.focus_changed(True)
        elif isinstance(event, events.AppBlur):
            self.services.poller.focus_changed(False)
        if not self._typed_ahead(event):
            await super().on_event(event)

    def _typed_ahead(self, event: events.Event) -> bool:
        """Give a letter that was typed before its field had the focus to that field, and not to the list's keys.

        Of keys that come at once, as over a slow line, the list has got some already when `/` opens the
        filter. They come by here afterwards; a field keeps what it has got itself.
        """
        if not (isinstance(event, events.Key) and event.is_forwarded and event.is_printable):
            return False
        from textual.widgets import Input

        if not isinstance(self.focused, Input) or event.character is None:
            return False
        self.focused.insert_text_at_cursor(event.character)
        return True

    async def action_leave(self) -> None:
        """`q`: never quits from inside something."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif not await self._jobs_screen.action_leave():
            self.exit(0)

    def action_to_background(self) -> None:
        """Stop the program and everything that it was started with (`make`, say), as the shell's job that they are."""
        if os.getpgrp() == os.getsid(0):  # nobody could ever continue us: a tmux pane without a shell, ssh -t
            self.notify("There is no shell behind the program to go back to.", markup=False)
        else:
            os.killpg(os.getpgrp(), signal.SIGTSTP)  # Textual gives the terminal back before it stops

    _interrupted = False

    def action_interrupt(self) -> None:
        if self._interrupted:
            self.exit(0)
            return
        self._interrupted = True
        self.set_timer(2.0, self._forget_interrupt)
        self.notify(
            "Press Ctrl+C once more, or q in the list, to quit. Jobs go on without the program.", markup=False
        )

    def _forget_interrupt(self) -> None:
        self._interrupted = False

    def action_help(self) -> None:
        from tfjobtui.ui.help_content import help_groups
        from tfjobtui.ui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(help_groups(self.screen, self)))

    def action_next_theme(self) -> None:
        names = ["textual-dark", "textual-light", "ansi-dark", "ansi-light"]
        here = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(here + 1) % len(names)]
        remember(theme=self.theme)

    def get_system_commands(self, screen: Any) -> Any:
        """Every binding of what is on the screen, for the command palette."""
        from tfjobtui.ui.help_content import palette_commands

        return palette_commands(screen, self)

    async def on_unmount(self) -> None:
        await self.services.scheduler.close()


def _has_few_colours() -> bool:
    """Whether the terminal says that it has no more than 16 colours."""
    term = os.environ.get("TERM", "")
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return False
    return not any(
        word in term for word in ("256color", "direct", "kitty", "alacritty", "ghostty", "wezterm", "foot")
    )


def _is_light() -> bool:
    """COLORFGBG is `foreground;background` where a terminal sets it; 7 and 15 are the light backgrounds."""
    return os.environ.get("COLORFGBG", "").rsplit(";", 1)[-1] in ("7", "15")


def make_services(config: Config, scheduler: Scheduler) -> Services:
    """Put together what the screens work with."""
    poll = config.poll
    limits = PaceLimits(
        interval_s=poll.interval_s,
        floor_s=poll.floor_s,
        unfocused_s=poll.unfocused_s,
        idle_after_s=poll.idle_after_s,
        idle_s=poll.idle_s,
        asleep_after_s=poll.asleep_after_s,
        asleep_s=poll.asleep_s,
    )
    poller = QueuePoller(scheduler, limits)
    return Services(config, scheduler, poller)


def _leave_with_the_terminal() -> None:
    """End the program when its terminal is gone and SIGHUP did not end it (under nohup, say).

    A thread of its own, that sleeps nearly always: the event loop is by then stuck in writing to the
    terminal, and the thread that reads keys would spin for ever.
    """
    while os.isatty(0):
        time.sleep(5.0)
    os._exit(128 + signal.SIGHUP)


def run_app(config: Config, scheduler: Scheduler, view: JobView) -> int:
    """Show the screens until the user quits; gives the exit code. `view` may have the first rows already.

    Raises:
        ConfigError: the configuration names an action or a key that is not known.
    """
    threading.Thread(target=_leave_with_the_terminal, name="terminal-watch", daemon=True).start()
    app = TfjobtuiApp(make_services(config, scheduler), view)
    app.run(mouse=config.ui.mouse)
    return app.return_code or 0
