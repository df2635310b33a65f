"""One orchestration: its picture, its times, its journal, what went in and what came out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import paths
from oraculo.api.journal import RETRY_MS, frame
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of, waits_of
from oraculo.api.waiting import EventStream
from oraculo.api.workers import who_works
from oraculo.bootstrap import Oraculo
from oraculo.core.events import OrchestrationStarted
from oraculo.core.plan import Plan
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.dashboard import commands, timeline
from oraculo.dashboard.artifacts import artifacts_of, download
from oraculo.dashboard.frame import data, milliseconds, render
from oraculo.dashboard.layout import drawing_of
from oraculo.dashboard.paths import run_path
from oraculo.errors import PlanError, UnknownIdError
from oraculo.ports.store import Recorded
from oraculo.wire import requests, strict_json, views

router = APIRouter(include_in_schema=False)

FIRST_STEPS, STEPS = 2_500, 10_000  # of the journal in one answer; somebody waits for the first


async def _summary(oraculo: Oraculo, correlation_id: str) -> Any:
    found = await store_of(oraculo).summary(correlation_id)
    if found is None:
        raise UnknownIdError("orchestration", correlation_id)
    return found


@router.get("/runs/{correlation_id:segment}")
async def run(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    one = await _summary(oraculo, correlation_id)
    return render(
        request,
        "run.html",
        one=one,
        run_path=run_path(correlation_id),
        api_path=paths.orchestration(correlation_id),
        copies=commands.of_run(request, correlation_id),
        ticket=_position(one.run, request.query_params.get("ticket", "")),
    )


def _position(run: int, ticket: str) -> str:
    """Which ticket of this run the address asks for; nothing when it is of another."""
    found = parse_ticket_id(ticket)
    return str(found[1]) if found is not None and found[0] == run else ""


@router.get("/ui/runs/{correlation_id:segment}/data")
async def journal(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """All that the picture needs: the plan laid out, and the journal in short rows."""
    after = request.query_params.get("after", "0")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 16 else 0
    run = await oraculo.run_of(correlation_id)
    most = STEPS if number else FIRST_STEPS
    steps = await store_of(oraculo).events(run, number, most)
    started, at = await _beginning(oraculo, run, steps)
    rows = list(timeline.rows(steps, at, number))
    document: dict[str, Any] = {"events": rows, "more": len(steps) == most, "now": milliseconds(oraculo.now())}
    if not number or "drawing" in request.query_params:
        document["drawing"] = drawing_of(run, await _grown(oraculo, correlation_id, started.plan))
    if not number:
        document |= {
            "id": correlation_id,
            "start": milliseconds(at),
            "deadline": milliseconds(started.deadline),
            "tasks": _tasks(started.plan),
            "notices": [name for name in ("webhook", "queue") if getattr(started.plan.notify, name)],
            "consumers": _consumers(oraculo, {task.queue for task in started.plan.tasks}),
        }
    return data(request, document)


async def _grown(oraculo: Oraculo, correlation_id: str, plan: Plan) -> Plan:
    """With the tickets that undo others, if there are any by now. Only Fluxo C has such."""
    return plan if plan.flow is None else (await oraculo.state(correlation_id)).plan


async def _beginning(oraculo: Oraculo, run: int, steps: list[Recorded]) -> tuple[OrchestrationStarted, Any]:
    first = steps[0] if steps and steps[0].first == 1 else (await store_of(oraculo).events(run, 0, 1))[0]
    started = first.events[0]
    assert isinstance(started, OrchestrationStarted)
    return started, first.at


def _tasks(plan: Plan) -> dict[str, Any]:
    """Each combination of queue, kind, timeout (ms) once, and which of them each ticket is; and their names, where the
    plan gives them any."""
    combinations: dict[tuple[Any, ...], int] = {}
    of = [combinations.setdefault((t.queue, t.kind, t.timeout), len(combinations)) for t in plan.tasks]
    kinds = [[queue, kind, round(timeout.total_seconds() * 1000)] for queue, kind, timeout in combinations]
    names = None if plan.flow is None else [spec.task_id for spec in plan.flow.specs]
    return {"kinds": kinds, "of": of, "names": names}


def _consumers(oraculo: Oraculo, queues: set[str]) -> dict[str, int] | None:
    """How many workers were seen at each queue; None where workers come to a broker that does not tell."""
    assert oraculo.broker is not None
    if not oraculo.broker.volatile:
        return None
    seen = who_works(oraculo)["workers"]
    return {queue: sum(queue in worker["filas"] for worker in seen) for queue in queues}


@router.get("/ui/runs/{correlation_id:segment}/stream")
async def stream(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """The rows of the journal as they are committed; resumed after `Last-Event-ID` without a gap."""
    waits = waits_of(request)
    if waits.stopping:
        raise ProblemError("not_ready", "the server is stopping")
    last = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0
    run = await oraculo.run_of(correlation_id)
    return EventStream(_frames(oraculo, correlation_id, run, after, request.app.state.heartbeat_seconds), waits)


async def _frames(
    oraculo: Oraculo, correlation_id: str, run: int, after: int, heartbeat: float
) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    _, at = await _beginning(oraculo, run, [])
    async with aclosing(oraculo.follow(run, after, heartbeat)) as steps:
        async for step in steps:
            if step is None:
                yield b": nada ainda\n\n"
                continue
            rows = list(timeline.rows([step], at, after))
            if rows:
                after = rows[-1][0]
                yield frame("rows", strict_json.dumps(rows), after)
    yield frame("fim", b"{}")


@router.get("/ui/runs/{correlation_id:segment}/documents")
async def documents(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """What was asked for, what came of it, and the files that it names."""
    state = await oraculo.state(correlation_id)
    try:
        asked: Any = _cognitive(state.plan) or requests.request_of(state.plan)
    except PlanError:
        asked = None
    body = await oraculo.result_bytes(correlation_id, 0)
    if body is None:
        body = strict_json.dumps(views.orchestration(state)["agregado"])
    return render(
        request,
        "run_documents.html",
        asked=asked,
        result=strict_json.loads_trusted(body),
        final=state.status.final,
        artifacts=artifacts_of(state, oraculo.settings.artefatos),
        folder=oraculo.settings.artefatos,
        notices=[views.notice(one) for one in state.notices],
        run_path=run_path(correlation_id),
        api_path=paths.orchestration(correlation_id),
    )


def _cognitive(plan: Plan) -> Any:
    """The plan of Fluxo C as it came, if it is one."""
    return None if plan.flow is None else strict_json.loads_trusted(plan.flow.document)


@router.get("/runs/{correlation_id:segment}/artifacts/{number}")
async def artifact(oraculo: Running, correlation_id: paths.CorrelationId, number: str) -> Response:
    found = artifacts_of(await oraculo.state(correlation_id), oraculo.settings.artefatos)
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else len(found)
    if index >= len(found) or found[index].path is None:
        raise UnknownIdError("artefact", number)
    return download(found[index])


@router.get("/ui/runs/{correlation_id:segment}/tickets/{position}")
async def ticket(
    request: Request, oraculo: Running, correlation_id: paths.CorrelationId, position: Annotated[int, Path(ge=0)]
) -> Response:
    """One ticket: what it was asked, what it answered, and why it was tried again."""
    state = await oraculo.state(correlation_id)
    if position >= len(state.tickets):
        raise UnknownIdError("ticket", f"{correlation_id} #{position + 1}")
    shown = views.ticket(state, position)
    one, task = state.tickets[position], state.plan.tasks[position]
    base = commands.base_url(request)
    keyed = bool(oraculo.settings.api_key)
    return render(
        request,
        "ticket.html",
        ticket=shown,
        position=position,
        asked=strict_json.loads_trusted(task.parametros),
        answer=strict_json.loads_trusted(one.dados),
        late=[{**late, "dados": strict_json.loads_trusted(late["dados"])} for late in shown["respostas_tardias"]],
        curl=commands.curl(base, "GET", f"{paths.API}/tickets/{shown['ticket_id']}", keyed=keyed),
        api_path=f"{paths.API}/tickets/{shown['ticket_id']}",
    )
