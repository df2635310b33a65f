"""What `oraculo audit verify` looks at beside the chain: journals that cannot be read, results in the store, and
tickets, workflows and results in MongoDB, compared with what the journal gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.errors import SealError
from oraculo.ports.journal import Journal, Recorded
from oraculo.wire import strict_json
from oraculo.wire.audit import Problem
from oraculo.wire.result import document

if TYPE_CHECKING:
    from oraculo.adapters.sinks.mongo.reader import ChainReader

DOCUMENTS_PER_PAGE = 500
READ_ERRORS = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    AssertionError,
    SealError,
)  # of a changed row


async def readable(store: Journal, run: int, correlation_id: str) -> Problem | None:
    """The first step of a journal that cannot be read; None when all can."""
    due = 1
    try:
        while steps := await store.events(run, due - 1, 1):
            due = steps[-1].first + len(steps[-1].events)
    except READ_ERRORS as error:
        said = f"the journal cannot be read: {type(error).__name__}: {error}"
        return Problem("unreadable", run, due, correlation_id, said[:300])
    return None


def unfit(steps: Sequence[Recorded], error: Exception) -> Problem:
    """The problem of a journal whose events do not follow from each other."""
    name = getattr(steps[0].events[0], "correlation_id", "")
    return Problem("altered", steps[0].run, 1, name, f"its events do not fit together: {type(error).__name__}: {error}")


def result_of(steps: Sequence[Recorded]) -> dict[str, Any] | None:
    """The result that these steps make; None of an orchestration that has not ended."""
    state: Orchestration | None = None
    for step in steps:
        state = rebuild([step], state)
        if state.closed_at is not None:
            found: dict[str, Any] = strict_json.loads_trusted(strict_json.dumps(document(state, step.at)))
            return found
    return None


def result_problems(state: Orchestration, expected: Mapping[str, Any], stored: bytes | None) -> Iterator[Problem]:
    """What is wrong with a result as the store has it, which is what the API answers."""
    if stored is None:
        yield _problem(state, "missing", "its result is not in the store")
        return
    try:
        found = strict_json.loads_trusted(stored)
    except READ_ERRORS as error:
        yield _problem(state, "unreadable", f"its result in the store cannot be read: {error}")
        return
    changed = _changed(expected, found)
    if changed:
        yield _problem(state, "altered", f"its result in the store is not as the journal has it: {changed}")


async def kept_problems(reader: ChainReader, state: Orchestration) -> AsyncIterator[tuple[int, list[Problem]]]:
    """How many documents of an orchestration MongoDB should have, page by page, and what is wrong with them. A
    document of a later run of the same plan stands in the place of an earlier one's."""
    from oraculo.adapters.sinks.mongo import collections, documents

    made: list[tuple[str, Iterator[dict[str, Any]]]] = [
        (collections.TICKETS, documents.tickets(state, range(len(state.tickets)))),
        (collections.WORKFLOWS, iter((documents.workflow(state),))),
    ]
    if state.closed_at is not None:
        made.append((collections.RESULTS, iter((documents.result(state),))))
    for collection, expected in made:
        while page := list(islice(expected, DOCUMENTS_PER_PAGE)):
            there = await reader.documents(collection, [one["_id"] for one in page])
            missing = [one["_id"] for one in page if one["_id"] not in there]
            refused = await reader.refused(collection, missing) if missing else set()
            problems = []
            for one in page:
                key, kept = one["_id"], there.get(one["_id"])
                if kept is None:
                    if key not in refused:
                        problems.append(_problem(state, "missing", f"{collection} {key} is not in MongoDB"))
                elif _same_run(one, kept, documents.ORDER):
                    changed = _changed(reader.stored_form(one), kept, ignored=documents.ORDER)
                    if changed:
                        said = f"{collection} {key} is not as the journal has it: {changed}"
                        problems.append(_problem(state, "altered", said))
            yield len(page), problems


def _same_run(expected: Mapping[str, Any], kept: Mapping[str, Any], order: str) -> bool:
    return str(kept.get(order)).partition(".")[0] <= str(expected[order]).partition(".")[0]


def _changed(expected: Mapping[str, Any], found: Any, ignored: str = "") -> str:
    """The fields that differ. A field that is not there was not written yet by the release that wrote the rest."""
    if not isinstance(found, dict):
        return "all of it"
    names = [name for name in expected if name in found and name != ignored and found[name] != expected[name]]
    return ", ".join(names)


def _problem(state: Orchestration, kind: str, detail: str) -> Problem:
    return Problem(kind, state.run, state.version, state.correlation_id, detail)
