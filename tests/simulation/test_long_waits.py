"""Waits of days on a virtual clock, over engines that stop and start again on the same store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.engines.local import local_engine
from oraculo.runtime.human_input import HumanInput
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.requests import RequestIntake
from oraculo.simulation import loop
from oraculo.simulation.loop import EPOCH, VirtualLoop, wall_clock
from oraculo.wire import requests
from oraculo.wire.requests import Defaults

DAY_S = 86_400
PLAN: dict[str, Any] = {
    "correlation_id": "dias",
    "tarefas": {
        "pausa": {"espera": {"segundos": 3 * DAY_S}},
        "sinal": {"espera": {"sinal": "ok", "timeout_s": 2 * DAY_S, "ao_expirar": "segue"}},
        "aprova": {"espera": {"aprovacao": {}}, "depende": ["pausa"]},
    },
}


@asynccontextmanager
async def running(store: SqliteStore) -> AsyncIterator[Kernel]:
    """One life of the engine."""
    engine = local_engine(KernelPorts(store, MemoryBroker(), MonotonicClock()), KernelOptions())
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop(patience=3.0)


async def state_of(store: SqliteStore) -> Orchestration:
    run = (await store.locate(["dias"]))["dias"]
    return rebuild((await store.load([run]))[run])


async def _days(virtual: VirtualLoop) -> tuple[Orchestration, int]:
    store, lives = SqliteStore(":memory:", threads=False), 0
    with wall_clock(lambda: EPOCH + virtual.time(), virtual.time):
        await store.open()
        async with running(store) as engine:
            intake = RequestIntake(engine, store, MonotonicClock(), Defaults())
            await intake.accept(requests.parse(PLAN), actor=LOCAL)
        while virtual.time() < 5 * DAY_S:  # awake for a minute or for hours, then away
            await asyncio.sleep(1800 if lives % 2 else 7 * 3600)
            async with running(store):
                lives += 1
                await asyncio.sleep(60 if lives % 3 else 5 * 3600)
        async with running(store) as engine:
            await HumanInput(engine).decide("dias", True, "ana", "", task=None, actor=LOCAL)
        state = await state_of(store)
        await store.close()
    return state, lives


def test_a_wait_of_three_days_survives_restarts() -> None:
    state, lives = loop.run(_days)
    pause, signal, approval = state.tickets
    assert lives > 10
    assert (state.status, state.deadline) == (Status.CONCLUIDA, None)
    assert [one.status for one in (pause, signal, approval)] == [Status.CONCLUIDA] * 3
    for ticket, days in ((pause, 3), (signal, 2)):
        assert ticket.closed_at is not None and ticket.started_at is not None
        late = ticket.closed_at - ticket.started_at - timedelta(days=days)
        assert timedelta() <= late < timedelta(hours=8), "at its instant, or when the engine is there again"
    assert approval.started_at == pause.closed_at
