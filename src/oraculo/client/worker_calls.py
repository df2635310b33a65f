"""The call plans about workers; see calls.py."""

from __future__ import annotations

from collections.abc import Sequence

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, path_segment
from oraculo.client.results import WorkersStatus
from oraculo.client.worker_results import WorkerStatus


def workers(
    capabilities: Sequence[str] = (), queue: str | None = None, situation: str | None = None, limit: int | None = None
) -> CallPlan[WorkersStatus]:
    """List workers, all of them or those that are asked for."""
    given = {"capacidade": list(capabilities) or None, "fila": queue, "situacao": situation, "limit": limit}
    query = {name: value for name, value in given.items() if value is not None}
    got: HttpAnswer = yield HttpCall("GET", f"{API}/workers", query=query)
    found: WorkersStatus = got.body
    return found


def worker(name: str) -> CallPlan[WorkerStatus]:
    """Return one worker that registered."""
    got: HttpAnswer = yield HttpCall("GET", f"{API}/workers/{path_segment(name)}")
    found: WorkerStatus = got.body
    return found


def drain_worker(name: str, reason: str = "") -> CallPlan[WorkerStatus]:
    """Give a worker nothing more."""
    return _change(name, "drain", reason)


def resume_worker(name: str, reason: str = "") -> CallPlan[WorkerStatus]:
    """Let a worker work again."""
    return _change(name, "resume", reason)


def _change(name: str, what: str, reason: str) -> CallPlan[WorkerStatus]:
    got: HttpAnswer = yield HttpCall("POST", f"{API}/workers/{path_segment(name)}/{what}", body={"motivo": reason})
    found: WorkerStatus = got.body
    return found
