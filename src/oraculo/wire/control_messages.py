"""What a worker writes to the control queue, and reads from its own: bytes, without the models that check them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson


def control(kind: str, worker: str, said: dict[str, Any] | None = None) -> bytes:
    """The bytes of a control message."""
    return orjson.dumps({"tipo": kind, "worker": worker, **(said or {})}, option=orjson.OPT_UTC_Z)


def order_of(raw: bytes) -> str:
    """What a message in a worker's own queue tells it; empty when it cannot be read."""
    try:
        value = orjson.loads(raw)
    except ValueError:
        return ""
    return str(value.get("ordem", "")) if isinstance(value, dict) else ""


def running_ticket(ticket_id: str, attempt: int, began: datetime | None) -> dict[str, Any]:
    """One item of `executando`."""
    return {"ticket_id": ticket_id, "tentativa": attempt, "inicio": began}
