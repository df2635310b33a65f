"""A new orchestration: a form and an editor over the same request, checked and drawn before it is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from oraculo.api import paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.credentials import asks_for_key
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Scope
from oraculo.core.commands import Start
from oraculo.core.plan import Plan
from oraculo.dashboard import commands
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, language_of, render
from oraculo.dashboard.layout import drawing
from oraculo.dashboard.paths import run_path
from oraculo.dashboard.plan_templates import plan_templates
from oraculo.errors import OraculoError, PlanError, WireError
from oraculo.plans.source.source_reader import SourceFormat, SourceReading, read_text
from oraculo.plans.words import Words
from oraculo.service import Oraculo
from oraculo.wire import requests

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
    words: Words = "en" if language_of(request) == "en" else "pt"
    return render(
        request,
        "new.html",
        422 if problem else 200,
        text=text,
        problem=problem,
        preview=await _preview(request, oraculo, text),
        templates=plan_templates(words),
        task_types=sorted(oraculo.requests.task_types(oraculo.tenant)),
        sources=[name.removeprefix("escavador_") for name in names if name.startswith("escavador_")],
        executors=[name.removeprefix("executador_") for name in names if name.startswith("executador_")],
    )


async def _reading(text: str) -> SourceReading:
    """What the editor holds: JSON when it begins with a brace, else YAML. Long texts take long, so it is read beside
    the event loop."""
    format = SourceFormat.JSON if text.lstrip()[:1] in ("{", "[") else SourceFormat.YAML
    return await asyncio.to_thread(read_text, text.encode(), format)


def _value(reading: SourceReading) -> Any:
    """The request in the editor. Raises WireError for what is none, and for a plan of Fluxo C: it goes another way."""
    value = reading.data
    if _is_flow(value):
        way = f"POST {paths.API}/plans, or `oraculo submit FILE`"
        raise WireError("invalid_request", f"this is a plan of Fluxo C: hand it in with {way}")
    if _placed(reading):
        raise WireError("invalid_request", "; ".join(map(str, reading.faults)))
    return value


def _is_flow(value: Any) -> bool:
    return isinstance(value, dict) and ("cognitive_plan" in value or {"plan_id", "tasks"} <= value.keys())


def _placed(reading: SourceReading) -> bool:
    """Whether the faults that were read are told: those of the text, and those of a plan. Requests of two stages are
    held against the rules of the API."""
    data = reading.data
    is_plan = isinstance(data, dict) and not data.keys().isdisjoint(("tarefas", "tasks"))
    return bool(reading.faults) and (data is None or (is_plan and not _is_flow(data)))


def _plan(request: Request, oraculo: Oraculo, value: Any) -> tuple[Any, Plan]:
    command = oraculo.requests.work(requests.parse(value), actor=actor_of(request)).command
    assert isinstance(command, Start)
    return value, command.plan


async def _preview(request: Request, oraculo: Oraculo, text: str) -> dict[str, Any]:
    """What this text would start, or what is wrong with it and where."""
    reading = await _reading(text)
    try:
        value, plan = _plan(request, oraculo, _value(reading))
    except OraculoError as error:
        problem = problems.problem_of(error)
        errors = problem.errors or [{"campo": "", "mensagem": problem.detail}]
        if _placed(reading):
            errors = [
                {"campo": one.fault.where, "mensagem": one.fault.message, "linha": one.line, "coluna": one.column}
                for one in reading.faults
            ]
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
    return render(request, "new_preview.html", preview=await _preview(request, oraculo, fields.get("text")))


@router.post("/ui/new/submit")
@needs(Scope.RUN_SUBMIT)
async def submit(request: Request, oraculo: Running, fields: Form) -> Response:
    text = fields.get("text")
    try:
        value = _value(await _reading(text))
        accepted = await oraculo.requests.accept(requests.parse(value), actor=actor_of(request))
    except OraculoError as error:
        return await _page(request, oraculo, text, problems.problem_of(error))
    return elsewhere(request, run_path(accepted.correlation_id), "submitted")
