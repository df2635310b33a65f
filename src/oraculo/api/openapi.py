"""The OpenAPI document. Routes read and write their bodies themselves, so their schemas are added here."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from oraculo.api import bodies, documents, problems, words
from oraculo.api.access import GuardedRoute, need_of
from oraculo.wire.flow.ticket_requests import TICKET_BODIES
from oraculo.wire.requests import Requisicao
from oraculo.wire.schedules import Agenda
from oraculo.wire.sla import Objetivo
from oraculo.wire.worker_messages import WORKER_BODIES

DESCRIPTION = """Broker-native orchestration of independent collectors and executors.

Errors are problem documents (RFC 9457): `type` is a page on this server, `code` the same word for programs.
When `ORACULO_API_KEY` is set, and beyond loopback, every route but `/health`, `/ready` and
`/.well-known/jwks.json` needs `Authorization: Bearer KEY` or `X-API-Key: KEY`; `x-scope` is what the key must allow.
Answers have Portuguese words, and English ones with `?words=en` or `Oraculo-Words: en`."""

TAGS = [
    {"name": "orchestrations", "description": "Ask for work, follow it, get the result."},
    {"name": "tickets", "description": "One piece of work each."},
    {"name": "fluxo c", "description": "Cognitive plans: bring one, decide on it, look at its tickets."},
    {"name": "task types", "description": "Names that stand for collectors and executors."},
    {"name": "schedules", "description": "Requests that are started at instants of a calendar."},
    {"name": "predictions", "description": "How long tasks take, and when runs will end."},
    {"name": "sla", "description": "Objectives, alerts and freezes."},
    {"name": "dead letters", "description": "Messages that could not be handled, with their bytes and the reason."},
    {"name": "workers", "description": "Work over plain HTTP: lease, answer, keep alive, give back."},
    {"name": "keys", "description": "Keys: who may do what."},
    {"name": "operation", "description": "Probes, metrics, schemas."},
]


def answer(model: type[BaseModel], description: str, *, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """One entry of a route's `responses`."""
    documented: dict[str, Any] = {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}},
    }
    if headers:
        documented["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()
        }
    return documented


def document(app: FastAPI) -> dict[str, Any]:
    """Built once, on first use."""
    if app.openapi_schema is None:
        built = get_openapi(title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes, tags=TAGS)
        components = built.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        schemas.update(_schemas(documents.ANSWER_MODELS, "serialization"))
        schemas.update(
            _schemas(
                [Requisicao, Agenda, Objetivo, *WORKER_BODIES, *TICKET_BODIES, *bodies.BODY_MODELS],
                "validation",
            )
        )
        schemas["Resultados"] = {
            "description": "One result envelope, or a list of up to 1000.",
            "anyOf": [
                {"$ref": "#/components/schemas/Envelope"},
                {"type": "array", "maxItems": 1000, "items": {"$ref": "#/components/schemas/Envelope"}},
            ],
        }
        schemas["Requisicoes"] = {
            "description": "Up to 1000 requests.",
            "type": "array",
            "maxItems": 1000,
            "items": {"$ref": "#/components/schemas/Requisicao"},
        }
        schemas["HostHeartbeats"] = {
            "description": "The heartbeats of the workers of a host, up to 1000.",
            "type": "array",
            "maxItems": 1000,
            "items": {"$ref": "#/components/schemas/HostHeartbeat"},
        }
        schemas["RequestLines"] = {
            "description": "One request on each line, up to 1000; empty lines do not count.",
            "type": "string",
        }
        components["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        scopes = _scopes(app)
        for path, operations in built["paths"].items():
            for operation in operations.values() if words.translates(path) else ():
                operation.setdefault("parameters", []).extend(words.PARAMETERS)
                operation["responses"]["422"] = problems.documented(422)[422]
        for path, operations in built["paths"].items():
            for method, operation in operations.items():
                if (path, method) in scopes:
                    operation["x-scope"] = scopes[path, method]
                    operation["security"] = [{"bearer": []}, {"apiKey": []}, {}]
        app.openapi_schema = built
    return app.openapi_schema


def _scopes(app: FastAPI) -> dict[tuple[str, str], str]:
    """(path, method) → the scope that is needed; open routes are not in it."""
    found: dict[tuple[str, str], str] = {}
    for route in app.routes:
        need = need_of(route)
        if need is not None and isinstance(route, GuardedRoute):
            found.update(((route.path_format, method.lower()), need.scope.value) for method in route.methods or ())
    return found


def _schemas(models: list[type[BaseModel]], mode: Any) -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, mode) for model in models], ref_template="#/components/schemas/{model}"
    )
    found: dict[str, Any] = definitions["$defs"]
    return found
