"""Deeds: messages and notices go out, are tried again until they arrive, and their outcome comes back as commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, cast

import pytest

from core.given import RUN, Story, coleta, plan
from oraculo.core.commands import ConfirmDispatch, RecordDelivery, RecordResult
from oraculo.core.effects import owed_effects
from oraculo.core.plan import Task
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import StoreUnavailableError
from oraculo.ports.broker import BrokerTraits, Delivery, Outgoing, PublishReport, Refusal, Settlement
from oraculo.ports.notifier import Outcome, Receipt
from oraculo.ports.store import Store
from oraculo.ports.work import Work
from oraculo.runtime.effects import postponed
from oraculo.runtime.effects.fair_queue import SHARE_MAX_ORDERS
from oraculo.runtime.effects.publisher import BATCH_MAX_BYTES
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.wire.orders import OrderWriter
from runtime.doubles import FailingBroker, ManualClock, RecordingNotifier
from waiting import DEADLINE_S, until


class Results:
    """The one thing that the runner asks of a store."""

    shared = False

    def __init__(self, result: Callable[[int], Awaitable[bytes | None]]) -> None:
        self.result = result


class Desk:
    """An effect runner that runs, and what it reported."""

    def __init__(self, broker: FailingBroker, clock: ManualClock) -> None:
        self.broker = broker
        self.notifier = RecordingNotifier()
        self.reports: list[Work] = []
        self.results: dict[int, bytes] = {RUN: b'{"status":"concluida"}'}
        self.store_failures = 0
        self.ports = KernelPorts(cast(Store, Results(self._result_of)), broker, clock, self.notifier)
        self.runner = EffectRunner(self.ports, KernelOptions(), self._report)

    def _report(self, works: list[Work]) -> None:
        self.reports += works

    async def _result_of(self, run: int) -> bytes | None:
        if self.store_failures:
            self.store_failures -= 1
            raise StoreUnavailableError("away")
        return self.results.get(run)

    @property
    def deliveries(self) -> list[RecordDelivery]:
        return [work.command for work in self.reports if isinstance(work.command, RecordDelivery)]

    @property
    def confirmed(self) -> list[tuple[int, int]]:
        return sorted(t for w in self.reports if isinstance(w.command, ConfirmDispatch) for t in w.command.tickets)


@pytest.fixture
async def desk(broker: FailingBroker, clock: ManualClock) -> AsyncIterator[Desk]:
    desk = Desk(broker, clock)
    running = asyncio.create_task(desk.runner.run())
    yield desk
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await desk.runner.close()


class TestPublish:
    async def test_every_order_is_published_and_its_confirmation_reported(self, desk: Desk) -> None:
        story = Story(plan(3))
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) == 3)
        assert desk.confirmed == [(0, 1), (1, 1), (2, 1)]
        assert {work.run for work in desk.reports} == {RUN}
        for position in range(3):
            (delivery,) = await desk.broker.fetch(f"escavador_fonte{position}", limit=5, wait=0)
            assert json.loads(delivery.body)["ticket_id"] == ticket_id(RUN, position)
        assert desk.runner.backlog().published == 3

    async def test_a_broker_that_is_away_is_tried_again_with_the_same_message(self, desk: Desk) -> None:
        story = Story(plan(1))
        desk.broker.failures = 2
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) == 1)
        (delivery,) = await desk.broker.fetch("escavador_fonte0", limit=5, wait=0)
        assert json.loads(delivery.body)["message_id"] == f"{ticket_id(RUN, 0)}.1"
        assert desk.runner.backlog().failing_since is None and desk.runner.backlog().published == 1

    async def test_it_says_since_when_it_fails(self, desk: Desk, clock: ManualClock) -> None:
        story = Story(plan(1))
        desk.broker.failures = 10**9
        desk.runner.take(story.state, story.started.effects)
        async with asyncio.timeout(DEADLINE_S):
            await desk.broker.refused.wait()
            await asyncio.sleep(0)
        assert desk.runner.backlog().failing_since == clock.now()
        assert desk.confirmed == []
        desk.broker.failures = 0
        await until(lambda: len(desk.confirmed) == 1)

    async def test_the_same_message_taken_twice_is_reported_in_a_way_that_the_core_counts_once(
        self, desk: Desk
    ) -> None:
        story = Story(plan(2))
        desk.runner.take(story.state, story.started.effects)
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.confirmed) == 4)
        for work in desk.reports:
            story.do(work.command)
        assert story.wake(30).state.open == 0
        assert story.statuses == ["timeout", "timeout"]

    async def test_waiting_counts_what_is_not_reported_yet(self, desk: Desk) -> None:
        story = Story(plan(2))
        assert desk.runner.backlog().waiting == 0
        desk.runner.take(story.state, story.started.effects)
        assert desk.runner.backlog().waiting == 2
        await until(lambda: bool(desk.confirmed))
        assert desk.runner.backlog().waiting == 0


async def test_an_adapter_that_is_at_fault_costs_no_message(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    publish, faults = desk.broker.publish, [RuntimeError("a bug"), KeyError("another")]

    async def faulty(messages: Sequence[Outgoing]) -> PublishReport:
        if faults:
            raise faults.pop()
        return await publish(messages)

    monkeypatch.setattr(desk.broker, "publish", faulty)
    monkeypatch.setattr(desk.broker, "traits", BrokerTraits())
    story = Story(plan(2))
    desk.runner.take(story.state, story.started.effects)
    await until(lambda: len(desk.confirmed) == 2)
    assert not faults and desk.runner.backlog().failing_since is None and desk.runner.backlog().waiting == 0


class TestSomeOfThem:
    """A publish that failed for some messages only."""

    def failing(self, desk: Desk, **told: object) -> list[list[Outgoing]]:
        """The next publish fails as told; `first` says of how many messages at the head."""
        seen: list[list[Outgoing]] = []
        publish = desk.broker.publish

        async def once(messages: Sequence[Outgoing]) -> PublishReport:
            seen.append(list(messages))
            desk.broker.publish = publish
            count = int(str(told.get("first", 1)))
            if told.get("refused"):
                await publish(messages[count:])
                return PublishReport(refused=[Refusal(message, "larger than 1 MiB") for message in messages[:count]])
            await publish(messages[count:])
            some = messages[:count]
            return PublishReport(no_queue=some) if told.get("no_queue") else PublishReport(some, reason="some")

        desk.broker.publish = once
        return seen

    async def test_confirmed_ones_are_not_sent_again(self, desk: Desk) -> None:
        story = Story(plan(3))
        self.failing(desk)
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) == 3)
        for position in range(3):
            assert len(await desk.broker.fetch(f"escavador_fonte{position}", limit=5, wait=0)) == 1

    async def test_one_that_waits_for_its_queue_holds_up_no_other(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(postponed, "POSTPONE_S", 0.05)
        story = Story(plan(3))
        self.failing(desk, no_queue=True)
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) >= 2)
        assert desk.runner.backlog().failing_since is None
        await until(lambda: len(desk.confirmed) == 3)
        assert desk.runner.backlog().waiting == 0

    async def test_one_whose_ticket_is_closed_meanwhile_is_not_sent(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(postponed, "POSTPONE_S", 0.05)
        monkeypatch.setattr(desk.broker, "traits", BrokerTraits())
        story = Story(plan(2))
        self.failing(desk, no_queue=True)

        async def second_only(
            run: int, tickets: Sequence[tuple[int, int]], *, running_too: bool
        ) -> Sequence[tuple[int, int]]:
            return [one for one in tickets if one[0] == 1]

        desk.runner._filter_owed = second_only
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: not desk.runner.backlog().waiting)
        assert desk.confirmed == [(1, 1)]
        assert await desk.broker.fetch("escavador_fonte0", limit=5, wait=0) == []

    async def test_one_that_no_broker_will_ever_take_fails_its_ticket(self, desk: Desk) -> None:
        story = Story(plan(2))
        self.failing(desk, refused=True)
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) == 1 and len(desk.reports) == 2)
        (failed,) = [work.command for work in desk.reports if isinstance(work.command, RecordResult)]
        assert (failed.ok, failed.definitivo, failed.ticket, failed.attempt) == (False, True, ticket_id(RUN, 0), 1)
        assert "larger than 1 MiB" in str(failed.erros)
        story.do(failed)
        assert story.statuses[0] == "erro"


def large(count: int, size: int) -> list[Task]:
    return [coleta("grande", parametros=b'{"texto":"%s"}' % (b"x" * size)) for _ in range(count)]


class TestFairShares:
    async def test_a_wide_run_does_not_hold_up_another(self, desk: Desk) -> None:
        """The orders of one run need more than the broker holds; another run goes through, and the first in parts."""
        desk.broker._capacity = 40_000
        wide, small = Story(plan(large(200, 1000))), Story(plan(1), run=RUN + 1)
        desk.runner.take(wide.state, wide.started.effects)
        desk.runner.take(small.state, small.started.effects)
        await until(lambda: RUN + 1 in {work.run for work in desk.reports})
        assert desk.runner.backlog().failing_since is None
        taken: list[Delivery] = []
        while len(taken) < 200:
            assert desk.broker.depths()["escavador_grande"][0] <= 20
            some = await desk.broker.fetch("escavador_grande", limit=50, wait=DEADLINE_S)
            taken += some
            await desk.broker.settle([Settlement(delivery) for delivery in some])
        assert len({delivery.body for delivery in taken}) == 200

    async def test_runs_take_turns(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[str] = []
        publish = desk.broker.publish

        async def watched(messages: Sequence[Outgoing]) -> PublishReport:
            seen.extend(json.loads(message.body)["correlation_id"] for message in messages)
            return await publish(messages)

        monkeypatch.setattr(desk.broker, "publish", watched)
        wide, small = Story(plan(300)), Story(plan(1), run=RUN + 1, correlation_id="pequena")
        desk.runner.take(wide.state, wide.started.effects)
        desk.runner.take(small.state, small.started.effects)
        await until(lambda: len(seen) == 301)
        assert seen.index("pequena") == SHARE_MAX_ORDERS

    async def test_tenants_take_turns_however_many_runs_they_have(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[str] = []
        publish = desk.broker.publish

        async def watched(messages: Sequence[Outgoing]) -> PublishReport:
            seen.extend(json.loads(message.body)["correlation_id"] for message in messages)
            return await publish(messages)

        monkeypatch.setattr(desk.broker, "publish", watched)
        runs = [("espaco_a.x", 60), *((f"espaco_a.{number}", 3) for number in range(40)), ("espaco_b.y", 2)]
        for number, (name, count) in enumerate(runs):
            story = Story(plan(count), run=RUN + number, correlation_id=name)
            desk.runner.take(story.state, story.started.effects)
        assert [one.run - RUN for one in desk.runner._publisher._owed.upcoming(53)] == [*[0] * 50, 41, 41, 1]
        await until(lambda: len(seen) == 182)
        assert seen.index("y") == SHARE_MAX_ORDERS

    async def test_orders_that_wait_are_not_written_yet(self, desk: Desk) -> None:
        written: list[int] = []
        write = desk.ports.writer.write

        class Counting(OrderWriter):
            def write(self, *args: Any) -> Iterator[Outgoing]:
                for message in write(*args):
                    written.append(len(message.body))
                    yield message

        desk.runner._writer = Counting()
        desk.broker.failures = 10**9
        story = Story(plan(large(50, 1024 * 1024)))
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: bool(desk.runner.backlog().failing_since))
        assert sum(written) < BATCH_MAX_BYTES + 2 * 1024 * 1024

    async def test_an_order_that_can_never_fit_fails_its_ticket(self, desk: Desk) -> None:
        desk.broker._capacity = 5000
        story = Story(plan(large(1, 6000)))
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: bool(desk.reports))
        (failed,) = [work.command for work in desk.reports if isinstance(work.command, RecordResult)]
        assert failed.definitivo and "5000" in str(failed.erros)

    async def test_an_order_that_cannot_be_written_fails_its_ticket(self, desk: Desk) -> None:
        write = desk.ports.writer.write

        class Faulty(OrderWriter):
            def write(self, state: Orchestration, tickets: Iterable[tuple[int, int]], now: datetime) -> Any:
                for one in tickets:
                    if one[0] == 1:
                        raise ValueError("a field that Avro does not have")
                    yield from write(state, [one], now)

        desk.runner._writer = Faulty()
        story = Story(plan(3))
        desk.runner.take(story.state, story.started.effects)
        await until(lambda: len(desk.confirmed) == 2)
        (failed,) = [work.command for work in desk.reports if isinstance(work.command, RecordResult)]
        assert failed.ticket == ticket_id(RUN, 1) and "a field that Avro does not have" in str(failed.erros)


class TestNotices:
    def ended(self, **targets: str) -> Story:
        story = Story(plan(1, **targets))
        story.ok(0)
        return story

    async def test_a_webhook(self, desk: Desk) -> None:
        story = self.ended(webhook="https://example.com/x")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        (notice,) = desk.notifier.notices
        assert (notice.url, notice.body) == ("https://example.com/x", b'{"status":"concluida"}')
        assert desk.deliveries == [RecordDelivery(0, 1, True, False, "200")]

    async def test_every_try_has_the_same_id(self, desk: Desk) -> None:
        desk.notifier.receipts = [Receipt(Outcome.RETRY, "503", 503)]
        story = self.ended(webhook="https://example.com/x")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        story.do(desk.deliveries[0])
        story.wake(10)
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 2)
        first, second = desk.notifier.notices
        assert first == second and first.webhook_id
        assert [(d.delivered, d.final, d.attempt) for d in desk.deliveries] == [(False, False, 1), (True, False, 2)]

    async def test_a_refusal_is_final(self, desk: Desk) -> None:
        desk.notifier.receipts = [Receipt(Outcome.REFUSED, "410", 410)]
        story = self.ended(webhook="https://example.com/x")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        assert (desk.deliveries[0].delivered, desk.deliveries[0].final) == (False, True)

    async def test_a_queue(self, desk: Desk) -> None:
        story = self.ended(fila="avisos")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        (delivery,) = await desk.broker.fetch("avisos", limit=5, wait=0)
        assert delivery.body == b'{"status":"concluida"}' and desk.deliveries[0].delivered

    async def test_a_queue_whose_broker_is_away_is_tried_again_later(self, desk: Desk) -> None:
        desk.broker.failures = 1
        story = self.ended(fila="avisos")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        assert (desk.deliveries[0].delivered, desk.deliveries[0].final) == (False, False)

    async def test_a_store_that_is_away_is_waited_for(self, desk: Desk) -> None:
        desk.store_failures = 2
        story = self.ended(fila="avisos")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        assert desk.deliveries[0].delivered

    async def test_a_result_that_was_pruned_gives_up(self, desk: Desk) -> None:
        desk.results.clear()
        story = self.ended(webhook="https://example.com/x")
        desk.runner.take(story.state, owed_effects(story.state))
        await until(lambda: len(desk.deliveries) == 1)
        assert desk.deliveries[0].final and desk.notifier.notices == []

    async def test_without_a_notifier_it_is_refused(self, broker: FailingBroker, clock: ManualClock) -> None:
        reports: list[Work] = []
        told = asyncio.Event()

        def report(works: list[Work]) -> None:
            reports.extend(works)
            told.set()

        async def result_of(run: int) -> bytes:
            return b"{}"

        ports = KernelPorts(cast(Store, Results(result_of)), broker, clock)
        runner = EffectRunner(ports, KernelOptions(), report)
        story = self.ended(webhook="https://example.com/x")
        runner.take(story.state, owed_effects(story.state))
        await told.wait()
        assert reports[0].command.final

    async def test_a_notice_that_is_no_longer_owed_is_not_sent(self, desk: Desk) -> None:
        story = self.ended(fila="avisos")
        effects = owed_effects(story.state)
        story.told(0, 1, delivered=True)
        desk.runner.take(story.state, effects)
        assert desk.runner.backlog().waiting == 0
