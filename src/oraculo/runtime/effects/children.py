"""Children on their way: begun, ended with what they belong to, and heard of by their parents.

What is asked here is owed by a journal, and asked again after a crash. So everything may be done twice: a child has one
id and one fingerprint for each attempt, an answer to a parent counts once, a cancel of what has ended is nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from oraculo.backoff import backoff
from oraculo.chunks import chunks_by_count
from oraculo.core import children
from oraculo.core.access import LOCAL
from oraculo.core.commands import Cancel, ConfirmCancel, ConfirmDispatch, RecordResult
from oraculo.core.digests import digest_of
from oraculo.core.named_tasks import ChildSpec, named_in
from oraculo.core.plan import Parent
from oraculo.core.reuse import RetryFrom
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.vocabulary import Status
from oraculo.errors import BusyError, OraculoError, PlanError, StoreError, WireError
from oraculo.ports.engine import Engine
from oraculo.ports.notifier import Outcome as Sent
from oraculo.ports.notifier import Receipt
from oraculo.ports.work import Fate, Work
from oraculo.wire import named_children, strict_json

log = structlog.get_logger("oraculo.children")

CHUNK_MAX_CHILDREN = 50  # children that are begun or ended in one go
RETRY_FIRST_S, RETRY_MAX_S = 0.1, 5.0
GOOD = (Status.CONCLUIDA, Status.PARCIAL)
ENDED_WITH = "a orquestração a que pertence terminou ou não precisa mais dela"

Report = Callable[[list[Work]], None]


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A child that is to begin, apart from the state of its parent. `earlier` are the ids that it may have had in the
    run that its parent tries again, the last attempt first; `origin` is that run."""

    name: str
    spec: ChildSpec
    parameters: bytes
    parent: Parent
    labels: tuple[str, ...]
    traceparent: str | None
    actor: str | None
    earlier: tuple[str, ...] = ()
    origin: int = 0


class ChildIntake(Protocol):
    """Turns what a parent asks for into work; PlanError or WireError when that is no request."""

    async def refresh_all_task_types(self) -> None: ...

    def child(self, wanted: ChildRequest, request: dict[str, Any]) -> Work: ...

    async def child_again(self, work: Work, earlier: Orchestration) -> Work:
        """The same work as a retry of a child that failed, from its failures; as it is where that cannot be."""
        ...


class ChildRuns:
    """Does what states ask for, once it is `bound` to an engine and to what reads requests."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._intake: ChildIntake | None = None
        self._flying: set[asyncio.Task[None]] = set()

    def bind(self, engine: Engine, intake: ChildIntake) -> None:
        self._engine, self._intake = engine, intake

    def __len__(self) -> int:
        return len(self._flying)

    async def close(self) -> None:
        """Cancel what is under way. The journal still owes it."""
        left = list(self._flying)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._flying.add(task)
        task.add_done_callback(self._flying.discard)

    # -- begin -------------------------------------------------------------------------------------------------------

    def begin(self, state: Orchestration, tickets: Sequence[tuple[int, int]], report: Report) -> None:
        """Begin the children of these (position, attempt); it is under way when this returns."""
        self._go(self._begin([_wanted(state, position, attempt) for position, attempt in tickets], report))

    async def _begin(self, wanted: list[ChildRequest], report: Report) -> None:
        for some in chunks_by_count(wanted, CHUNK_MAX_CHILDREN):
            left: Sequence[ChildRequest] = list(some)
            for pause in backoff(RETRY_FIRST_S, RETRY_MAX_S):
                left = await self._try_begin(left, report)
                if not left:
                    break
                await asyncio.sleep(pause)

    async def _try_begin(self, wanted: Sequence[ChildRequest], report: Report) -> list[ChildRequest]:
        """Those that have to be tried again."""
        assert self._engine is not None and self._intake is not None, "children need an engine and an intake"
        works: list[Work] = []
        asked: list[ChildRequest] = []
        try:
            await self._intake.refresh_all_task_types()
            for one in wanted:
                work = self._work(one)
                if isinstance(work, str):
                    report([_failed(one, "filha_recusada", work)])
                else:
                    works.append(await self._again(one, work))
                    asked.append(one)
            outcomes = await self._engine.submit(works, piecewise=True) if works else []
        except (StoreError, BusyError) as error:
            log.warning("children not begun yet", children=len(wanted), error=str(error))
            return asked or list(wanted)
        begun: list[tuple[int, int]] = []
        again: list[ChildRequest] = []
        for one, outcome in zip(asked, outcomes, strict=True):
            if outcome.fate in (Fate.APPLIED, Fate.DUPLICATE):
                begun.append((one.parent.position, one.parent.attempt))
            elif outcome.fate is Fate.CONFLICT:
                report([_failed(one, "id_ocupado", f"o id {local_name(one.name)} é de outra orquestração")])
            elif outcome.fate is Fate.RETRY:
                again.append(one)
        if begun:
            report([Work(ConfirmDispatch(begun), run=asked[0].parent.run)])
        return again

    def _work(self, wanted: ChildRequest) -> Work | str:
        """The work of a child, or why there is none."""
        assert self._intake is not None
        if wanted.parent.depth > children.DEPTH_MAX:
            return f"mais de {children.DEPTH_MAX} orquestrações uma dentro da outra"
        try:
            return self._intake.child(wanted, named_children.request_of(wanted.spec, wanted.parameters))
        except (PlanError, WireError) as error:
            return str(error)

    async def _again(self, wanted: ChildRequest, work: Work) -> Work:
        """The work of a child whose parent is a retry: one that failed there goes on from its failures."""
        assert self._engine is not None and self._intake is not None
        for name in wanted.earlier:
            state = await self._engine.state_of(name)
            if state is not None and state.plan.parent is not None and state.plan.parent.run == wanted.origin:
                return await self._intake.child_again(work, state)
        return work

    # -- end ---------------------------------------------------------------------------------------------------------

    def end(self, state: Orchestration, tickets: Sequence[tuple[int, int]], report: Report) -> None:
        """Cancel the children of these (position, attempt), as far as they are there."""
        found = [
            (children.child_id(state, position, attempt), children.parent_of(state, position, attempt))
            for position, attempt in tickets
        ]
        self._go(self._end(state.run, found, report))

    async def _end(self, run: int, wanted: list[tuple[str, Parent]], report: Report) -> None:
        for name, parent in wanted:
            for pause in backoff(RETRY_FIRST_S, RETRY_MAX_S):
                try:
                    await self._cancel(name, parent)
                    break
                except OraculoError as error:
                    log.warning("child not cancelled yet", correlation_id=name, error=str(error))
                    await asyncio.sleep(pause)
            report([Work(ConfirmCancel([(parent.position, parent.attempt)]), run=run)])

    async def _cancel(self, name: str, parent: Parent) -> None:
        """Cancel a child; one that is not there, or belongs to another run, is left alone."""
        assert self._engine is not None
        state = await self._engine.state_of(name)
        if state is not None and state.plan.parent == parent and not state.status.final:
            await self._engine.submit([Work(Cancel(ENDED_WITH, LOCAL.id), correlation_id=name, run=state.run)])

    # -- tell --------------------------------------------------------------------------------------------------------

    async def tell(self, parent: Parent, name: str, body: bytes, has_output: bool) -> Receipt:
        """Tell a parent how its child ended; `body` is the child's final document."""
        assert self._engine is not None
        document = strict_json.loads_trusted(body)
        status = Status(document["status"])
        ok = status in GOOD
        said = document["saida"] if has_output else document
        dados = strict_json.compact(said) if ok else b"null"
        erros: list[dict[str, object]] = []
        if not ok:
            erros = [
                {
                    "codigo": status.value,
                    "mensagem": f"{local_name(name)} terminou como {status.value}",
                    "definitivo": False,
                }
            ]
        answer = RecordResult(
            ok,
            dados,
            erros,
            attempt=parent.attempt,
            digest=digest_of(body, ok, dados, erros),
            position=parent.position,
            child=status if ok else None,
        )
        try:
            (outcome,) = await self._engine.submit([Work(answer, run=parent.run)])
        except OraculoError as error:
            return Receipt(Sent.RETRY, str(error))
        return Receipt(Sent.DELIVERED, outcome.fate.value)


def _wanted(state: Orchestration, position: int, attempt: int) -> ChildRequest:
    named = named_in(state.plan)
    spec = None if named is None else named.spec(position).child
    assert spec is not None, f"task {position} is no child"
    return ChildRequest(
        children.child_id(state, position, attempt),
        spec,
        state.parameters(position),
        children.parent_of(state, position, attempt),
        state.plan.labels,
        state.traceparent,
        state.actor,
        _earlier(state, position) if attempt == 1 else (),
        0 if state.origin is None else state.origin.run,
    )


def _earlier(state: Orchestration, position: int) -> tuple[str, ...]:
    """The ids that a child may have had in the run that its parent tries again."""
    origin = state.origin
    if origin is None or origin.mode is not RetryFrom.FAILURES:
        return ()
    first = origin.correlation_id + children.child_id(state, position, 1).removeprefix(state.correlation_id)
    attempts = range(state.plan.tasks[position].max_attempts, 1, -1)
    return (*(f"{first}~{attempt}" for attempt in attempts), first)


def _failed(one: ChildRequest, code: str, why: str) -> Work:
    """The child cannot begin, whenever it is tried."""
    erros: list[dict[str, object]] = [{"codigo": code, "mensagem": why, "definitivo": True}]
    parent = one.parent
    digest = digest_of(why.encode(), False, b"null", erros)
    failed = RecordResult(False, b"null", erros, True, attempt=parent.attempt, digest=digest, position=parent.position)
    return Work(failed, run=parent.run)
