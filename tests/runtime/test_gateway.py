"""Leases: messages held for workers over HTTP, and that none is lost whatever the worker does."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson
import pytest

from core.given import RUN, Story, at, plan
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import StoreUnavailableError, UnknownIdError
from oraculo.ports.broker import Outgoing
from oraculo.ports.work import Work
from oraculo.runtime import seen_workers
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.leases import HttpLeases
from oraculo.wire import names, payloads
from runtime.doubles import FailingBroker, ManualClock
from waiting import DEADLINE_S

QUEUE = "escavador_fonte0"


class Desk:
    """A gateway over one orchestration whose orders are published."""

    def __init__(self, broker: FailingBroker, clock: ManualClock, width: int = 1, attempts: int = 3) -> None:
        self.broker = broker
        self.story = Story(plan(width, attempts=attempts))
        self.asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.gateway = HttpLeases(broker, clock, self._state_of)

    async def _state_of(self, run: int) -> Orchestration | None:
        self.asked.set()
        await self.answering.wait()
        return self.story.state if run == RUN else None

    async def publish(self, position: int = 0, attempt: int = 1, queue: str = QUEUE) -> None:
        ((_, message_id, body),) = payloads.orders(self.story.state, [(position, attempt)], at(0))
        await self.broker.publish([Outgoing(queue, body, message_id)])

    async def lease(self, limit: int = 10, wait: float = 0.0, worker: str = "w", **more: object):
        return await self.gateway.lease(QUEUE, limit, wait, worker, **more)


@pytest.fixture
def desk(broker: FailingBroker, clock: ManualClock) -> Desk:
    return Desk(broker, clock)


class TestLease:
    async def test_an_empty_list_when_nothing_came(self, desk: Desk) -> None:
        assert await desk.lease() == []
        assert await desk.lease(wait=0.02) == []

    async def test_a_lease_holds_the_message_until_it_expires(self, desk: Desk, clock: ManualClock) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        assert (lease.ticket, lease.worker, lease.expires_at) == ((ticket_id(RUN, 0), 1), "w", at(30))
        assert await desk.lease() == []
        clock.forward(29.9)
        assert await desk.gateway.sweep() == 0
        clock.forward(0.1)
        assert await desk.gateway.sweep() == 1
        (again,) = await desk.lease(worker="x")
        assert again.delivery.body == lease.delivery.body and again.delivery.redelivered
        assert again.lease_id != lease.lease_id

    async def test_waiting_ends_when_a_message_comes(self, desk: Desk) -> None:
        waiting = asyncio.create_task(desk.lease(wait=60))
        await asyncio.sleep(0)
        await desk.publish()
        async with asyncio.timeout(DEADLINE_S):
            assert len(await waiting) == 1

    async def test_no_more_than_asked_for(self, broker: FailingBroker, clock: ManualClock) -> None:
        desk = Desk(broker, clock, width=5)
        for position in range(5):
            await desk.publish(position)
        assert len(await desk.lease(limit=2)) == 2
        assert len(await desk.lease(limit=100)) == 3

    async def test_what_is_no_order_is_handed_out_too(self, desk: Desk) -> None:
        """Somebody else may use the queue; what it holds is between them and the worker."""
        await desk.broker.publish([Outgoing(QUEUE, b"\xff not json", "x"), Outgoing(QUEUE, b"[" * 5000, "y")])
        leases = await desk.lease()
        assert [lease.ticket for lease in leases] == [None, None]


class TestNotWanted:
    @pytest.mark.parametrize("why", ["answered", "cancelled", "another attempt"])
    async def test_work_that_nobody_needs_is_not_handed_out(self, desk: Desk, why: str) -> None:
        await desk.publish()
        if why == "answered":
            desk.story.ok(0)
        elif why == "cancelled":
            desk.story.cancel()
        else:
            desk.story.fail(0)
            desk.story.wake(5)
        assert await desk.lease() == []
        assert desk.broker.depths()[QUEUE] == (0, 0)

    async def test_a_broker_that_fails_on_it_costs_its_neighbours_nothing(
        self, broker: FailingBroker, clock: ManualClock
    ) -> None:
        desk = Desk(broker, clock, width=3)
        desk.story.ok(1)
        for position in range(3):
            await desk.publish(position)
        broker.settle_failures = 1  # when the middle one is to be done away with
        leases = await desk.lease()
        assert [lease.ticket for lease in leases] == [(ticket_id(RUN, 0), 1), (ticket_id(RUN, 2), 1)]

    async def test_the_wait_goes_on_after_work_that_nobody_needs(
        self, broker: FailingBroker, clock: ManualClock
    ) -> None:
        desk = Desk(broker, clock, width=2)
        desk.story.ok(0)
        await desk.publish(0)
        waiting = asyncio.create_task(desk.lease(wait=60))
        await desk.asked.wait()
        await desk.publish(1)
        async with asyncio.timeout(DEADLINE_S):
            assert [lease.ticket for lease in await waiting] == [(ticket_id(RUN, 1), 1)]

    async def test_still_wanted(self, desk: Desk) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        assert await desk.gateway.still_wanted(lease)
        desk.story.cancel()
        assert not await desk.gateway.still_wanted(lease)


class TestTheWorkerGoesAway:
    async def test_cancelled_while_it_waits(self, desk: Desk) -> None:
        waiting = asyncio.create_task(desk.lease(wait=60))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await desk.publish()
        assert len(await desk.lease()) == 1

    async def test_cancelled_between_taking_and_granting_gives_everything_back(
        self, broker: FailingBroker, clock: ManualClock
    ) -> None:
        desk = Desk(broker, clock, width=3)
        for position in range(3):
            await desk.publish(position)
        desk.answering.clear()
        waiting = asyncio.create_task(desk.lease(wait=60))
        await desk.asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (len(desk.gateway), desk.broker.depths()[QUEUE]) == (0, (3, 0))
        desk.answering.set()
        assert len(await desk.lease()) == 3


class TestAnswered:
    async def test_a_result_settles_the_lease_of_its_ticket(self, desk: Desk, clock: ManualClock) -> None:
        await desk.publish()
        await desk.lease()
        clock.forward(3)
        await desk.gateway.answered(ticket_id(RUN, 0), 1)
        assert (len(desk.gateway), desk.broker.depths()[QUEUE]) == (0, (0, 0))
        seen = desk.gateway.workers["w"]
        assert (seen.leased, seen.answered, seen.last_seen) == (1, 1, at(3))

    async def test_of_that_attempt_only(self, desk: Desk) -> None:
        await desk.publish()
        await desk.lease()
        await desk.gateway.answered(ticket_id(RUN, 0), 2)
        assert len(desk.gateway) == 1
        await desk.gateway.answered(ticket_id(RUN, 0), None)
        assert len(desk.gateway) == 0

    async def test_of_every_lease_of_the_ticket(self, desk: Desk) -> None:
        await desk.publish()
        await desk.publish()
        assert len(await desk.lease()) == 2
        await desk.gateway.answered(ticket_id(RUN, 0), 1)
        assert len(desk.gateway) == 0

    async def test_without_a_lease_it_is_nothing(self, desk: Desk) -> None:
        await desk.gateway.answered("x", 1)

    async def test_results_without_a_ticket_settle_what_needs_no_work_any_more(
        self, broker: FailingBroker, clock: ManualClock
    ) -> None:
        desk = Desk(broker, clock, width=2)
        await desk.publish(0)
        await desk.publish(1)
        await desk.lease()
        desk.story.ok(1)
        await desk.gateway.answered_without_ticket({RUN})
        assert [lease.ticket for lease in desk.gateway._leases.values()] == [(ticket_id(RUN, 0), 1)]

    async def test_a_broker_that_is_away_loses_the_settlement_and_nothing_else(self, desk: Desk) -> None:
        await desk.publish()
        await desk.lease()
        desk.broker.settle_failures = 1
        await desk.gateway.answered(ticket_id(RUN, 0), 1)
        assert len(desk.gateway) == 0


class TestExtendAndRelease:
    async def test_extend(self, desk: Desk, clock: ManualClock) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        clock.forward(20)
        assert desk.gateway.extend(lease.lease_id).expires_at == at(50)
        assert desk.gateway.extend(lease.lease_id, timedelta(seconds=100)).expires_at == at(120)
        clock.forward(50)
        assert await desk.gateway.sweep() == 0

    async def test_release_gives_it_to_somebody_else(self, desk: Desk) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        await desk.gateway.release(lease.lease_id)
        assert len(await desk.lease(worker="x")) == 1

    async def test_release_with_a_delay(self, desk: Desk) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        await desk.gateway.release(lease.lease_id, 0.05)
        assert await desk.lease() == []
        assert len(await desk.lease(wait=5)) == 1

    async def test_a_notice_wants_no_result_and_is_done_when_it_was_used(self, desk: Desk) -> None:
        await desk.broker.publish([Outgoing(QUEUE, b'{"status":"concluida"}', "x")])
        await desk.publish()
        notice, order = await desk.lease()
        assert await desk.gateway.done(notice.lease_id) is True
        assert await desk.gateway.done(order.lease_id) is False
        assert (len(desk.gateway), desk.broker.depths()[QUEUE]) == (1, (0, 1))
        with pytest.raises(UnknownIdError):
            await desk.gateway.done(notice.lease_id)

    @pytest.mark.parametrize("how", ["unknown", "released", "answered", "expired"])
    async def test_a_lease_that_is_over_is_unknown(self, desk: Desk, clock: ManualClock, how: str) -> None:
        await desk.publish()
        (lease,) = await desk.lease()
        identity = lease.lease_id
        if how == "unknown":
            identity = "nope"
        elif how == "released":
            await desk.gateway.release(identity)
        elif how == "answered":
            await desk.gateway.answered(ticket_id(RUN, 0), 1)
        else:
            clock.forward(31)
            await desk.gateway.sweep()
        with pytest.raises(UnknownIdError, match="no lease"):
            desk.gateway.extend(identity)
        with pytest.raises(UnknownIdError, match="no lease"):
            await desk.gateway.release(identity)


async def test_who_is_seen_and_what_they_hold(broker: FailingBroker, clock: ManualClock) -> None:
    desk = Desk(broker, clock, width=3)
    for position in range(3):
        await desk.publish(position)
    await desk.lease(limit=2, worker="a")
    await desk.lease(limit=2, worker="b")
    await desk.gateway.lease("executador_x", 1, 0, "b")
    assert desk.gateway.load() == {"a": 2, "b": 1}
    assert desk.gateway.workers["b"].queues == {QUEUE, "executador_x"}
    clock.forward(seen_workers.FORGOTTEN_AFTER.total_seconds() + 1)
    await desk.gateway.sweep()
    assert desk.gateway.workers == {} and desk.gateway.load() == {}


async def test_made_up_names_do_not_fill_the_memory(broker: FailingBroker, clock: ManualClock) -> None:
    gateway = HttpLeases(broker, clock, _nothing)
    for number in range(3 * seen_workers.WORKERS_MAX):
        gateway.saw(f"w{number}", f"q{number}")
    for number in range(3 * seen_workers.WORKER_MAX_QUEUES):
        for worker in range(300):
            gateway.saw(f"w{worker}", f"q{number}")
    assert len(gateway.workers) == seen_workers.WORKERS_MAX
    assert max(len(seen.queues) for seen in gateway.workers.values()) <= seen_workers.WORKER_MAX_QUEUES
    assert sum(len(seen.queues) for seen in gateway.workers.values()) == seen_workers.QUEUES_REMEMBERED_MAX
    assert await gateway.lease("escavador_x", 1, 0, "one more") == []  # it is served all the same
    clock.forward(seen_workers.FORGOTTEN_AFTER.total_seconds() + 1)
    await gateway.sweep()
    gateway.saw("later", "q")
    assert [(seen.name, seen.queues) for seen in gateway.workers.values()] == [("later", {"q"})]


class TestOverTheBroker:
    def answer(self, payload: dict[str, object], **more: object) -> Work:
        message = {
            "correlation_id": "x",
            "tipo_evento": "resultado_coleta",
            "payload": payload,
            "timestamp": "2025-10-14T12:00:00Z",
            **more,
        }
        return AnswerReader()(orjson.dumps(message), names.RESULTS)

    def test_who_answers_is_known(self, clock: ManualClock) -> None:
        gateway = HttpLeases(FailingBroker(), clock, _nothing)
        for _ in range(3):
            gateway.heard(self.answer({"fonte": "blog", "dados": 1}, worker="maria"))
        gateway.heard(self.answer({"fonte": "rss", "dados": 1}, worker="maria"))
        gateway.heard(self.answer({"fonte": "blog", "dados": 1}))
        gateway.heard(self.answer({"fonte": "b" * 100_000, "dados": 1}, worker="maria"))
        gateway.heard(self.answer({"dados": 1}))
        gateway.heard(AnswerReader()(b"?", names.RESULTS))
        seen = {one.name: (sorted(one.queues), one.answered, one.over) for one in gateway.workers.values()}
        assert seen == {
            "maria": (["escavador_blog", "escavador_rss"], 4, "broker"),
            "(escavador_blog)": (["escavador_blog"], 1, "broker"),
        }

    async def test_a_worker_is_placed_once_the_store_is_back(self, desk: Desk, clock: ManualClock) -> None:
        away = True

        async def state_of(run: int) -> Orchestration | None:
            if away:
                raise StoreUnavailableError("away")
            return desk.story.state if run == RUN else None

        gateway = HttpLeases(desk.broker, clock, state_of)
        gateway.heard(self.answer({"dados": 1}, ticket_id=ticket_id(RUN, 0), worker="maria"))
        for _ in range(2):
            assert await gateway.sweep() == 0
            assert gateway.workers == {}
        away = False
        for _ in range(2):
            await gateway.sweep()
            assert {one.name: (one.queues, one.answered) for one in gateway.workers.values()} == {"maria": ({QUEUE}, 1)}

    @pytest.mark.parametrize("name", [7, "", "a" * 129, "a\nb", None, ["x"]])
    def test_a_name_that_is_none(self, name: object) -> None:
        assert self.answer({"fonte": "blog", "dados": 1}, worker=name).worker == ""


async def _nothing(_run: int) -> None:
    return None
