"""For probes, scrapers and tools: alive, ready, metrics, schemas."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from oraculo import __version__
from oraculo.api import documents, problems
from oraculo.api.brokers import members
from oraculo.api.openapi import answer
from oraculo.api.replicas import oneself
from oraculo.api.serving import answered
from oraculo.bootstrap import Oraculo
from oraculo.engines.local import LocalEngine
from oraculo.errors import OraculoError, UnknownIdError
from oraculo.wire import views
from oraculo.wire.flow import schemas

router = APIRouter(tags=["operation"], responses=problems.COMMON)

PATIENCE_S = 2.0
SCHEMA = "mensagem_schema.json"
CLASSES = ("best-effort", "crash-safe", "power-safe")
SHOWN = ("nome", "publica", "ok", "conectado", "durabilidade", "sonda_ms", "erro")


@router.get(
    "/health",
    summary="Alive",
    description="200 as long as the process answers. It says nothing of what it depends on: `/ready` does.",
    response_class=Response,
    responses={200: answer(documents.Health, "Alive")},
)
async def health() -> Response:
    return answered({"status": "ok", "version": __version__})


@router.get(
    "/ready",
    summary="Ready for work",
    description="503 while it starts or stops, and while the database, or the server of the "
    "engine `temporal`, cannot be used: nothing could be accepted. A "
    "broker that fails makes it `degraded`: what is accepted is durable, and is sent as soon as the broker is back.",
    response_class=Response,
    responses={200: answer(documents.Ready, "Ready"), 503: answer(documents.Ready, "Not ready")},
)
async def ready(request: Request) -> Response:
    found = await state_of_health(request.app.state.oraculo)
    return answered(found, 503 if found["status"] == "unavailable" else 200)


async def state_of_health(oraculo: Oraculo) -> dict[str, Any]:
    engine: LocalEngine | None = getattr(oraculo, "engine", None)
    checks: dict[str, dict[str, Any]] = {"engine": {"ok": engine is not None and engine.ready}}
    if engine is not None:
        if (lacks := engine.failing) is not None:
            checks["engine"] = {"ok": False, **lacks, "failing_since": views.instant(lacks["failing_since"])}
        checks["store"] = await _durability(engine.store)
        checks["store"]["failing_since"] = views.instant(engine.store_failing_since)
        checks["store"]["ok"] = checks["store"]["ok"] and engine.store_failing_since is None
        checks["broker"] = await _broker(engine)
        if (mine := oneself(engine)) is not None:
            checks["replica"] = {"ok": True, **mine}
        if oraculo.projections.all:
            checks["projections"] = _projections(oraculo)
    usable = checks["engine"]["ok"] and checks.get("store", {}).get("ok", False)
    fine = usable and checks["broker"]["ok"]
    status = "ok" if fine else "degraded" if usable else "unavailable"
    return {"status": status, "checks": checks}


async def _broker(engine: LocalEngine) -> dict[str, Any]:
    """One that works is enough, and the one apart where some queues are on another; each is shown as its last probe
    found it."""
    found = members(engine)
    check: dict[str, Any] = {"ok": True, "durability": None}
    if found:
        apart = getattr(engine.broker, "apart", ())
        works = {one["nome"]: one["ok"] or (one["ok"] is None and one["conectado"]) for one in found}
        check["ok"] = all(works[name] for name in apart) and any(works[name] for name in works if name not in apart)
        known = [one["durabilidade"] for one in found if one["durabilidade"]]
        check["durability"] = min(known, key=CLASSES.index) if known else None
        check["brokers"] = [{key: one[key] for key in SHOWN} for one in found]
    else:
        check = await _durability(engine.broker)
    check["scheme"] = engine.broker.scheme
    check["failing_since"] = views.instant(engine.performer.failing_since)
    check["ok"] = check["ok"] and engine.performer.failing_since is None
    return check


def _projections(oraculo: Oraculo) -> dict[str, Any]:
    """One that waits for its sink is shown; nothing is lost by it, so that it changes no status."""
    found = [
        {
            "nome": one.name,
            "ativa": one.active,
            "atraso": one.lag.steps,
            "atraso_s": round(one.age(), 3),
            "falha_desde": views.instant(one.failing_since),
            "erro": one.error or None,
        }
        for one in oraculo.projections.all
    ]
    return {"ok": not any(one["falha_desde"] for one in found), "projections": found}


async def _durability(port: Any) -> dict[str, Any]:
    """Asking for it is the check that it can be reached."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return {"ok": True, "durability": await port.durability()}
    except (OraculoError, TimeoutError):
        return {"ok": False, "durability": None}


@router.get(
    "/metrics",
    summary="Metrics",
    description="In the text format of Prometheus.",
    response_class=Response,
    responses={200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    return Response(request.app.state.oraculo.metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get(
    f"/schemas/{SCHEMA}",
    summary="JSON Schema of the message",
    description="JSON Schema 2020-12 of the envelope of contracts §1.",
    response_class=Response,
    responses={
        200: {"description": "The schema", "content": {"application/schema+json": {"schema": {"type": "object"}}}},
        **problems.documented(404),
    },
)
async def schema() -> Response:
    file = files("oraculo.wire").joinpath("schemas", SCHEMA)
    if not file.is_file():
        raise UnknownIdError("schema", SCHEMA)
    return Response(file.read_bytes(), media_type="application/schema+json")


@router.get(
    "/schemas/avro/{file}",
    summary="Avro schema of a record of Fluxo C",
    description="As `oraculo schema export avro` writes it.",
    response_class=Response,
    responses={
        200: {"description": "The schema", "content": {"application/json": {"schema": {"type": "object"}}}},
        **problems.documented(404),
    },
)
async def avro(file: Annotated[str, Path(json_schema_extra={"enum": list(schemas.FILES.values())})]) -> Response:
    record = next((record for record, name in schemas.FILES.items() if name == file), None)
    if record is None:
        raise UnknownIdError("schema", file)
    return Response(schemas.text(record), media_type="application/json")
