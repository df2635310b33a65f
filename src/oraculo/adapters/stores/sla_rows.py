"""Rows of objectives and alerts, the same in every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros, to_micros
from oraculo.ports.sla import StoredSlo, ToldAlert

SLO_COLUMNS = "nome, corpo, ator, alterado_em"
ALERT_COLUMNS = "id, tenant, run, tipo, at, corpo, seq"


def slo_row(one: StoredSlo) -> tuple[Any, ...]:
    return one.name, one.body.decode(), one.actor, to_micros(one.changed_at)


def slo_of(row: Sequence[Any]) -> StoredSlo:
    name, body, actor, at = row
    return StoredSlo(name, body.encode(), actor, from_micros(at))


def alert_row(one: ToldAlert) -> tuple[Any, ...]:
    """Of ALERT_COLUMNS, without the number."""
    return one.id, one.tenant, one.run, one.kind, to_micros(one.at), one.body.decode()


def alert_of(row: Sequence[Any]) -> ToldAlert:
    id, tenant, run, kind, at, body, seq = row
    return ToldAlert(id, tenant, run, kind, from_micros(at), body.encode(), seq)
