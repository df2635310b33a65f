"""One orchestration: its picture, its times, its journal, what went in and what came out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from oraculo.api import paths
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.credentials import asks_for_key
from oraculo.api.journal import RETRY_MS, frame
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of, waits_of
from oraculo.api.waiting import EventStream
from oraculo.api.worker_views import who_works
from oraculo.core.access import Scope
from oraculo.core.events import AttemptFailed, OrchestrationStarted, TicketFailed
from oraculo.core.flow.cognitive import TIPO
from oraculo.core.flow.profile import flow_in, specs_in
from oraculo.core.named_tasks import named_in
from oraculo.core.plan import Plan
from oraculo.core.sentences import Language, errors_said, language_named
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Kind
from oraculo.dashboard import commands, timeline
from oraculo.dashboard.artifacts import artifacts_of, download
from oraculo.dashboard.frame import data, language_of, milliseconds, render
from oraculo.dashboard.layout import drawing_of
from oraculo.dashboard.outlines import errors_of
from oraculo.dashboard.paths import run_path
from oraculo.errors import PlanError, UnknownIdError
from oraculo.ports.journal import Recorded
from oraculo.service import Oraculo
from oraculo.wire import requests, strict_json, views

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

FIRST_PAGE_STEPS, PAGE_STEPS = (
    2_500,
    10_000,
)  # of the journal in one answer; the first is small, because a reader waits for it


ATTEMPTS_SHOWN, LOG_LINES_SHOWN = 20, 200


async def _summary(oraculo: Oraculo, correlation_id: str) -> Any:
    found = await store_of(oraculo).summary(correlation_id)
    if found is None:
        raise UnknownIdError("orchestration", correlation_id)
    return found


@router.get("/runs/{correlation_id:segment}")
@needs(Scope.RUN_READ)
async def run(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    one = await _summary(oraculo, correlation_id)
    if not one.fingerprint:  # it went with the key of its tenant
        await store_of(oraculo).events(one.run, 0, 1)
    return render(
        request,
        "run.html",
        one=one,
        run_path=run_path(correlation_id),
        api_path=paths.orchestration(correlation_id),
        copies=commands.of_run(request, correlation_id),
        repeatable=one.tipo != TIPO,  # a plan of Fluxo C is no request
        ticket=_position(one.run, request.query_params.get("ticket", "")),
        parent=await _parent(oraculo, one.run, correlation_id),
        predicts=oraculo.durations is not None,
        first_error=await errors_of(request).of(oraculo, one, _language(request)),
    )


async def _parent(oraculo: Oraculo, run: int, correlation_id: str) -> dict[str, str] | None:
    """The run that this one is a child of; only an id with a slash can be that of a child."""
    if "/" not in correlation_id:
        return None
    found = (await _beginning(oraculo, run, []))[0].plan.parent
    name = "" if found is None else local_name(found.correlation_id)
    return {"name": name, "path": run_path(name)} if name else None


def _position(run: int, ticket: str) -> str:
    """Which ticket of this run the address asks for; nothing when it is of another."""
    found = parse_ticket_id(ticket)
    return str(found[1]) if found is not None and found[0] == run else ""


def _language(request: Request) -> Language:
    return language_named(language_of(request))


@router.get("/ui/runs/{correlation_id:segment}/data")
@needs(Scope.RUN_READ)
async def journal(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """All that the picture needs: the plan laid out, and the journal in short rows."""
    after = request.query_params.get("after", "0")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 16 else 0
    run = await oraculo.run_of(correlation_id)
    most = PAGE_STEPS if number else FIRST_PAGE_STEPS
    steps = await store_of(oraculo).events(run, number, most)
    started, at = await _beginning(oraculo, run, steps)
    rows = list(timeline.rows(steps, started.plan, at, number, _language(request)))
    document: dict[str, Any] = {"events": rows, "more": len(steps) == most, "now": milliseconds(oraculo.now())}
    if not number or "drawing" in request.query_params:
        document["drawing"] = drawing_of(run, await _grown(oraculo, correlation_id, started.plan))
    if not number:
        document |= {
            "id": correlation_id,
            "start": milliseconds(at),
            "deadline": None if started.deadline is None else milliseconds(started.deadline),
            "tasks": _tasks(started.plan),
            "notices": _notices(started.plan),
            "consumers": await _consumers(oraculo, started.plan.queues),
        }
    return data(request, document)


def _notices(plan: Plan) -> list[str]:
    """Who is told of the end, in the order of the notices."""
    told = (("webhook", plan.notify.webhook), ("queue", plan.notify.queue), ("pai", plan.parent))
    return [name for name, target in told if target]


async def _grown(oraculo: Oraculo, correlation_id: str, plan: Plan) -> Plan:
    """With the tickets that undo others, the items of maps and the rounds of loops, if there are any by now."""
    named = named_in(plan)
    undoes = flow_in(plan) is not None or (named is not None and bool(named.undoable))
    grows = undoes or any(task.kind.grows for task in plan.tasks)
    return (await oraculo.state(correlation_id)).plan if grows else plan


async def _beginning(oraculo: Oraculo, run: int, steps: list[Recorded]) -> tuple[OrchestrationStarted, Any]:
    first = steps[0] if steps and steps[0].first == 1 else (await store_of(oraculo).events(run, 0, 1))[0]
    started = first.events[0]
    assert isinstance(started, OrchestrationStarted)
    return started, first.at


def _tasks(plan: Plan) -> dict[str, Any]:
    """Each combination of queue, kind, timeout (ms) once, and which of them each ticket is; and their names, where the
    plan gives them any."""
    combinations: dict[tuple[Any, ...], int] = {}
    of = [combinations.setdefault((t.queue or t.name, t.kind, t.timeout), len(combinations)) for t in plan.tasks]
    kinds = [[queue, kind, round(timeout.total_seconds() * 1000)] for queue, kind, timeout in combinations]
    names = [spec.task_id for spec in specs_in(plan)] or list(plan.profile.names) or None
    return {"kinds": kinds, "of": of, "names": names}


async def _consumers(oraculo: Oraculo, queues: set[str]) -> dict[str, int] | None:
    """How many workers were seen at each queue; None where workers come to a broker that does not tell."""
    if not oraculo.broker.traits.volatile:
        return None
    seen = (await who_works(oraculo))["workers"]
    return {queue: sum(queue in worker["filas"] for worker in seen) for queue in queues}


@router.get("/ui/runs/{correlation_id:segment}/stream")
@needs(Scope.RUN_READ)
async def stream(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """The rows of the journal as they are committed; resumed after `Last-Event-ID` without a gap."""
    waits = waits_of(request)
    if waits.stopping:
        raise ProblemError("not_ready", "the server is stopping")
    last = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0
    run = await oraculo.run_of(correlation_id)
    heartbeat, language = request.app.state.heartbeat_seconds, _language(request)
    closed = oraculo.requests.quotas.open_stream(actor_of(request))
    return EventStream(_frames(oraculo, run, after, heartbeat, language), waits, closed)


async def _frames(oraculo: Oraculo, run: int, after: int, heartbeat: float, language: Language) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    started, at = await _beginning(oraculo, run, [])
    async with aclosing(oraculo.follow(run, after, heartbeat)) as steps:
        async for step in steps:
            if step is None:
                yield b": nada ainda\n\n"
                continue
            rows = list(timeline.rows([step], started.plan, at, after, language))
            if rows:
                after = rows[-1][0]
                yield frame("rows", strict_json.dumps(rows), after)
    yield frame("fim", b"{}")


@router.get("/ui/runs/{correlation_id:segment}/documents")
@needs(Scope.RUN_READ)
async def documents(request: Request, oraculo: Running, correlation_id: paths.CorrelationId) -> Response:
    """What was asked for, what came of it, and the files that it names."""
    state = await oraculo.state(correlation_id)
    try:
        asked: Any = _cognitive(state.plan) or requests.request_of(state.plan)
    except PlanError:
        asked = None
    body = await oraculo.result_json(await oraculo.run_of(correlation_id))
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
    flow = flow_in(plan)
    return None if flow is None else strict_json.loads_trusted(flow.document)


@router.get("/runs/{correlation_id:segment}/artifacts/{number}")
@needs(Scope.RUN_READ)
async def artifact(oraculo: Running, correlation_id: paths.CorrelationId, number: str) -> Response:
    found = artifacts_of(await oraculo.state(correlation_id), oraculo.settings.artefatos)
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else len(found)
    if index >= len(found) or found[index].path is None:
        raise UnknownIdError("artefact", number)
    return download(found[index])


def _read(kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "dados": strict_json.loads_trusted(one["dados"])} for one in kept]


def _task_to_retry(state: Orchestration, position: int) -> str:
    """The task from which on the run can be tried again; empty where it has no names or has not ended."""
    names = state.plan.profile.names
    return names[position] if state.status.final and position < len(names) else ""


async def _failed_attempts(request: Request, oraculo: Oraculo, run: int, position: int) -> list[dict[str, Any]]:
    """What went wrong in attempts of a ticket, whole, of the events that the address names."""
    asked = [text for text in request.query_params.get("at", "").split(",") if text.isascii() and text.isdigit()]
    found: list[dict[str, Any]] = []
    for number in (int(text) for text in asked[:ATTEMPTS_SHOWN] if len(text) < 16):
        for step in await store_of(oraculo).events(run, max(0, number - 1), 1):
            event = step.events[number - step.first] if 0 <= number - step.first < len(step.events) else None
            if isinstance(event, AttemptFailed | TicketFailed) and event.ticket == position:
                errors = [_error(one) for one in errors_said(event, _language(request))]
                found.append({"attempt": event.attempt, "at": step.at, "errors": errors})
    return found


def _error(one: dict[str, Any]) -> dict[str, Any]:
    """An error as a worker told it. Beside code and message it may say who it was, the stack, and lines of a log."""
    lines = one.get("log", one.get("logs"))
    return {
        "code": one.get("codigo", ""),
        "text": one.get("mensagem", ""),
        "final": bool(one.get("definitivo")),
        "worker": one.get("worker", ""),
        "stack": one.get("pilha", one.get("stack", "")),
        "log": [str(line) for line in lines[:LOG_LINES_SHOWN]] if isinstance(lines, list) else [],
    }


@router.get("/ui/runs/{correlation_id:segment}/tickets/{position}")
@needs(Scope.RUN_READ)
async def ticket(
    request: Request, oraculo: Running, correlation_id: paths.CorrelationId, position: Annotated[int, Path(ge=0)]
) -> Response:
    """One ticket: what it was asked, what it answered, and why it was tried again."""
    state = await oraculo.state(correlation_id)
    if position >= len(state.tickets):
        raise UnknownIdError("ticket", f"{correlation_id} #{position + 1}")
    shown = views.ticket(state, position, _language(request))
    one = state.tickets[position]
    base = commands.base_url(request)
    keyed = asks_for_key(oraculo.settings)
    return render(
        request,
        "ticket.html",
        ticket=shown,
        position=position,
        run_path=run_path(correlation_id),
        correlation_id=correlation_id,
        from_here=_task_to_retry(state, position),
        attempts=await _failed_attempts(request, oraculo, state.run, position),
        child=run_path(shown["filha"]) if shown["tipo"] is Kind.FILHA else None,
        asked=strict_json.loads_trusted(state.parameters(position)),
        answer=strict_json.loads_trusted(one.dados),
        late=_read(shown["respostas_tardias"]),
        conflicting=_read(shown["respostas_conflitantes"]),
        curl=commands.curl(base, "GET", f"{paths.API}/tickets/{shown['ticket_id']}", keyed=keyed),
        api_path=f"{paths.API}/tickets/{shown['ticket_id']}",
    )
