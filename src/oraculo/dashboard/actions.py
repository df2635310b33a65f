"""Cancel, pause, resume and retry, one or many. Nothing is done before a page has said to how many, and was told to."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from secrets import token_hex
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Request, Response

from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Actor, Scope
from oraculo.core.reuse import RetryFrom
from oraculo.core.vocabulary import RUN_STATUSES, Status
from oraculo.dashboard.forms import Fields, Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.dashboard.paths import run_path
from oraculo.dashboard.runs import FILTERS, list_query
from oraculo.errors import DuplicateCorrelationError, PlanError, RetryError, RunEndedError
from oraculo.ports.catalogue import Summary
from oraculo.service import Oraculo

log = structlog.get_logger("oraculo.dashboard")
router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

RUNS_PER_ACTION = {"cancel": 2000, "pause": 2000, "resume": 2000, "retry": 200}
PAUSED_BEFORE = {"pause": False, "resume": True}  # action → whether what it is done to is paused
TASK_NAME_MAX_CHARACTERS, FLASH_TEXT_MAX_CHARACTERS = 200, 300
OPEN_STATUSES = (Status.PENDENTE, Status.EM_EXECUCAO)


@dataclass(slots=True)
class Chosen:
    ids: list[str]
    by_filter: bool
    more: bool  # there are more than are done at once
    failed: bool  # some of them did not conclude


async def _chosen(oraculo: Oraculo, what: str, fields: Fields) -> Chosen:
    """Return the ticked runs, or all that match the filter, that can be cancelled or retried."""
    store = store_of(oraculo)
    most = RUNS_PER_ACTION[what]
    by_filter = fields.get("all") == "1"
    if by_filter:
        wanted = list_query(fields.but("cursor"), oraculo.now()).wanted(oraculo.queue_names)
        fitting = [status for status in wanted.status or RUN_STATUSES if _fits(what, status)]
        fitting_only = replace(wanted, status=fitting, paused=PAUSED_BEFORE.get(what), limit=most + 1)
        found = await store.find(fitting_only) if fitting else []
    else:
        known = [await store.summary(name) for name in dict.fromkeys(fields.all("id"))]
        found = [one for one in known if one is not None and _may(what, one)]
    failed = any(one.status is not Status.CONCLUIDA for one in found[:most])
    return Chosen([one.correlation_id for one in found[:most]], by_filter, len(found) > most, failed)


def _may(what: str, one: Summary) -> bool:
    return _fits(what, one.status) and PAUSED_BEFORE.get(what) in (None, one.paused_at is not None)


def _fits(what: str, status: Status) -> bool:
    return (status in OPEN_STATUSES) == (what != "retry")


@router.post("/ui/runs/{what}")
@needs(
    Scope.RUN_CANCEL,
    "what",
    cancel=Scope.RUN_CANCEL,
    pause=Scope.RUN_CANCEL,
    resume=Scope.RUN_CANCEL,
    retry=Scope.RUN_SUBMIT,
)
async def act(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    if what not in RUNS_PER_ACTION:
        raise ProblemError("not_found", "allowed: cancel, pause, resume, retry")
    chosen = await _chosen(oraculo, what, fields)
    task = fields.get("tarefa")[:TASK_NAME_MAX_CHARACTERS] if what == "retry" else ""
    filters = [pair for pair in fields.but() if pair[0] in FILTERS and pair[1]]
    back = fields.get("back") or f"/runs?{urlencode(filters)}"
    if fields.get("confirm") != "1":
        return render(
            request,
            "confirm_runs.html",
            what=what,
            chosen=chosen,
            asked=chosen.by_filter or bool(fields.all("id")),
            most=RUNS_PER_ACTION[what],
            filters=filters,
            back=back,
            press=token_hex(8),
            task=task,
        )
    if what == "cancel":
        undo = fields.get("desfazer") == "1"
        done = await _cancel(oraculo, actor_of(request), chosen.ids, fields.get("motivo")[:1000], undo)
        return elsewhere(request, back, "cancelled", n=done)
    if what in PAUSED_BEFORE:
        done = await _pause(oraculo, actor_of(request), chosen.ids, fields.get("motivo")[:1000], PAUSED_BEFORE[what])
        return elsewhere(request, back, "resumed" if PAUSED_BEFORE[what] else "paused", n=done)
    mode = RetryFrom.START if fields.get("de") == RetryFrom.START else RetryFrom.FAILURES
    made, refused = await _retry(
        oraculo, actor_of(request), chosen.ids, RetryFrom.TASK if task else mode, task or None, fields.get("press")[:64]
    )
    if len(made) == 1 and not refused:
        return elsewhere(request, run_path(made[0]), "retried", n=1, refused=0)
    if len(refused) == 1 and not made:
        return elsewhere(request, back, "retry_refused", n=0, refused=1, why=refused[0][:FLASH_TEXT_MAX_CHARACTERS])
    return elsewhere(request, back, "retried", n=len(made), refused=len(refused))


async def _cancel(oraculo: Oraculo, actor: Actor, ids: list[str], reason: str, undo: bool) -> int:
    done = 0
    for name in ids:
        done += await oraculo.cancel(name, reason, actor=actor, undo=undo)
    log.info("orchestrations cancelled from the dashboard", count=done, reason=reason, undo=undo)
    return done


async def _pause(oraculo: Oraculo, actor: Actor, ids: list[str], reason: str, resumes: bool) -> int:
    done = 0
    for name in ids:
        with contextlib.suppress(RunEndedError):
            act = oraculo.pauses.resume if resumes else oraculo.pauses.pause
            done += await act(name, reason, actor)
    return done


async def _retry(
    oraculo: Oraculo, actor: Actor, ids: list[str], mode: RetryFrom, task: str | None, press: str
) -> tuple[list[str], list[str]]:
    """Try each again as a new run; return their ids, and why others could not be. `press` is the button that was
    pressed: twice is once."""
    made: list[str] = []
    refused: list[str] = []
    for name in ids:
        try:
            key = f"{press}:{name}" if press else None
            retried = await oraculo.retry(name, mode, task=task, key=key, actor=actor)
        except (PlanError, RetryError, DuplicateCorrelationError) as error:
            refused.append(str(error))
            continue
        made.append(retried.correlation_id)
    return made, refused
