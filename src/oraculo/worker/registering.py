"""A worker that registers: it says that it is there, what it does and that it goes, and hears when it is drained.

Nothing of this is needed to work. What cannot be said now is said again; the work goes on meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from oraculo import __version__
from oraculo.errors import OraculoError
from oraculo.worker.transport import Job, Transport, WorkerNews

log = structlog.get_logger("oraculo.worker")

FIRST_BEAT_S = 15.0  # until the server has said how often it wants to hear
RETRY_S = 2.0
GOODBYE_TIMEOUT_S = 2.0


@dataclass(slots=True)
class WorkerTraits:
    """What a worker says of itself besides its name and queues. `offers`: it takes only what is offered to it."""

    capabilities: tuple[str, ...] = ()
    resources: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    security_level: str = "INTERNAL"
    offers: bool = False


class Registrar:
    """`running` lists what is being done; `drained` is told when nothing more is to be taken, and when it may be;
    `stopped` is told of the (ticket_id, attempt) whose place a more urgent ticket needs; `offered` begins what is
    offered, and says whether it did; `no_offers` is told when there are none."""

    def __init__(
        self,
        transport: Transport,
        about: dict[str, Any],
        running: Callable[[], list[dict[str, Any]]],
        drained: Callable[[bool], None],
        stopped: Callable[[str, int], None],
        offered: Callable[[Sequence[Job]], Awaitable[bool]],
        no_offers: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._about = about
        self._running = running
        self._drained = drained
        self._stopped = stopped
        self._offered = offered
        self._no_offers = no_offers
        self._registered = False
        self._beat_s = FIRST_BEAT_S

    async def run(self) -> None:
        """Register, and say again and again that the worker is alive, for ever."""
        loop = asyncio.get_running_loop()
        due = 0.0
        while True:
            wait = due - loop.time()
            if wait <= 0:
                due = loop.time() + (self._beat_s if await self._say() else RETRY_S)
                continue
            try:
                told = await self._transport.told(self._about["worker"], wait)
                self._hear(told)
                if told.offers and await self._offered(told.offers):
                    due = 0.0  # what is begun is said at once, or it goes elsewhere
            except (OraculoError, OSError):
                await asyncio.sleep(min(wait, RETRY_S))
            if not self._registered:
                due = 0.0

    async def _say(self) -> bool:
        running = self._running()
        state = {"em_andamento": len(running), "executando": running}
        try:
            if self._registered:
                told = await self._transport.announce("batimento", {"worker": self._about["worker"], **state})
            else:
                told = await self._transport.announce("registro", {**self._about, **state})
                self._registered = True
                log.info("registered", worker=self._about["worker"])
        except (OraculoError, OSError) as error:
            log.warning("cannot register, trying again", error=str(error))
            return False
        if told is not None:
            self._hear(told)
        return self._registered

    def _hear(self, told: WorkerNews) -> None:
        if told.next_s is not None:
            self._beat_s = told.next_s
        if told.register_again:
            self._registered = False
        if told.drain is not None:
            self._drained(told.drain)
        if told.no_offers:
            self._no_offers()
        for ticket_id, attempt in told.stop:
            self._stopped(ticket_id, attempt)

    async def goodbye(self) -> None:
        """Say that the worker goes, if it was ever there."""
        if not self._registered:
            return
        try:
            async with asyncio.timeout(GOODBYE_TIMEOUT_S):
                await self._transport.announce("saida", {"worker": self._about["worker"]})
        except (OraculoError, OSError, TimeoutError) as error:
            log.warning("cannot say goodbye; the lease of this worker ends by itself", error=str(error))


def registration(name: str, queues: list[str], concurrency: int, traits: WorkerTraits) -> dict[str, Any]:
    """What a worker says when it registers."""
    return {
        "worker": name,
        "filas": queues,
        "capacidades": list(traits.capabilities),
        "concorrencia": concurrency,
        "recursos": dict(traits.resources),
        "rotulos": dict(traits.labels),
        "versao": traits.version or f"oraculo {__version__}",
        "host": socket.gethostname(),
        "nivel": traits.security_level,
        "cancelavel": True,
        **({"ofertas": True} if traits.offers else {}),
    }
