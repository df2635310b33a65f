"""Golden journals: what releases wrote, and what they made of it.

`<engine>/<story>.jsonl` has one line a step, as the store kept it (`events` is its text, to the byte).
`<engine>/<story>.json` has what the release that wrote it showed: the state, and `view`, `aggregate` and `events` as
its API answered them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from oraculo.core import sentences
from oraculo.core.flow import outcome
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.ticket_state import Ticket
from oraculo.ports.journal import Recorded
from oraculo.wire import audit, event_views, records, strict_json, views
from oraculo.wire.result import document

FOLDER = Path(__file__).parent
LATER = (
    "undoing",
    "windows",
    "ending",
    "desfazendo",
    "paused",
    "pauses",
    "pausada",
    "pausa",
    "blocks",
    "actor",
    "conflicts",
    "respostas_conflitantes",
    "skipped",
    "asks",
    "asks_output",
    "resolved",
    "output",
    "output_resolved",
    "output_fault",
    "held",
    "signals",
    "rotulos",
    "kept",
    "origin",
    "reuse",
    "reused",
    "withdrawn",
    "allocated",
    "alocacao",
    "to_end",
    "priority",
    "policy",
    "politicas",
)  # facts that not every release knew; not shown where they are empty
PREDICTED = ("predicted_ms", "predicted_p90_ms", "previsto_ms", "previsto_p90_ms")  # of a choice; later still
AFFINITY = ("affinity", "afinidade")  # of a candidate; later than those
INDEXES = ("timers", "by_name", "plan", "data_bytes")  # of a state: made from the rest of it, or told by the journal


@dataclass(frozen=True)
class Golden:
    """One story on one engine: the steps, and what was shown of them when they were written."""

    name: str
    lines: list[dict[str, Any]]
    shown: dict[str, Any]

    def recorded(self) -> list[Recorded]:
        """The journal, read as a store reads it."""
        run = self.shown["run"]
        return [
            Recorded(
                run,
                line["first"],
                datetime.fromisoformat(line["at"]),
                records.decode(line["events"], line["format"]),
                text=line["events"],
            )
            for line in self.lines
        ]


def all_of_them() -> list[Golden]:
    return [_read(path) for path in sorted(FOLDER.glob("*/*.jsonl"))]


def _read(path: Path) -> Golden:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    shown = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return Golden(f"{path.parent.name}/{path.stem}", lines, shown)


def write(engine: str, story: str, run: int, lines: list[dict[str, Any]], shown: dict[str, Any]) -> None:
    path = FOLDER / engine / f"{story}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    document = json.dumps({"run": run, **shown}, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(document + "\n", encoding="utf-8")


def line_of(first: int, at: datetime, cause: str, format: int, text: str) -> dict[str, Any]:
    return {"first": first, "at": at.isoformat(), "cause": cause, "format": format, "events": text}


def plain(value: Any) -> Any:
    """As JSON has it."""
    return json.loads(strict_json.dumps(value))


def shown(state: Orchestration, recorded: list[Recorded]) -> dict[str, Any]:
    """All that is shown of a journal, by reading nothing but the journal."""
    at = state.closed_at or recorded[-1].at
    documents = {
        "state": described(state),
        "view": _view(state),
        "aggregate": document(state, at),
        "events": _events(state, recorded),
        "audit": list(audit.chain(recorded))[-1]["hash"],
    }
    if flow_in(state.plan) is not None:
        documents["frame"] = outcome.frame(state, at)
        documents["incidents"] = [[one.incident_type, one.details, one.affected] for one in outcome.incidents(state)]
    found: dict[str, Any] = _without_predictions(plain(documents))
    return found


def _without_predictions(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_predictions(one) for one in value]
    if not isinstance(value, dict):
        return value
    later = (*PREDICTED, *AFFINITY, *(("por",) if value.get("evento") == "ticket_withdrawn" else ()))
    return {k: _without_predictions(one) for k, one in value.items() if one or k not in later}


def _view(state: Orchestration) -> dict[str, Any]:
    found = views.orchestration(state)
    return _without_later({**found, "tickets": [_without_later(one) for one in found["tickets"]]})


def described(state: Orchestration) -> dict[str, Any]:
    """Every fact of a state but for its plan, with sentences where it has reasons; the names are those of then."""
    facts = {field.name: getattr(state, field.name) for field in fields(state) if field.name not in INDEXES}
    gates = [_without_later(asdict(one)) for one in state.gates]
    evaluated = {
        "asks": sorted(state.asks),
        "output": None if state.output == b"null" else state.output,
        "output_fault": sentences.say_optional(state.output_fault),
    }
    grown = [] if state.blocks is None else state.blocks.all
    evaluated["blocks"] = [{**asdict(one), "pieces": [piece.decode() for piece in one.pieces]} for one in grown]
    tickets = [_ticket(one) for one in state.tickets]
    known = {**facts, **evaluated, "gates": gates, "owed": sorted(state.owed), "tickets": tickets}
    return _without_later(known)


def _ticket(ticket: Ticket) -> dict[str, Any]:
    facts = {
        field.name: getattr(ticket, field.name) for field in fields(ticket) if field.name not in ("fault", "earlier")
    }
    late = [_without_later({**asdict(one), "erros": sentences.errors_said(one)}) for one in ticket.late or ()]
    reason = sentences.say_optional(ticket.reason)
    kept = [{**asdict(one), "erros": sentences.errors_said(one)} for one in ticket.conflicts or ()]
    conflicts = [_without_later(one) for one in kept]
    told = {"erros": sentences.errors_of(ticket) or None, "reason": reason, "late": late or None}
    return _without_later({**facts, **told, "conflicts": conflicts})


def _without_later(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if value or name not in LATER}


def _events(state: Orchestration, recorded: Iterable[Recorded]) -> list[dict[str, Any]]:
    return [event for one in recorded for event in event_views.events(one.run, state.plan, one)]
