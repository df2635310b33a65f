"""What must hold when a world is over: everything ended, everything adds up, every end was announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import orjson

from oraculo.core.replay import rebuild
from oraculo.core.vocabulary import Kind
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.operators import REQUEUED
from oraculo.simulation.process import Process
from oraculo.simulation.watch import INTAKES, Watch, intake, notice_ids
from oraculo.wire import names
from oraculo.wire.quarantine import ATTEMPTS_USED_UP


class Wanting(Protocol):
    name: str
    finished: bool


def why(watch: Watch, process: Process, clients: Sequence[Wanting]) -> str:
    """What is still going on although everything should have ended."""
    still = [f"{j.name} {[t.phase for t in j.tickets]}" for j in watch.journals.values() if j.status is None]
    asking = [client.name for client in clients if not client.finished]
    status = [up.engine.status() for up in process.ups()] or "no engine"
    unbalanced = [text for life in process.lives_now() for text in watch.balanced(life)]
    return f"open: {still}; still asking: {asking}; engine: {status}; not counted: {unbalanced}"


async def check(watch: Watch, process: Process) -> None:
    scene = watch.scene
    runs = sorted(watch.journals)
    loaded = await watch.store.load(runs)
    for run in runs:
        journal, state = watch.journals[run], watch.states[run]
        if rebuild(loaded[run]) != state:
            scene.violate("fold(journal) == state", f"{journal.name} at the end")
        watch.catalogued(run)
        if state.owes or state.wake_at() is not None or state.open:
            scene.violate("no orphans", f"{journal.name}: owes {state.owes}, wakes at {state.wake_at()}")
        for up in process.ups():
            cached = up.engine._states.cache.get(run)
            is_behind = cached is not None and watch.replicas.shared and cached.version < state.version
            if cached is not None and cached != state and not is_behind:
                scene.violate("fold(journal) == state", f"{journal.name}: the cache differs")
        await _result(watch, journal)
        for number, identity in enumerate(notice_ids(journal)):
            given_up = state.notices[number].phase == "given_up"
            if identity not in watch.delivered and not given_up:
                scene.violate("one notice per end", f"{identity} was never delivered")
        scene.count(f"ended {state.status.value}")
    await _adds_up(watch)
    watch.breakers.check_end()
    watch.replicas.check_members([life.number for life in process.lives_now()])
    for life in process.lives_now():
        for unbalanced in watch.balanced(life):
            scene.violate("conservation", unbalanced)
    live = await watch.store.live()
    if live:
        scene.violate("no orphans", f"the catalogue still lists {[one.correlation_id for one in live]}")


async def _result(watch: Watch, journal: CheckedJournal) -> None:
    """The aggregate holds each ticket's one accepted answer."""
    body = await watch.store.result(journal.run)
    if body is None or journal.status is None:
        watch.scene.violate("results count once", f"{journal.name} ended without a result")
        return
    document: dict[str, Any] = orjson.loads(body)
    wanted: dict[str, list[tuple[str, str, Any, int]]] = {"coletas": [], "execucoes": []}
    planned = journal.maps.planned or None
    for task, seen in zip(journal.plan.tasks[:planned], journal.tickets[:planned], strict=True):
        if not task.kind.is_sent:
            continue
        row = (task.name, seen.status.value, orjson.loads(seen.dados), seen.attempt)
        wanted["coletas" if task.kind is Kind.COLETA else "execucoes"].append(row)
    shown = {
        "coletas": [(r["fonte"], r["status"], r["dados"], r["tentativas"]) for r in document["coletas"]],
        "execucoes": [(r["executador"], r["status"], r["resultado"], r["tentativas"]) for r in document["execucoes"]],
    }
    for owner, known in journal.maps.by_owner.items():
        told = document["tarefas"][known.spec.item.name]["resultados"]
        if told != journal.maps.results(owner, journal.tickets):
            watch.scene.violate("results count once", f"{journal.name}: results of a map in another order, or wrong")
    if shown != wanted or document["status"] != journal.status.value:
        watch.scene.violate("results count once", f"{journal.name}: the aggregate says otherwise than the journal")


async def _adds_up(watch: Watch) -> None:
    """The counters, the journal and the dead letters tell the same story; nothing was dropped silently."""
    scene = watch.scene
    counts = await watch.store.counts()
    by_verdict: Counter[str] = Counter()
    for (queue, verdict), number in counts.items():
        if intake(queue) in INTAKES:
            by_verdict["started" if (intake(queue), verdict) == (names.REQUESTS, "applied") else verdict] += number
    applied = sum(journal.answers for journal in watch.journals.values())
    late = sum(journal.late for journal in watch.journals.values())
    conflicting = sum(journal.conflicting for journal in watch.journals.values())
    groups = await watch.store.dead_letter_groups()
    dead = sum(number for _queue, reason, number in groups if reason != ATTEMPTS_USED_UP)
    exhausted = sum(number for _queue, reason, number in groups if reason == ATTEMPTS_USED_UP)
    exhausted += sum(number for (_queue, verdict), number in counts.items() if verdict == REQUEUED)
    failed = sum(journal.exhausted for journal in watch.journals.values())
    if exhausted != failed:
        scene.violate(
            "exhausted orders are kept", f"{failed} used up their attempts, {exhausted} dead letters were made"
        )
    kept = (("applied", applied), ("late", late), ("conflicting_answer", conflicting), ("quarantined", dead))
    for verdict, counted in kept:
        if by_verdict[verdict] != counted:
            scene.violate("conservation", f"{by_verdict[verdict]} counted as {verdict}, {counted} in the database")
    await watch.unique.check_end(watch.store, by_verdict["merged"])
    unknown = set(by_verdict) - {"started", "duplicate", "merged", *(verdict for verdict, _ in kept)}
    if unknown:
        scene.violate("conservation", f"dropped silently: {sorted(unknown)}")
    for verdict in ("duplicate", "late", "conflicting_answer", "quarantined"):
        scene.count(verdict, by_verdict[verdict])
