"""What a run waits for, with the forms that end it: a decision, a signal."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import paths
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.human_input import who_decides
from oraculo.api.problems import ProblemError, invalid
from oraculo.api.serving import Running
from oraculo.core.access import Scope
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.dashboard.forms import Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.paths import run_path
from oraculo.errors import WireError
from oraculo.wire import strict_json, wait_views

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

WAITS_SHOWN = 20


@router.get("/ui/runs/{correlation_id:segment}/waits")
@needs(Scope.RUN_READ)
async def waits(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """Every task that waits, a few of many, with its form."""
    state = await oraculo.state(correlation_id)
    shown = [_shown(state, position) for position in wait_views.held(state)[:WAITS_SHOWN]]
    actor = actor_of(request)
    return render(
        request,
        "run_waits.html",
        waits=shown,
        run_path=run_path(correlation_id),
        may_decide=actor.may(Scope.PLAN_APPROVE),
        may_signal=actor.may(Scope.RUN_SIGNAL),
    )


@router.get("/ui/runs/{correlation_id:segment}/lineage")
@needs(Scope.RUN_READ)
async def lineage(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """The run that this one tries again, those that try it again, and requests that were merged into it."""
    state = await oraculo.state(correlation_id)
    retries = await oraculo.retries.of(state.run)
    origin = None if state.origin is None else local_name(state.origin.correlation_id)
    merges = None if state.plan.unique is None else await oraculo.store.key_holder(state.run)
    return render(
        request,
        "lineage.html",
        origin=origin,
        how=state.origin,
        retries=retries,
        merges=merges,
        address=run_path,
    )


def _shown(state: Orchestration, position: int) -> dict[str, Any]:
    about = wait_views.document(state, position)
    assert about is not None
    question = about.get("pergunta")
    said = None if question is None else strict_json.loads_trusted(question)
    blank = {"sinal": "", "papeis": ()}
    return {**blank, **about, "pergunta": said, "tarefa": state.plan.profile.name_of(position)}


@router.post("/ui/runs/{correlation_id:segment}/waits/{what}")
@needs(Scope.PLAN_APPROVE, "what", approve=Scope.PLAN_APPROVE, reject=Scope.PLAN_APPROVE, signal=Scope.RUN_SIGNAL)
async def answer(
    request: Request, oraculo: Running, correlation_id: paths.CorrelationId, what: str, fields: Form
) -> Response:
    actor, back = actor_of(request), run_path(correlation_id)
    if what == "signal":
        await oraculo.signal(correlation_id, fields.get("sinal"), _data(fields.get("dados")), actor=actor)
        return elsewhere(request, back, "signalled")
    if what not in ("approve", "reject"):
        raise ProblemError("not_found", "allowed: approve, reject, signal")
    by = who_decides(request, fields.get("por")[:200])
    reason, task = fields.get("motivo")[:1000], fields.get("tarefa") or None
    await oraculo.decide(correlation_id, what == "approve", by=by, reason=reason, task=task, actor=actor)
    return elsewhere(request, back, "decided")


def _data(text: str) -> bytes:
    """The data of a signal as JSON text; nothing is null."""
    try:
        return strict_json.compact(strict_json.loads(text.encode()) if text.strip() else None)
    except WireError as error:
        raise invalid("dados", error.detail) from error
