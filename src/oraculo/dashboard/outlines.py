"""What a list says of a run beside its summary: the queues that it uses, and the first error of one that failed.

An error is looked for in a few hundred steps of the journal, however long that is, and remembered: what has ended
changes no more, unless its version does.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from oraculo.api.serving import store_of
from oraculo.core import events as ev
from oraculo.core.sentences import Language, errors_said, message, say
from oraculo.dashboard.frame import FAILED_STATUSES
from oraculo.ports.catalogue import Summary
from oraculo.ports.journal import Recorded
from oraculo.service import Oraculo

QUEUES_READ = 1_000  # for one page
QUEUES_SHOWN = 3  # of one run
STEPS_READ = 300  # of one journal
WIDE_TICKETS = 2_000  # from which on the end of the journal is read: its beginning holds the whole plan
ERROR_MAX_CHARACTERS = 300
ERRORS_KEPT = 2_000
_KINDS = ("escavador_", "executador_")


@dataclass(frozen=True, slots=True)
class Outline:
    """`queues` are names without their kind, a few of many; `error` is empty where nothing failed."""

    queues: tuple[str, ...] = ()
    more: int = 0
    error: str = ""


class Errors:
    """First errors that were found, by run, version and language."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[int, int, Language], str] = OrderedDict()

    async def of(self, oraculo: Oraculo, one: Summary, language: Language) -> str:
        if not one.failed and one.status not in FAILED_STATUSES:
            return ""
        key = (one.run, one.version, language)
        if key not in self._found:
            after = max(0, one.version - STEPS_READ) if one.total > WIDE_TICKETS else 0
            self._found[key] = first_error(await store_of(oraculo).events(one.run, after, STEPS_READ), language)
            while len(self._found) > ERRORS_KEPT:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return self._found[key]


def first_error(steps: list[Recorded], language: Language) -> str:
    """What the first ticket said that failed for good; else why tickets were closed without an answer."""
    closed = ""
    for step in steps:
        for event in step.events:
            if isinstance(event, ev.TicketFailed):
                return message(errors_said(event, language))[:ERROR_MAX_CHARACTERS]
            if isinstance(event, ev.TicketsClosed) and event.status in FAILED_STATUSES and not closed:
                closed = say(event.reason, language)[:ERROR_MAX_CHARACTERS]
    return closed


def errors_of(request: Request) -> Errors:
    """Those of this application."""
    state: Any = request.app.state
    if not hasattr(state, "first_errors"):
        state.first_errors = Errors()
    found: Errors = state.first_errors
    return found


async def outlines(request: Request, oraculo: Oraculo, shown: list[Summary], language: Language) -> dict[int, Outline]:
    """Run → its outline, of the runs of a page."""
    errors = errors_of(request)
    queues = await store_of(oraculo).destinations([one.run for one in shown], QUEUES_READ)
    said = await asyncio.gather(*(errors.of(oraculo, one, language) for one in shown))
    found = {}
    for one, error in zip(shown, said, strict=True):
        used = [_short(queue) for queue in queues.get(one.run, ())]
        found[one.run] = Outline(tuple(used[:QUEUES_SHOWN]), max(0, len(used) - QUEUES_SHOWN), error)
    return found


def _short(queue: str) -> str:
    return next((queue.removeprefix(kind) for kind in _KINDS if queue.startswith(kind)), queue)
