"""The rules of pauses, said again without the core: time that an orchestration spends paused does not exist for it.

All other rules count in the *own time* of an orchestration: the clock minus its pauses. A deadline is honest when it
is honest in that time, so each has to move by exactly the pause.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from oraculo.core import events as ev

RULE = "time stands still while it is paused"


class PauseRules:
    """Follows one journal."""

    def __init__(self, wrong: Callable[[str, str], None]) -> None:
        self._wrong = wrong
        self._since: datetime | None = None
        self._spent = timedelta()  # in pauses that are over

    @property
    def paused(self) -> bool:
        return self._since is not None

    def own_time(self, at: datetime) -> datetime:
        """The clock of the orchestration at this instant."""
        return (at if self._since is None else self._since) - self._spent

    def own_instant(self, written: datetime) -> datetime:
        """A deadline of the orchestration that is written now."""
        return written - self._spent

    def on_clock(self, own: datetime) -> datetime:
        """The earliest instant that the clock may show at this own time."""
        return own + self._spent

    def read(self, event: ev.Event, at: datetime) -> bool:
        """Check an event, if it is about pauses; False when it is not."""
        match event:
            case ev.OrchestrationPaused():
                if self._since is not None:
                    self._wrong(RULE, "paused twice")
                self._since = at
            case ev.OrchestrationResumed():
                if self._since is None:
                    self._wrong(RULE, "resumed, and it was not paused")
                    return True
                self._spent += at - self._since
                self._since = None
            case ev.OrchestrationClosed() if self._since is not None:
                self._spent += at - self._since
                self._since = None
                return False
            case _:
                return False
        return True

    def timed_out(self, what: str) -> None:
        """Something timed out, or is tried again."""
        if self._since is not None:
            self._wrong(RULE, f"{what} while it is paused")
