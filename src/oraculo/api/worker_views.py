"""Workers as the outside sees them: those that registered, those that were only seen, and those of this process."""

from __future__ import annotations

from typing import Any

import orjson

from oraculo.core import worker_scores
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, local_name, tenant_of
from oraculo.core.trails.trail import Trail, TrailKey
from oraculo.ports.workers import StoredWorker
from oraculo.runtime.lease import Lease
from oraculo.runtime.seen_workers import WorkerSeen
from oraculo.runtime.trails import Trails
from oraculo.service import Oraculo

SEEN, DRAINING, LOST = "visto", "drenando", "perdido"
_UNREGISTERED: dict[str, Any] = {
    "situacao": SEEN,
    "registrado_em": None,
    "expira_em": None,
    "capacidades": [],
    "concorrencia": None,
    "recursos": {},
    "rotulos": {},
    "versao": "",
    "host": "",
    "nivel": None,
    "cancelavel": False,
    "telemetria": {},
    "drenagem": None,
    "pontuacao": None,
}


async def who_works(oraculo: Oraculo) -> dict[str, Any]:
    """All workers of the tenant, and its queues."""
    registered = [] if oraculo.registry.is_empty else await oraculo.registry.all_of(oraculo.tenant)
    return {"workers": [*_inside(oraculo), *_listed(oraculo, registered)], "filas": queues(oraculo)}


def _listed(oraculo: Oraculo, registered: list[StoredWorker]) -> list[dict[str, Any]]:
    leases, known = oraculo.leases, {one.key for one in registered}
    held: dict[str, list[Lease]] = {}
    for lease in leases.all():
        held.setdefault(lease.worker_key, []).append(lease)
    seen = {one.key: one for one in leases.seen_of(oraculo.tenant)}
    return [
        *(registered_worker(one, held.get(one.key, []), seen.get(one.key), oraculo.trails) for one in registered),
        *(_seen_worker(one, held.get(key, [])) for key, one in seen.items() if key not in known),
    ]


def registered_worker(
    one: StoredWorker, held: list[Lease], seen: WorkerSeen | None, trails: Trails | None = None
) -> dict[str, Any]:
    """One that registered; what it leased here counts where it does not say what it does."""
    body, beat = orjson.loads(one.body), orjson.loads(one.beat)
    over, running = body["transporte"], beat["executando"] or [_leased(lease) for lease in held]
    busy = beat["em_andamento"]
    busy = len(running) if busy is None else max(busy, len(held))
    situation: str = worker_scores.health(one.answered, one.failed)
    if not one.alive:
        situation = LOST
    elif one.drain is not None:
        situation = DRAINING
    rank = worker_scores.rank(one.answered, one.failed, body["concorrencia"], busy) if one.alive else 0.0
    if trails is not None:
        queues = [in_tenant(tenant_of(one.key), queue) for queue in body["filas"]]
        rank = round(rank * trails.rank_factor(local_name(one.key), queues), 4)
    said = {key: body[key] for key in ("capacidades", "concorrencia", "recursos", "rotulos", "versao", "host", "nivel")}
    return {
        "nome": local_name(one.key),
        "transporte": over,
        "filas": sorted(body["filas"]) or ([] if seen is None else sorted(seen.queues)),
        "visto_em": one.last_seen,
        "em_andamento": busy,
        "entregues": None if seen is None or over != "http" else seen.leased,
        "respondidas": one.answered,
        "situacao": situation,
        "falhas": one.failed,
        "ultimo_erro": None if one.last_error is None else orjson.loads(one.last_error),
        "executando": running,
        "registrado_em": one.registered_at,
        "expira_em": one.lease_until,
        **said,
        "cancelavel": body["cancelavel"],
        "telemetria": beat["telemetria"],
        "drenagem": None if one.drain is None else orjson.loads(one.drain),
        "pontuacao": rank,
    }


def _seen_worker(seen: WorkerSeen, held: list[Lease]) -> dict[str, Any]:
    over_http = seen.over == "http"
    return {
        "nome": seen.name,
        "transporte": seen.over,
        "filas": sorted(seen.queues),
        "visto_em": seen.last_seen,
        "em_andamento": len(held) if over_http else None,
        "entregues": seen.leased if over_http else None,
        "respondidas": seen.answered,
        "falhas": seen.failed,
        "ultimo_erro": seen.last_error,
        "executando": [_leased(lease) for lease in held if lease.ticket is not None],
        **_UNREGISTERED,
    }


def _leased(lease: Lease) -> dict[str, Any]:
    ticket_id, attempt = lease.ticket or ("", 1)
    return {"ticket_id": ticket_id, "tentativa": attempt, "inicio": lease.taken_at, "progresso": None}


def _inside(oraculo: Oraculo) -> list[dict[str, Any]]:
    return [
        {
            "nome": worker.name,
            "transporte": "processo",
            "filas": sorted(worker.queues),
            "visto_em": oraculo.now(),
            "em_andamento": worker.busy,
            "entregues": None,
            "respondidas": None,
            "falhas": None,
            "ultimo_erro": None,
            "executando": [],
            **_UNREGISTERED,
        }
        for worker in (oraculo.workers if oraculo.tenant == DEFAULT_TENANT else ())
    ]


def queues(oraculo: Oraculo) -> list[dict[str, Any]]:
    """How full the queues of the tenant are."""
    return [
        {
            "fila": one.queue,
            "aguardando": one.waiting,
            "em_andamento": one.taken,
            "mais_antiga_s": None if one.oldest_s is None else round(one.oldest_s, 3),
            "consumidores": one.consumers,
            "enviadas_por_s": round(one.sent_per_s, 3),
            "respondidas_por_s": round(one.answered_per_s, 3),
            "trilha": queue_trail(oraculo, one.queue),
        }
        for one in oraculo.metrics.readings.queues()
        if tenant_of(one.queue) == oraculo.tenant
    ]


def queue_trail(oraculo: Oraculo, queue: str) -> dict[str, Any] | None:
    """What the answers of a queue left behind; None where nothing did, or nothing follows it."""
    found = None if oraculo.trails is None else oraculo.trails.trail(TrailKey(queue))
    return None if found is None else trail_view(found)


def trail_view(trail: Trail) -> dict[str, Any]:
    """One trail as it is now."""
    return {
        "pontuacao": round(trail.score, 3),
        "fator": round(trail.factor, 3),
        "sucesso": round(trail.success, 3),
        "aviso": round(trail.warning, 3),
        "falha": round(trail.failure, 3),
        "duracao_ms": round(trail.duration_ms) if trail.weight else None,
        "em": trail.at,
    }
