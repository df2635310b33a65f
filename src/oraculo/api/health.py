"""For probes, scrapers and tools: alive, ready, metrics, schemas."""

from __future__ import annotations

import asyncio
from datetime import datetime
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from oraculo import __version__
from oraculo.api import documents, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.brokers import members
from oraculo.api.openapi import answer
from oraculo.api.replicas import oneself
from oraculo.api.serving import answered
from oraculo.core.access import Scope
from oraculo.errors import OraculoError, UnknownIdError
from oraculo.plans.schema_file import PLANO_SCHEMA_FILE, schema_text
from oraculo.ports.broker_group import group_of
from oraculo.service import Oraculo
from oraculo.wire import ticket_tokens, views
from oraculo.wire.flow import schemas

router = APIRouter(route_class=GuardedRoute, tags=["operation"], responses=problems.COMMON_RESPONSES)

PATIENCE_S = 2.0
MENSAGEM_SCHEMA_FILE = "mensagem_schema.json"
DURABILITY_CLASSES = ("best-effort", "crash-safe", "power-safe")
SHOWN_TO_STRANGERS = frozenset(("ok", "durability", "failing_since"))
BROKER_FIELDS_SHOWN = ("nome", "publica", "ok", "conectado", "durabilidade", "sonda_ms", "erro")


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
    "broker that fails makes it `degraded`: what is accepted is durable, and is sent as soon as the broker is back. "
    "Names of servers, errors and processes are shown to callers with the key.",
    response_class=Response,
    responses={200: answer(documents.Ready, "Ready"), 503: answer(documents.Ready, "Not ready")},
)
async def ready(request: Request) -> Response:
    found = await state_of_health(request.app.state.oraculo)
    if not actor_of(request).may(Scope.INSTALLATION_READ):
        found["checks"] = {name: _for_strangers(check) for name, check in found["checks"].items()}
    return answered(found, 503 if found["status"] == "unavailable" else 200)


@router.get(
    "/.well-known/jwks.json",
    summary="Keys of tokens",
    description="The public halves of the keys that sign the `token` of orders (RFC 7517), for whoever wants to check "
    "that an order is from here. Empty with `ORACULO_RESULT_TOKENS=off`.",
    response_class=Response,
    responses={200: answer(documents.Jwks, "Public keys")},
)
async def jwks(request: Request) -> Response:
    oraculo: Oraculo = request.app.state.oraculo
    keys = oraculo.answers.public_keys if oraculo.is_open else []
    return answered(ticket_tokens.jwks(keys))


async def state_of_health(oraculo: Oraculo) -> dict[str, Any]:
    status = oraculo.status() if oraculo.is_open else None
    checks: dict[str, dict[str, Any]] = {"engine": {"ok": status is not None and status.ready}}
    if status is not None:
        if (out := status.outage) is not None:
            checks["engine"] = {"ok": False, out.service: out.target, "failing_since": views.instant(out.since)}
        checks["store"] = await _durability(oraculo.store)
        checks["store"]["failing_since"] = views.instant(status.store_failing_since)
        checks["store"]["ok"] = checks["store"]["ok"] and status.store_failing_since is None
        checks["broker"] = await _broker(oraculo, status.effects.failing_since)
        if (mine := oneself(oraculo)) is not None:
            checks["replica"] = {"ok": True, **mine}
        if oraculo.projections.all:
            checks["projections"] = _projections(oraculo)
    usable = checks["engine"]["ok"] and checks.get("store", {}).get("ok", False)
    fine = usable and checks["broker"]["ok"]
    word = "ok" if fine else "degraded" if usable else "unavailable"
    return {"status": word, "checks": checks}


def _for_strangers(check: dict[str, Any]) -> dict[str, Any]:
    """Whether it works, and nothing of where it is or what it said."""
    return {name: value for name, value in check.items() if name in SHOWN_TO_STRANGERS}


async def _broker(oraculo: Oraculo, failing_since: datetime | None) -> dict[str, Any]:
    """One that works is enough, and the one apart where some queues are on another; each is shown as its last probe
    found it."""
    found = members(oraculo)
    check: dict[str, Any] = {"ok": True, "durability": None}
    if found:
        apart = group_of(oraculo.broker).apart
        works = {one["nome"]: one["ok"] or (one["ok"] is None and one["conectado"]) for one in found}
        check["ok"] = all(works[name] for name in apart) and any(works[name] for name in works if name not in apart)
        known = [one["durabilidade"] for one in found if one["durabilidade"]]
        check["durability"] = min(known, key=DURABILITY_CLASSES.index) if known else None
        check["brokers"] = [{key: one[key] for key in BROKER_FIELDS_SHOWN} for one in found]
    else:
        check = await _durability(oraculo.broker)
    check["scheme"] = oraculo.broker.scheme
    check["failing_since"] = views.instant(failing_since)
    check["ok"] = check["ok"] and failing_since is None
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
@needs(Scope.METRICS_READ)
async def metrics(request: Request) -> Response:
    return Response(request.app.state.oraculo.metrics.exposition(), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get(
    f"/schemas/{MENSAGEM_SCHEMA_FILE}",
    summary="JSON Schema of the message",
    description="JSON Schema 2020-12 of the envelope of contracts §1.",
    response_class=Response,
    responses={
        200: {"description": "The schema", "content": {"application/schema+json": {"schema": {"type": "object"}}}},
        **problems.documented(404),
    },
)
@needs(Scope.DOCS_READ)
async def schema() -> Response:
    file = files("oraculo.wire").joinpath("schemas", MENSAGEM_SCHEMA_FILE)
    if not file.is_file():
        raise UnknownIdError("schema", MENSAGEM_SCHEMA_FILE)
    return Response(file.read_bytes(), media_type="application/schema+json")


@router.get(
    f"/schemas/{PLANO_SCHEMA_FILE}",
    summary="JSON Schema of a request of any shape",
    description="JSON Schema 2020-12 for editors, with the words of both languages. Names, expressions and "
    "dependencies are checked when a request is sent.",
    response_class=Response,
    responses={
        200: {"description": "The schema", "content": {"application/schema+json": {"schema": {"type": "object"}}}}
    },
)
@needs(Scope.DOCS_READ)
async def plan_schema() -> Response:
    return Response(schema_text(), media_type="application/schema+json")


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
@needs(Scope.DOCS_READ)
async def avro(file: Annotated[str, Path(json_schema_extra={"enum": list(schemas.FILES.values())})]) -> Response:
    record = next((record for record, name in schemas.FILES.items() if name == file), None)
    if record is None:
        raise UnknownIdError("schema", file)
    return Response(schemas.text(record), media_type="application/json")
