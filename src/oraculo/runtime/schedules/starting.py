"""The run of one instant of a schedule, and how it is started."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from oraculo.core.access import LOCAL, Actor
from oraculo.core.schedules import run_name
from oraculo.runtime.requests import Accepted
from oraculo.wire.requests import Requisicao
from oraculo.wire.schedules import Agenda

LABEL = "agenda:"  # what comes before the name of a schedule in the label of its runs


def actor_named(id: str, tenant: str) -> Actor:
    """Who put a schedule, as the one that its runs are asked for by: without the limits of a key."""
    return replace(LOCAL, id=id, tenant=tenant)


def request_at(agenda: Agenda, name: str, instant: datetime) -> dict[str, Any]:
    """The request of one instant, named after it and labelled with the schedule."""
    labels = dict.fromkeys([*agenda.requisicao.get("rotulos", ()), f"{LABEL}{name}"])
    return {**agenda.requisicao, "correlation_id": run_name(name, instant), "rotulos": list(labels)}


class RunSink(Protocol):
    """What starts orchestrations: the intake of requests."""

    def read(self, value: Any) -> Requisicao: ...

    async def accept(self, request: Requisicao, *, actor: Actor) -> Accepted: ...
