"""Plans that have not ended, page by page: those of Fluxo C, and those that have a ceiling."""

from __future__ import annotations

from collections.abc import AsyncIterator

from oraculo.core.flow.cognitive import TIPO
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.ports.catalogue import Query
from oraculo.ports.store import Store

PAGE_PLANS = 100
_OPEN = (Status.PENDENTE, Status.EM_EXECUCAO)


async def open_plans(store: Store) -> AsyncIterator[Orchestration]:
    """Yield the state of every open plan of Fluxo C, the newest first. Plans that begin meanwhile may be missing."""
    async for state in _found(store, Query(status=_OPEN, tipo=TIPO, limit=PAGE_PLANS)):
        yield state


async def open_limited(store: Store) -> AsyncIterator[Orchestration]:
    """Yield the state of every open orchestration, of any tenant, whose orders have a ceiling, the newest first."""
    async for state in _found(store, Query(status=_OPEN, limited=True, tenant=None, limit=PAGE_PLANS)):
        if state.plan.profile.has_ceiling:
            yield state


async def _found(store: Store, query: Query) -> AsyncIterator[Orchestration]:
    while found := await store.find(query):
        for recorded in (await store.load([one.run for one in found])).values():
            yield rebuild(recorded)
        query.before_run = found[-1].run
