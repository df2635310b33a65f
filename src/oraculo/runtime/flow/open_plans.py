"""The plans of Fluxo C that have not ended, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator

from oraculo.core.flow.cognitive import TIPO
from oraculo.core.replay import rebuild
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Status
from oraculo.ports.catalogue import Query
from oraculo.ports.store import Store

PAGE_PLANS = 100


async def open_plans(store: Store) -> AsyncIterator[Orchestration]:
    """Yield the state of every plan that is open, the newest first. Plans that begin meanwhile may be missing."""
    query = Query(status=(Status.PENDENTE, Status.EM_EXECUCAO), tipo=TIPO, limit=PAGE_PLANS)
    while found := await store.find(query):
        for recorded in (await store.load([one.run for one in found])).values():
            yield rebuild(recorded)
        query.before_run = found[-1].run
