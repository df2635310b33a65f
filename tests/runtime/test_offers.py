"""Workers of a broker get what was chosen for them, begin it in time, or it goes elsewhere: on a virtual clock, with
the workers that people write."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from oraculo.core.access import LOCAL, Scope
from oraculo.core.events import TicketAllocated, TicketWithdrawn
from oraculo.core.tenants import DEFAULT_TENANT
from oraculo.core.vocabulary import Cause, Status
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from oraculo.ports.singleton_roles import SingletonRoles
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.scheduler.offers import BrokerOffers
from oraculo.runtime.worker_control import WorkerControl
from oraculo.runtime.workers import IDLE_LOOK_INTERVAL_S
from oraculo.simulation.loop import EPOCH, VirtualLoop
from oraculo.wire import names
from oraculo.wire.control_messages import control
from oraculo.wire.offers import note_of
from oraculo.worker.worker import BrokerTransport, Worker
from runtime.scheduling import QUEUE, Shop, shop, virtually

OFFER_S = 4.0


@dataclass
class Market:
    """A shop that makes offers."""

    shop: Shop
    offers: BrokerOffers | None
    did: list[tuple[str, float]] = field(default_factory=list)  # worker, when it began
    running: list[tuple[Worker, asyncio.Task[None]]] = field(default_factory=list)

    def hire(self, name: str, *, takes_s: float = 1.0, concurrency: int = 1, offers: bool = True) -> Worker:
        """Start a worker of the SDK."""
        worker = Worker(name=name, concurrency=concurrency, patience=1.0)

        @worker.collector("a")
        async def a(params: dict[str, Any]) -> list[Any]:
            self.did.append((name, asyncio.get_running_loop().time()))
            await asyncio.sleep(takes_s)
            return [params]

        transport = BrokerTransport(self.shop.broker)
        task = asyncio.create_task(worker.run(transport, register=True, offers=offers))
        self.running.append((worker, task))
        return worker

    async def announce(self, name: str, kind: str = "registro", **said: Any) -> None:
        """As a worker that is no program of ours."""
        if kind == "registro":
            said = {"filas": [QUEUE], "fila_propria": names.worker_queue(name), "ofertas": True, **said}
        await self.shop.broker.publish([Outgoing(names.WORKERS, control(kind, name, said), "")])

    async def offered(self, name: str, wait: float = 30.0) -> list[Delivery]:
        """What comes to a worker's own queue."""
        found = await self.shop.broker.fetch(names.worker_queue(name), limit=10, wait=wait)
        await self.shop.broker.settle([Settlement(one) for one in found])
        return found

    async def begin(self, name: str, *orders: Delivery) -> None:
        bodies = [orjson.loads(order.body) for order in orders]
        running = [{"ticket_id": body["ticket_id"], "tentativa": body["tentativa"]} for body in bodies]
        await self.announce(name, "batimento", executando=running)

    @property
    def shares(self) -> Counter[str]:
        return Counter(name for name, _ in self.did)


class Alone:
    """The roles of a store that nobody else is on."""

    async def claim_duty(self, name: str) -> str:
        return ""

    async def note_duty(self, name: str, note: str) -> None: ...


@asynccontextmanager
async def market(
    *, offers: bool = True, timeout_s: float = 30.0, roles: SingletonRoles | None = None
) -> AsyncIterator[Market]:
    async with shop(timeout_s=timeout_s) as opened:
        scheduler, made = opened.scheduler, None
        if offers:
            scheduler.workers.offers = True
            submit = opened.engine.submit
            made = scheduler.offers = BrokerOffers(
                opened.leases,
                scheduler,
                opened.broker,
                opened.clock,
                opened.engine.state,
                submit,
                offer_s=OFFER_S,
                roles=roles,
            )
        opened.registry.tenants.add(DEFAULT_TENANT)
        consumers = QueueConsumers(opened.broker, opened.engine, opened.leases.heard, hears_inside=True)
        consumers.answers(names.RESULTS, AnswerReader(None), scope=Scope.RESULT_WRITE, plain=True)
        desk = WorkerControl(opened.registry, opened.broker, opened.engine.submit, offers=offers)
        consumers.commands(names.WORKERS, desk.from_message, desk.take, scope=Scope.RESULT_WRITE)
        consumers.start(dead_letters=False)
        opening = Market(opened, made)
        try:
            yield opening
        finally:
            for worker, _ in opening.running:
                worker.stop()
            await asyncio.gather(*(task for _, task in opening.running), return_exceptions=True)
            await consumers.stop()


async def _allocated(one: Shop, name: str) -> list[tuple[str, int]]:
    events = await one.events(name)
    return [(event.allocation.agent_id, event.attempt) for event in events if isinstance(event, TicketAllocated)]


async def _withdrawn(one: Shop, name: str) -> list[TicketWithdrawn]:
    return [event for event in await one.events(name) if isinstance(event, TicketWithdrawn)]


def test_workers_of_a_broker_are_chosen_and_the_slow_one_gets_little() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            for name, takes_s in (("rapido-1", 1.0), ("rapido-2", 1.0), ("lento", 10.0)):
                here.hire(name, takes_s=takes_s)
            await here.shop.submit(60, correlation_id="r")
            await here.shop.ended("r")
            state = await here.shop.state("r")
            assert {ticket.status for ticket in state.tickets} == {Status.CONCLUIDA}
            assert all(ticket.attempt == 1 for ticket in state.tickets)
            chosen = Counter(name for name, _ in await _allocated(here.shop, "r"))
            assert here.shares == chosen and here.shares.total() == 60
            assert here.shares["lento"] < 0.15 * 60
            assert here.shop.broker.depths()[QUEUE] == (0, 0), "every message of the common queue is done with"
            assert here.shop.leases.all() == []

    virtually(story)


def test_an_offer_that_is_not_begun_is_withdrawn_and_goes_to_the_next_worker() -> None:
    async def story(virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("mudo")
            await here.shop.submit(1, correlation_id="r")
            (order,) = await here.offered("mudo")
            note = note_of(order.headers)
            assert note is not None and note.queue == QUEUE
            assert (note.length_s, note.made_at.timestamp()) == (
                OFFER_S,
                pytest.approx(EPOCH + virtual.time(), abs=0.1),
            )
            here.hire("outro")
            await here.shop.ended("r")
            assert here.did[0][0] == "outro" and here.did[0][1] < OFFER_S + 4
            assert await _allocated(here.shop, "r") == [("mudo", 1), ("outro", 2)]
            (gone,) = await _withdrawn(here.shop, "r")
            assert (gone.cause, gone.worker, gone.wait) == (Cause.OFERTA_VENCIDA, "mudo", None)
            ticket = (await here.shop.state("r")).tickets[0]
            assert (ticket.status, ticket.attempt, ticket.used) == (Status.CONCLUIDA, 2, 1)
            assert here.offers is not None and (here.offers.counts.lapsed, here.offers.counts.taken) == (1, 1)

    virtually(story)


@pytest.mark.parametrize("roles", [None, Alone()], ids=["one process", "a shared store"])
def test_nobody_begins_what_was_offered_to_another(roles: SingletonRoles | None) -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market(roles=roles) as here:
            await here.announce("mentiroso", ofertas=False)
            await asyncio.sleep(IDLE_LOOK_INTERVAL_S + 1)  # from now on heartbeats are stored every second
            await here.announce("mudo")
            await here.shop.submit(1, correlation_id="r")
            (order,) = await here.offered("mudo")
            await here.begin("mentiroso", order)
            here.hire("outro")
            await here.shop.ended("r")
            (gone,) = await _withdrawn(here.shop, "r")
            assert (gone.cause, gone.worker) == (Cause.OFERTA_VENCIDA, "mudo")
            assert [name for name, _ in here.did] == ["outro"]

    virtually(story)


def test_an_offer_that_was_begun_in_time_stays_with_its_worker_as_long_as_it_takes() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("calmo")
            await here.shop.submit(1, correlation_id="r")
            (order,) = await here.offered("calmo")
            await here.begin("calmo", order)
            here.hire("outro")
            await asyncio.sleep(5 * OFFER_S)
            assert here.did == [] and await _withdrawn(here.shop, "r") == []
            assert here.shop.broker.depths()[QUEUE] == (0, 0), "its message is done with: the worker has it"

    virtually(story)


def test_a_worker_that_dies_with_what_it_began_loses_it_at_the_end_of_its_lease() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market(timeout_s=10.0) as here:
            await here.announce("morto")
            await here.shop.submit(1, correlation_id="r")
            (order,) = await here.offered("morto")
            await here.begin("morto", order)
            await asyncio.sleep(1.0)
            here.hire("outro")
            await here.shop.ended("r")
            (gone,) = await _withdrawn(here.shop, "r")
            assert (gone.cause, gone.worker) == (Cause.REALOCADO, "morto")
            assert here.did[0][0] == "outro" and here.did[0][1] < 10 + IDLE_LOOK_INTERVAL_S + OFFER_S

    virtually(story)


def test_a_good_answer_to_an_offer_that_lapsed_counts_once() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("tardio")
            await here.shop.submit(1, correlation_id="r")
            (order,) = await here.offered("tardio")
            await asyncio.sleep(OFFER_S + 1)
            assert len(await _withdrawn(here.shop, "r")) == 1
            body = orjson.loads(order.body)
            payload = {"fonte": "a", "status": "ok", "dados": 7, "erros": []}
            said = {key: body[key] for key in ("correlation_id", "ticket_id", "tentativa", "timestamp")}
            answer = orjson.dumps({**said, "tipo_evento": "resultado_coleta", "payload": payload})
            await here.shop.broker.publish([Outgoing(names.RESULTS, answer, "")])
            await here.shop.ended("r")
            ticket = (await here.shop.state("r")).tickets[0]
            assert (ticket.status, ticket.dados) == (Status.CONCLUIDA, b"7")
            here.hire("outro")
            await asyncio.sleep(3 * OFFER_S)
            assert here.did == [], "the next attempt is of no use any more"

    virtually(story)


def test_no_worker_is_offered_more_than_it_has_room_for() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("dois", concorrencia=2)
            await here.shop.submit(5, correlation_id="r")
            found = await here.offered("dois")
            await asyncio.sleep(1.0)
            found += await here.offered("dois", wait=0.1)
            assert len(found) == 2

    virtually(story)


def test_a_worker_that_begins_nothing_is_left_alone_for_longer_and_longer() -> None:
    async def story(virtual: VirtualLoop) -> None:
        async with market(timeout_s=3600.0) as here:
            await here.announce("mudo")
            await here.shop.submit(1, correlation_id="r")
            came: list[float] = []
            while len(came) < 4:
                if await here.offered("mudo", wait=600):
                    came.append(virtual.time())
            pauses = [after - before for before, after in itertools.pairwise(came)]
            assert pauses[0] < pauses[1] < pauses[2]

    virtually(story)


def test_an_operator_who_drains_a_worker_ends_its_offers() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            here.hire("um")
            await here.shop.submit(1, correlation_id="a")
            await here.shop.ended("a")
            assert await here.shop.registry.drain("um", "manutenção", LOCAL)
            await asyncio.sleep(2.0)
            await here.shop.submit(1, correlation_id="b")
            await asyncio.sleep(3 * OFFER_S)
            assert here.shares == {"um": 1} and await _allocated(here.shop, "b") == []
            assert await here.shop.registry.resume("um", "pronto", LOCAL)
            await here.shop.ended("b")
            assert here.shares == {"um": 2}

    virtually(story)


def test_plain_workers_take_from_the_common_queue_beside_it() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("cheio", concorrencia=1)
            await here.shop.submit(1, correlation_id="a")
            (order,) = await here.offered("cheio")
            await here.begin("cheio", order)
            here.hire("comum", offers=False)
            await here.shop.submit(3, correlation_id="b")
            await here.shop.ended("b")
            assert here.shares == {"comum": 3}

    virtually(story)


def test_a_worker_that_waits_where_nothing_is_offered_is_told_and_takes_what_comes() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market(offers=False) as here:
            here.hire("um")
            await here.shop.submit(2, correlation_id="r")
            await here.shop.ended("r")
            assert here.shares == {"um": 2} and await _allocated(here.shop, "r") == []

    virtually(story)


def test_a_worker_begins_again_what_it_had_also_where_it_has_less_room() -> None:
    async def story(_virtual: VirtualLoop) -> None:
        async with market() as here:
            await here.announce("velho", concorrencia=2)
            await here.shop.submit(2, correlation_id="r")
            broker, own = here.shop.broker, names.worker_queue("velho")
            orders: list[Delivery] = []
            while len(orders) < 2:
                orders += await broker.fetch(own, limit=2, wait=30)
            await here.begin("velho", *orders)
            await asyncio.sleep(3 * OFFER_S)
            await broker.redeliver(own)  # its process died, and is started again under the same name
            here.hire("velho", concurrency=1)
            await here.shop.ended("r")
            assert here.shares == {"velho": 2} and await _withdrawn(here.shop, "r") == []

    virtually(story)
