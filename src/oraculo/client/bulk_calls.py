"""The call plan of doing the same to many orchestrations; see calls.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from oraculo.client.calls import API, BULK_TIMEOUT_S, CallPlan, HttpAnswer, HttpCall


class BulkErrorDetails(TypedDict):
    """An orchestration that was refused, and why."""

    correlation_id: str | None
    codigo: str
    mensagem: str


class BulkAnswer(TypedDict):
    """What became of them. `inalteradas` were so before; `restantes` were not reached, `parou` says why."""

    acao: str
    simular: bool
    total: int
    feitas: int
    inalteradas: int
    recusadas: int
    restantes: int
    erros: list[BulkErrorDetails]
    parou: BulkErrorDetails | None


def bulk(
    action: str,
    chosen: Mapping[str, Any],
    *,
    reason: str = "",
    undo: bool = False,
    start: str | None = None,
    dry_run: bool = False,
) -> CallPlan[BulkAnswer]:
    """Do the same to every orchestration that `chosen` names."""
    body: dict[str, Any] = {"filtro": dict(chosen), "acao": action, "motivo": reason, "simular": dry_run}
    body |= {"desfazer": True} if undo else {}
    body |= {} if start is None else {"de": start}
    path = f"{API}/orchestrations/bulk"
    got: HttpAnswer = yield HttpCall("POST", path, body=body, server_wait_s=BULK_TIMEOUT_S)
    answer: BulkAnswer = got.body
    return answer
