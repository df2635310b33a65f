"""The audit chain: one record for every step of the journal, each sealed with a hash that the next one builds on.

There is a chain for each orchestration. Its records follow from the journal alone, so they can be made
again from the journal and compared, and two processes that write the same record write the same bytes (docs/adr/0020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from oraculo.core.events import OrchestrationStarted
from oraculo.ports.journal import Recorded
from oraculo.wire import event_views, records, strict_json, views

GENESIS = "0" * 64  # what the first record of a chain builds on
BODY_MAX_BYTES = 8 * 1024 * 1024  # bytes; a longer step is told by its digest alone
SEALED_FIELDS = ("run", "seq", "last_seq", "at", "workflow_id", "correlation_id", "events", "digest")

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """What an orchestration is called."""

    plan_id: str
    workflow_id: str
    correlation_id: str


def names_of(started: OrchestrationStarted) -> Names:
    plan = started.plan.profile.labels(started.run)
    return Names(plan.plan_id, plan.workflow_id, started.correlation_id)


def record_of(step: Recorded, names: Names, previous: str) -> Record:
    text = step.text or records.encode(step.events).decode()
    raw = text.encode()
    record: Record = {
        "run": step.run,
        "seq": step.first,
        "last_seq": step.first + len(step.events) - 1,
        "at": views.instant(step.at),
        "workflow_id": names.workflow_id,
        "correlation_id": names.correlation_id,
        "events": [event_views.event_name(type(event)) for event in step.events],
        "digest": sha256(raw).hexdigest(),
        "body": text if len(raw) <= BODY_MAX_BYTES else None,
    }
    return {"_id": f"{step.run}:{step.first}", **record, "previous_hash": previous, "hash": seal(record, previous)}


def seal(record: Mapping[str, Any], previous: str) -> str:
    """What is in `body` is sealed through its digest."""
    return sha256(previous.encode() + strict_json.canonical({name: record[name] for name in SEALED_FIELDS})).hexdigest()


def chain(steps: Sequence[Recorded]) -> Iterator[Record]:
    """All records of one orchestration, from its first step on."""
    started = steps[0].events[0]
    assert isinstance(started, OrchestrationStarted)
    names, previous = names_of(started), GENESIS
    for step in steps:
        record = record_of(step, names, previous)
        previous = record["hash"]
        yield record


# -- is it whole? ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """`kind`: missing, altered, extra, deleted or unreadable. `seq` is the number of the first event of its step."""

    kind: str
    run: int
    seq: int
    correlation_id: str
    detail: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


def differences(expected: Iterable[Record], found: Iterable[Record]) -> Iterator[Problem]:
    """What is wrong with the kept records of one orchestration, in order."""
    wanted = {record["_id"]: record for record in expected}
    kept = {record["_id"]: record for record in found}
    for key, record in wanted.items():
        there = kept.pop(key, None)
        if there is None:
            yield _problem("missing", record, "it is in the journal and not in the audit")
            continue
        changed = [name for name in record if there.get(name) != record[name]]
        changed += [name for name in there if name not in record]
        if changed:
            yield _problem("altered", record, f"not as the journal has it: {', '.join(changed)}")
    for record in kept.values():
        yield _problem("extra", record, "it is in the audit and not in the journal")


def broken_links(found: Sequence[Record]) -> Iterator[Problem]:
    """What can be told without the journal, which has forgotten the orchestration: the chain of its kept records."""
    previous, due = GENESIS, 1
    for record in found:
        try:
            if record["seq"] != due:
                yield _problem("missing", {**record, "seq": due}, f"the chain goes on with {record['seq']}")
            elif record["previous_hash"] != previous or record["hash"] != seal(record, previous):
                yield _problem("altered", record, "the hash does not fit")
            elif record["body"] is not None and sha256(record["body"].encode()).hexdigest() != record["digest"]:
                yield _problem("altered", record, "the body does not fit its digest")
            previous, due = record["hash"], record["last_seq"] + 1
        except (KeyError, TypeError, AttributeError):
            yield _problem("altered", record, "fields are missing")


def lost(record: Mapping[str, Any]) -> Problem:
    """The problem of an orchestration that the audit has and the journal has lost, given one of its records."""
    return _problem("deleted", record, "it is not in the journal any more, and was not pruned")


def _problem(kind: str, record: Mapping[str, Any], detail: str) -> Problem:
    run, seq, name = (record.get(field) for field in ("run", "seq", "correlation_id"))
    numbers = [one if isinstance(one, int) else 0 for one in (run, seq)]
    return Problem(kind, numbers[0], numbers[1], str(name or ""), detail)
