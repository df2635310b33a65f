"""What must hold when a world is over: everything ended, everything adds up, every end was announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import orjson

from oraculo.core.state import fold
from oraculo.core.vocabulary import Kind
from oraculo.simulation.invariants import Journal
from oraculo.simulation.process import Process
from oraculo.simulation.watch import INTAKES, Watch, notice_ids
from oraculo.wire import names


class Wanting(Protocol):
    name: str
    finished: bool


def why(watch: Watch, process: Process, clients: Sequence[Wanting]) -> str:
    """What is still going on although everything should have ended."""
    still = [f"{j.name} {[t.phase for t in j.tickets]}" for j in watch.journals.values() if j.status is None]
    asking = [client.name for client in clients if not client.finished]
    waiting = process.engine.performer.waiting if process.engine else "no engine"
    opened = process.engine.open if process.engine else "no engine"
    unbalanced = watch.balanced(process.life) if process.life else []
    return (
        f"open: {still}; still asking: {asking}; performer: {waiting}; engine.open: {opened}; not counted: {unbalanced}"
    )


async def check(watch: Watch, process: Process) -> None:
    scene = watch.scene
    runs = sorted(watch.journals)
    loaded = await watch.store.load(runs)
    for run in runs:
        journal, state = watch.journals[run], watch.states[run]
        if fold((r.at, r.events) for r in loaded[run]) != state:
            scene.violate("fold(journal) == state", f"{journal.name} at the end")
        watch.catalogued(run)
        if state.owes or state.wake_at() is not None or state.open:
            scene.violate("no orphans", f"{journal.name}: owes {state.owes}, wakes at {state.wake_at()}")
        if process.engine is not None:
            cached = process.engine.handler.cache.get(run)
            if cached is not None and cached != state:
                scene.violate("fold(journal) == state", f"{journal.name}: the cache differs")
        await _result(watch, journal)
        for number, identity in enumerate(notice_ids(journal)):
            given_up = state.notices[number].phase == "given_up"
            if identity not in watch.delivered and not given_up:
                scene.violate("one notice per end", f"{identity} was never delivered")
        scene.count(f"ended {state.status.value}")
    await _adds_up(watch)
    if process.life is not None and process.life.alive:
        for unbalanced in watch.balanced(process.life):
            scene.violate("conservation", unbalanced)
    live = await watch.store.live()
    if live:
        scene.violate("no orphans", f"the catalogue still lists {[one.correlation_id for one in live]}")


async def _result(watch: Watch, journal: Journal) -> None:
    """The aggregate holds each ticket's one accepted answer."""
    body = await watch.store.result(journal.run)
    if body is None or journal.status is None:
        watch.scene.violate("results count once", f"{journal.name} ended without a result")
        return
    document: dict[str, Any] = orjson.loads(body)
    wanted: dict[str, list[tuple[str, str, Any, int]]] = {"coletas": [], "execucoes": []}
    for task, seen in zip(journal.plan.tasks, journal.tickets, strict=True):
        row = (task.name, seen.status.value, orjson.loads(seen.dados), seen.attempt)
        wanted["coletas" if task.kind is Kind.COLETA else "execucoes"].append(row)
    shown = {
        "coletas": [(r["fonte"], r["status"], r["dados"], r["tentativas"]) for r in document["coletas"]],
        "execucoes": [(r["executador"], r["status"], r["resultado"], r["tentativas"]) for r in document["execucoes"]],
    }
    if shown != wanted or document["status"] != journal.status.value:
        watch.scene.violate("results count once", f"{journal.name}: the aggregate says otherwise than the journal")


async def _adds_up(watch: Watch) -> None:
    """The counters, the journal and the dead letters tell the same story; nothing was dropped silently."""
    scene = watch.scene
    counts = await watch.store.counts()
    by_verdict: Counter[str] = Counter()
    for (queue, verdict), number in counts.items():
        if queue in INTAKES:
            by_verdict["started" if (queue, verdict) == (names.REQUESTS, "applied") else verdict] += number
    applied = sum(journal.answers for journal in watch.journals.values())
    late = sum(journal.late for journal in watch.journals.values())
    dead = sum(number for _queue, _reason, number in await watch.store.dead_letter_groups())
    for verdict, counted in (("applied", applied), ("late", late), ("quarantined", dead)):
        if by_verdict[verdict] != counted:
            scene.violate("conservation", f"{by_verdict[verdict]} counted as {verdict}, {counted} in the database")
    unknown = set(by_verdict) - {"started", "applied", "late", "duplicate", "quarantined"}
    if unknown:
        scene.violate("conservation", f"dropped silently: {sorted(unknown)}")
    for verdict in ("duplicate", "late", "quarantined"):
        scene.count(verdict, by_verdict[verdict])
