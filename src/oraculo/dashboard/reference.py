"""Pages about the API: its routes, and what each problem means."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import openapi
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.problems import PROBLEM_KINDS
from oraculo.core.access import Scope
from oraculo.dashboard import commands
from oraculo.dashboard.frame import render
from oraculo.errors import UnknownIdError

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

_COMMON = {"400", "401", "403", "421", "429", "500", "503"}


@router.get("/docs")
@needs(Scope.DOCS_READ)
async def docs(request: Request) -> Response:
    document = openapi.document(request.app)
    base = commands.base_url(request)
    tags = [
        {
            **tag,
            "operations": [
                _operation(base, path, method.upper(), operation, document)
                for path, operations in document["paths"].items()
                for method, operation in operations.items()
                if tag["name"] in operation.get("tags", ())
            ],
        }
        for tag in document["tags"]
    ]
    return render(request, "docs.html", about=document["info"]["description"], tags=tags)


def _operation(base: str, path: str, method: str, operation: dict[str, Any], document: Any) -> dict[str, Any]:
    address = path
    for one in operation.get("parameters", ()):
        if one["in"] == "path":
            examples = one.get("schema", {}).get("examples") or one.get("examples") or ["x"]
            address = address.replace("{" + one["name"] + "}", str(examples[0]))
    return {
        "method": method,
        "path": path,
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "parameters": [
            (one["name"], one["in"], one.get("description") or one.get("schema", {}).get("description", ""))
            for one in operation.get("parameters", ())
        ],
        "curl": commands.curl(base, method, address, _example(operation, document)),
        "answers": [
            (status, answer["description"].split("; "))
            for status, answer in sorted(operation["responses"].items())
            if status not in _COMMON
        ],
    }


def _example(operation: dict[str, Any], document: dict[str, Any]) -> Any:
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for example in media.get("examples", {}).values():
        return example["value"]
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return next(iter(document["components"]["schemas"].get(name, {}).get("examples", ())), None)


@router.get("/problems")
@needs(Scope.DOCS_READ)
async def problems(request: Request) -> Response:
    return render(request, "problems.html", kinds=PROBLEM_KINDS, one=None)


@router.get("/problems/{slug:segment}")
@needs(Scope.DOCS_READ)
async def problem(request: Request, slug: str) -> Response:
    code = slug.replace("-", "_")
    if code not in PROBLEM_KINDS:
        raise UnknownIdError("problem", slug)
    return render(request, "problems.html", kinds={code: PROBLEM_KINDS[code]}, one=code)
