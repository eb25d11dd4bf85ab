"""When to ask the scheduler next.

Pure arithmetic, so that an administrator can read here what the program does to slurmctld:

* the configured interval (10 s), never under the floor (2 s);
* ten times the duration of the last query at least, so that the program asks for no more than a tenth
  of the time of a busy controller;
* doubled with each failure in a row, up to 5 minutes;
* 60 s when the terminal has lost focus, 60 s after 10 minutes without a key, 5 minutes after 2 hours;
* for a moment after an action: soon, so that its effect is seen.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_S = 300.0
LOAD_FACTOR = 10.0
AFTER_ACTION_S = (0.5, 2.0, 4.0)
"""Delays of the queries that follow an action; then the usual interval again."""


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """The configured delays, in seconds."""

    interval_s: float = 10.0
    floor_s: float = 2.0
    unfocused_s: float = 60.0
    idle_after_s: float = 600.0
    idle_s: float = 60.0
    asleep_after_s: float = 7200.0
    asleep_s: float = 300.0


class Pace:
    """Decides the delay to the next query from what has happened so far. Times are monotonic seconds."""

    def __init__(self, limits: PaceLimits, now_s: float) -> None:
        self._limits = limits
        self._last_key_s = now_s
        self._is_focused = True
        self._query_s = 0.0
        self._failures = 0
        self._quick: list[float] = []

    @property
    def failures(self) -> int:
        """Failed queries in a row."""
        return self._failures

    def succeeded(self, duration_s: float) -> None:
        self._query_s = duration_s
        self._failures = 0

    def failed(self, duration_s: float) -> None:
        self._query_s = duration_s
        self._failures += 1
        self._quick.clear()

    def key_pressed(self, now_s: float) -> bool:
        """Note a key (or the mouse). True if the program was idle: then a query is due at once."""
        was_idle = self.is_resting(now_s)
        self._last_key_s = now_s
        self._is_focused = True  # a key reaches only the program that has the focus
        return was_idle

    def is_resting(self, now_s: float) -> bool:
        """Whether nobody seems to look."""
        return self._rest_s(now_s) > self._limits.interval_s

    def focus_changed(self, is_focused: bool) -> None:
        self._is_focused = is_focused

    def action_done(self) -> None:
        self._quick = list(AFTER_ACTION_S)

    def _rest_s(self, now_s: float) -> float:
        """The delay that nobody's looking asks for; 0 while somebody is."""
        limits = self._limits
        silent_s = now_s - self._last_key_s
        rest_s = 0.0 if self._is_focused else limits.unfocused_s
        if silent_s >= limits.asleep_after_s:
            return max(rest_s, limits.asleep_s)
        if silent_s >= limits.idle_after_s:
            return max(rest_s, limits.idle_s)
        return rest_s

    def delay_s(self, now_s: float) -> float:
        """Seconds from the end of the last query to the next."""
        limits = self._limits
        load_s = LOAD_FACTOR * self._query_s
        if self._failures:
            return min(LONGEST_S, max(limits.interval_s * 2.0**self._failures, load_s))
        if self._quick:
            # The floor and a busy controller hold for impatience too.
            return max(self._quick[0], limits.floor_s, load_s)
        return max(limits.floor_s, limits.interval_s, min(load_s, LONGEST_S), self._rest_s(now_s))

    def query_started(self) -> None:
        if self._quick:
            self._quick.pop(0)
