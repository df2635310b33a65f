"""A new orchestration: a form and an editor over the same request, checked and drawn before it is sent."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from oraculo.api import paths, problems
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.bootstrap import Oraculo
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.dashboard import commands
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.layout import drawing
from oraculo.dashboard.paths import run_path
from oraculo.errors import OraculoError, PlanError
from oraculo.wire import requests, strict_json

router = APIRouter(include_in_schema=False)

EXAMPLE: dict[str, Any] = {
    "coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}}, {"fonte": "blog", "parametros": {}}],
    "execucoes": [{"executador": "relatorio", "parametros": {}}],
    "timeout_s": 60,
    "fan_in": {"modo": "todos"},
}


@router.get("/new")
async def new(request: Request, oraculo: Running) -> Response:
    wanted: Any = EXAMPLE
    source = request.query_params.get("from")
    if source:
        state = await oraculo.state(source)
        try:
            wanted = requests.request_of(state.plan)
        except PlanError as error:
            raise ProblemError("invalid_plan", str(error)) from None
    return await _page(request, oraculo, _pretty(wanted))


def _pretty(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


async def _page(request: Request, oraculo: Oraculo, text: str, problem: ProblemError | None = None) -> Response:
    names = await store_of(oraculo).queues()
    return render(
        request,
        "new.html",
        422 if problem else 200,
        text=text,
        problem=problem,
        preview=_preview(request, oraculo, text),
        task_types=sorted(oraculo.reception.task_types()),
        sources=[name.removeprefix("escavador_") for name in names if name.startswith("escavador_")],
        executors=[name.removeprefix("executador_") for name in names if name.startswith("executador_")],
    )


def _plan(oraculo: Oraculo, text: str) -> tuple[Any, Plan]:
    value = strict_json.loads(text.encode())
    command = oraculo.reception.work(requests.parse(value)).command
    assert isinstance(command, Start)
    return value, command.plan


def _preview(request: Request, oraculo: Oraculo, text: str) -> dict[str, Any]:
    """What this text would start, or what is wrong with it and where."""
    try:
        value, plan = _plan(oraculo, text)
    except OraculoError as error:
        problem = problems.problem_of(error)
        errors = problem.errors or [{"campo": "", "mensagem": problem.detail}]
        return {"errors": errors, "drawing": None, "tickets": 0, "curl": None, "timeout": None}
    base, keyed = commands.base_url(request), bool(oraculo.settings.api_key)
    return {
        "errors": [],
        "drawing": drawing(plan),
        "tickets": len(plan.tasks),
        "timeout": plan.timeout.total_seconds() * 1000,
        "curl": commands.curl(base, "POST", paths.ORCHESTRATIONS, value, keyed=keyed) if len(text) < 20_000 else None,
    }


@router.post("/ui/new/preview")
async def preview(request: Request, oraculo: Running, fields: Form) -> Response:
    return render(request, "new_preview.html", preview=_preview(request, oraculo, fields.get("text")))


@router.post("/ui/new/submit")
async def submit(request: Request, oraculo: Running, fields: Form) -> Response:
    text = fields.get("text")
    try:
        value = strict_json.loads(text.encode())
        accepted = await oraculo.reception.accept(requests.parse(value))
    except OraculoError as error:
        return await _page(request, oraculo, text, problems.problem_of(error))
    return elsewhere(request, run_path(accepted.correlation_id), "submitted")
