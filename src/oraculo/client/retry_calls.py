"""The call plan of a retry; see calls.py."""

from __future__ import annotations

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, path_segment
from oraculo.client.results import Submitted


def retry(
    correlation_id: str, start: str | None = None, task: str | None = None, idempotency_key: str | None = None
) -> CallPlan[Submitted]:
    """Try an ended run again; `start` is the word for what is done again."""
    body = {name: value for name, value in (("de", start), ("tarefa", task)) if value is not None}
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    path = f"{API}/orchestrations/{path_segment(correlation_id)}/retry"
    got: HttpAnswer = yield HttpCall("POST", path, body=body, headers=headers)
    return Submitted(got.body["correlation_id"], got.body["status"], got.headers.get("location", ""), got.body)
