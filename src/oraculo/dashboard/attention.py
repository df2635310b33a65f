"""What waits for a person: decisions of plans, and what is not as it should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from oraculo.api.breakers import open_breakers
from oraculo.api.destination_pauses import listed
from oraculo.api.serving import store_of
from oraculo.core.tenants import local_name
from oraculo.core.vocabulary import Status
from oraculo.core.waits import WaitKind
from oraculo.dashboard.paths import run_path
from oraculo.ports.catalogue import Query
from oraculo.service import Oraculo
from oraculo.wire import names, strict_json, wait_views
from oraculo.wire.flow.topics import Topics

RUNS_LOOKED_AT = 200  # open ones, the newest: where a decision may be waited for
TICKETS_LOOKED_AT = 2_000  # of a run; a wider one is not looked through
DECISIONS_SHOWN = 8
QUEUES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """One task, or a whole plan, that waits for an approval."""

    correlation_id: str
    path: str
    task: str
    question: str
    since: datetime


async def decisions(oraculo: Oraculo) -> list[PendingDecision]:
    """What is to be decided in the newest open runs, longest waiting first. Open runs are in memory; those that are not
    are few."""
    found: list[PendingDecision] = []
    for one in await store_of(oraculo).find(Query(status=[Status.EM_EXECUCAO], limit=RUNS_LOOKED_AT)):
        if one.total > TICKETS_LOOKED_AT:
            continue
        state = await oraculo.engine.state(one.run)
        if state is None:
            continue
        name = local_name(state.correlation_id)
        if state.awaits_approval:
            found.append(PendingDecision(name, run_path(name), "", "", state.started_at))
            continue
        for position in wait_views.held(state):
            about = wait_views.document(state, position)
            if about is not None and about["tipo"] is WaitKind.APPROVAL:
                asked = strict_json.loads_trusted(about["pergunta"])
                task = state.plan.profile.name_of(position) or ""
                since = about["desde"] or state.started_at
                found.append(PendingDecision(name, run_path(name), task, "" if asked is None else str(asked), since))
    return sorted(found, key=lambda one: one.since)


@dataclass(frozen=True, slots=True)
class Concern:
    """One line of what needs attention: a text by its key, what it says, and where it leads."""

    text: str
    path: str
    values: Mapping[str, Any]
    bad: bool = True


def notice_topics(oraculo: Oraculo) -> frozenset[str]:
    """The queues of announcements: they may have no reader, and that is no fault."""
    flow, sla = oraculo.settings.kafka.topics, oraculo.settings.sla
    told = (flow.telemetry, flow.incidents, Topics().events, Topics().approval_requests)
    return frozenset((*told, sla.alerts_topic, sla.violations_topic, sla.budgets_topic, sla.freezes_topic))


def concerns(
    oraculo: Oraculo,
    health: Mapping[str, Any],
    queues: Sequence[Mapping[str, Any]],
    workers: Sequence[Mapping[str, Any]],
    dead: int,
    at_risk: int,
) -> list[Concern]:
    """The worst first; nothing when all is well."""
    found = [Concern(name, "/workers", {}) for name, check in health["checks"].items() if not check["ok"]]
    ours = {names.REQUESTS, names.RESULTS} | oraculo.consumers.queues | notice_topics(oraculo)
    if oraculo.broker.traits.volatile:
        served = {queue for worker in workers for queue in worker["filas"]}
        alone = [one for one in queues if one["aguardando"] and one["fila"] not in ours and one["fila"] not in served]
        for one in alone[:QUEUES_SHOWN]:
            found.append(Concern("nobody", "/workers", {"queue": one["fila"], "n": one["aguardando"]}))
        if len(alone) > QUEUES_SHOWN:
            found.append(Concern("nobody_more", "/workers", {"n": len(alone) - QUEUES_SHOWN}))
    found += [Concern("breaker", "/workers", {"queue": one["fila"]}) for one in open_breakers(oraculo)[:3]]
    lost = sum(one["situacao"] in ("perdido", "doente") for one in workers)
    if lost:
        found.append(Concern("workers", "/workers", {"n": lost}))
    if at_risk:
        found.append(Concern("deadlines", f"/runs?{urlencode([('status', 'em_execucao')])}", {"n": at_risk}))
    if dead:
        found.append(Concern("dead", "/dead-letters", {"n": dead}))
    paused = listed(oraculo)
    if paused:
        found.append(Concern("paused", "/workers", {"n": len(paused)}, bad=False))
    return found
