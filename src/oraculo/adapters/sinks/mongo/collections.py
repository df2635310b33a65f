"""The collections, their indexes, and whether a record that MongoDB refuses for good may be left out."""

from __future__ import annotations

from dataclasses import dataclass

LEDGER = "cognitive_ledger"
TICKETS = "execution_tickets"
WORKFLOWS = "workflows"
VALIDATIONS = "validation_audit"
RESULTS = "workflow_results"
INCIDENTS = "incidents"
CHAIN = "audit_chain"
REFUSED = "audit_refused"  # what was left out, as text
BUFFER = "telemetry_buffer"  # for other systems that look there: it stays empty, since the journal is the buffer
AUTHORIZATIONS = "authorization_audit"  # other systems write there


@dataclass(frozen=True, slots=True)
class Index:
    """`keys`: names, with a `-` before a name that is sorted downwards."""

    keys: tuple[str, ...]
    unique: bool = False

    def fields(self) -> list[tuple[str, int]]:
        return [(key.removeprefix("-"), -1 if key.startswith("-") else 1) for key in self.keys]

    @property
    def name(self) -> str:
        """As MongoDB itself would call it."""
        return "_".join(f"{field}_{direction}" for field, direction in self.fields())


def _indexes(*keys: str | tuple[str, ...], unique: tuple[str, ...] = ()) -> tuple[Index, ...]:
    plain = tuple(Index((key,) if isinstance(key, str) else key) for key in keys)
    return (Index(unique, True), *plain) if unique else plain


INDEXES: dict[str, tuple[Index, ...]] = {
    LEDGER: _indexes("intent_id", "created_at", ("status", "-created_at"), unique=("plan_id",)),
    TICKETS: _indexes(
        "plan_id", "intent_id", "decision_id", "status", ("plan_id", "-created_at"), unique=("ticket_id",)
    ),
    WORKFLOWS: _indexes("plan_id", "status", unique=("workflow_id",)),
    VALIDATIONS: _indexes("plan_id", "workflow_id", "timestamp", ("plan_id", "-timestamp")),
    RESULTS: _indexes("plan_id", "status", "consolidated_at", ("status", "-consolidated_at"), unique=("workflow_id",)),
    INCIDENTS: _indexes("workflow_id", "type", "severity", "timestamp", ("severity", "-timestamp")),
    BUFFER: _indexes("workflow_id", "buffered_at", "retry_count", ("retry_count", "buffered_at")),
    AUTHORIZATIONS: _indexes(
        "user_id", "tenant_id", "timestamp", "decision", "policy_path", ("tenant_id", "-timestamp"),
        ("user_id", "-timestamp"), ("decision", "-timestamp"),
    ),
    CHAIN: _indexes("workflow_id", "correlation_id", "at", unique=("run", "seq")),
    REFUSED: _indexes("collection"),
}  # fmt: skip

FAIL_OPEN_COLLECTIONS = frozenset((LEDGER, WORKFLOWS, INCIDENTS))  # beside the collections that settings name
