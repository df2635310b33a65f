"""Breakers of destinations as rows, the same in both stores."""

from __future__ import annotations

from typing import Any

from oraculo.adapters.stores.instants import from_micros_or_none, to_micros_or_none
from oraculo.core.breaking import DestinationBreaker

BREAKER_COLUMNS = (
    "fila, falhas, posicao, aberto_em, sonda_em, sonda_run, sonda_ticket, sonda_tentativa, sondas, erro, versao"
)
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in BREAKER_COLUMNS.split(", ")[1:])


def put_sql(mark: str) -> str:
    """Write a row if its version is the one after that in the table."""
    marks = ", ".join([mark] * len(BREAKER_COLUMNS.split(", ")))
    return (
        f"INSERT INTO breakers ({BREAKER_COLUMNS}) VALUES ({marks}) ON CONFLICT (fila) DO UPDATE SET {_CHANGED}"
        " WHERE breakers.versao = excluded.versao - 1"
    )


def breaker_row(one: DestinationBreaker) -> tuple[Any, ...]:
    run, ticket, attempt = one.probe or (None, None, None)
    opened, probe_at = to_micros_or_none(one.opened_at), to_micros_or_none(one.probe_at)
    probe = (probe_at, run, ticket, attempt, one.probes)
    return (one.queue, one.failures, one.position, opened, *probe, one.error, one.version)


def breaker_of_row(row: tuple[Any, ...]) -> DestinationBreaker:
    queue, failures, position, opened, probe_at, run, ticket, attempt, probes, error, version = row
    probe = None if run is None else (run, ticket, attempt)
    at, until = from_micros_or_none(opened), from_micros_or_none(probe_at)
    return DestinationBreaker(queue, failures, position, at, until, probe, probes, error, version)
