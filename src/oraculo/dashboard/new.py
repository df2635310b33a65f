"""A new orchestration: a form and an editor over the same request, checked and drawn before it is sent."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from oraculo.api import paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.auth import asks_for_key
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.dashboard import commands
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.layout import drawing
from oraculo.dashboard.paths import run_path
from oraculo.errors import OraculoError, PlanError, WireError
from oraculo.service import Oraculo
from oraculo.wire import requests, strict_json

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

EXAMPLE: dict[str, Any] = {
    "coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}}, {"fonte": "blog", "parametros": {}}],
    "execucoes": [{"executador": "relatorio", "parametros": {}}],
    "timeout_s": 60,
    "fan_in": {"modo": "todos"},
}


@router.get("/new")
@needs(Scope.RUN_SUBMIT)
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
        task_types=sorted(oraculo.requests.task_types(oraculo.tenant)),
        sources=[name.removeprefix("escavador_") for name in names if name.startswith("escavador_")],
        executors=[name.removeprefix("executador_") for name in names if name.startswith("executador_")],
    )


def _request(text: str) -> Any:
    """The JSON of the editor. Raises WireError for what is none, and for a plan of Fluxo C: it goes another way."""
    value = strict_json.loads(text.encode())
    if isinstance(value, dict) and ("cognitive_plan" in value or {"plan_id", "tasks"} <= value.keys()):
        way = f"POST {paths.API}/plans, or `oraculo submit FILE`"
        raise WireError("invalid_request", f"this is a plan of Fluxo C: hand it in with {way}")
    return value


def _plan(request: Request, oraculo: Oraculo, text: str) -> tuple[Any, Plan]:
    value = _request(text)
    command = oraculo.requests.work(requests.parse(value), actor=actor_of(request)).command
    assert isinstance(command, Start)
    return value, command.plan


def _preview(request: Request, oraculo: Oraculo, text: str) -> dict[str, Any]:
    """What this text would start, or what is wrong with it and where."""
    try:
        value, plan = _plan(request, oraculo, text)
    except OraculoError as error:
        problem = problems.problem_of(error)
        errors = problem.errors or [{"campo": "", "mensagem": problem.detail}]
        return {"errors": errors, "drawing": None, "tickets": 0, "curl": None, "timeout": None}
    base, keyed = commands.base_url(request), asks_for_key(oraculo.settings)
    return {
        "errors": [],
        "drawing": drawing(plan),
        "tickets": len(plan.tasks),
        "timeout": None if plan.timeout is None else plan.timeout.total_seconds() * 1000,
        "curl": commands.curl(base, "POST", paths.ORCHESTRATIONS, value, keyed=keyed) if len(text) < 20_000 else None,
    }


@router.post("/ui/new/preview")
@needs(Scope.RUN_SUBMIT)
async def preview(request: Request, oraculo: Running, fields: Form) -> Response:
    return render(request, "new_preview.html", preview=_preview(request, oraculo, fields.get("text")))


@router.post("/ui/new/submit")
@needs(Scope.RUN_SUBMIT)
async def submit(request: Request, oraculo: Running, fields: Form) -> Response:
    text = fields.get("text")
    try:
        value = _request(text)
        accepted = await oraculo.requests.accept(requests.parse(value), actor=actor_of(request))
    except OraculoError as error:
        return await _page(request, oraculo, text, problems.problem_of(error))
    return elsewhere(request, run_path(accepted.correlation_id), "submitted")
