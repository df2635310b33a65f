"""Deeds: messages and notices go out, are tried again until they arrive, and their outcome comes back as commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from core.given import RUN, Story, plan
from oraculo.core.commands import ConfirmDispatch, RecordDelivery, RecordResult
from oraculo.core.effects import owed_effects
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import BrokerUnavailableError, StoreUnavailableError
from oraculo.ports.broker import Outgoing
from oraculo.ports.notifier import Outcome, Receipt
from oraculo.runtime import perform
from oraculo.runtime.perform import Performer
from oraculo.runtime.work import Work
from runtime.doubles import FailingBroker, ManualClock, RecordingNotifier


class Desk:
    """A performer that runs, and what it reported."""

    def __init__(self, broker: FailingBroker, clock: ManualClock) -> None:
        self.broker = broker
        self.notifier = RecordingNotifier()
        self.reports: list[Work] = []
        self.results: dict[int, bytes] = {RUN: b'{"status":"concluida"}'}
        self.store_failures = 0
        self._news = asyncio.Event()
        self.performer = Performer(broker, self.notifier, clock, self._report, self._result_of)

    def _report(self, works: list[Work]) -> None:
        self.reports += works
        self._news.set()

    async def _result_of(self, run: int) -> bytes | None:
        if self.store_failures:
            self.store_failures -= 1
            raise StoreUnavailableError("away")
        return self.results.get(run)

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not enough():
                self._news.clear()
                await self._news.wait()

    @property
    def deliveries(self) -> list[RecordDelivery]:
        return [work.command for work in self.reports if isinstance(work.command, RecordDelivery)]

    @property
    def confirmed(self) -> list[tuple[int, int]]:
        return sorted(t for w in self.reports if isinstance(w.command, ConfirmDispatch) for t in w.command.tickets)


@pytest.fixture
async def desk(broker: FailingBroker, clock: ManualClock) -> AsyncIterator[Desk]:
    desk = Desk(broker, clock)
    running = asyncio.create_task(desk.performer.run())
    yield desk
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await desk.performer.close()


class TestPublish:
    async def test_every_order_is_published_and_its_confirmation_reported(self, desk: Desk) -> None:
        story = Story(plan(3))
        desk.performer.take(story.state, story.started.effects)
        await desk.until(lambda: len(desk.confirmed) == 3)
        assert desk.confirmed == [(0, 1), (1, 1), (2, 1)]
        assert {work.run for work in desk.reports} == {RUN}
        for position in range(3):
            (delivery,) = await desk.broker.fetch(f"escavador_fonte{position}", limit=5, wait=0)
            assert json.loads(delivery.body)["ticket_id"] == ticket_id(RUN, position)
        assert desk.performer.published == 3

    async def test_a_broker_that_is_away_is_tried_again_with_the_same_message(self, desk: Desk) -> None:
        story = Story(plan(1))
        desk.broker.failures = 2
        desk.performer.take(story.state, story.started.effects)
        await desk.until(lambda: len(desk.confirmed) == 1)
        (delivery,) = await desk.broker.fetch("escavador_fonte0", limit=5, wait=0)
        assert json.loads(delivery.body)["message_id"] == f"{ticket_id(RUN, 0)}.1"
        assert desk.performer.failing_since is None and desk.performer.published == 1

    async def test_it_says_since_when_it_fails(self, desk: Desk, clock: ManualClock) -> None:
        story = Story(plan(1))
        desk.broker.failures = 10**9
        desk.performer.take(story.state, story.started.effects)
        async with asyncio.timeout(5):
            await desk.broker.refused.wait()
            await asyncio.sleep(0)
        assert desk.performer.failing_since == clock.now()
        assert desk.confirmed == []
        desk.broker.failures = 0
        await desk.until(lambda: len(desk.confirmed) == 1)

    async def test_the_same_message_taken_twice_is_reported_in_a_way_that_the_core_counts_once(
        self, desk: Desk
    ) -> None:
        story = Story(plan(2))
        desk.performer.take(story.state, story.started.effects)
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.confirmed) == 4)
        for work in desk.reports:
            story.do(work.command)
        assert story.wake(30).state.open == 0
        assert story.statuses == ["timeout", "timeout"]

    async def test_waiting_counts_what_is_not_reported_yet(self, desk: Desk) -> None:
        story = Story(plan(2))
        assert desk.performer.waiting == 0
        desk.performer.take(story.state, story.started.effects)
        assert desk.performer.waiting == 2
        await desk.until(lambda: bool(desk.confirmed))
        assert desk.performer.waiting == 0


async def test_an_adapter_that_is_at_fault_costs_no_message(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    publish, faults = desk.broker.publish, [RuntimeError("a bug"), KeyError("another")]

    async def faulty(messages: Sequence[Outgoing]) -> None:
        if faults:
            raise faults.pop()
        await publish(messages)

    monkeypatch.setattr(desk.broker, "publish", faulty)
    monkeypatch.setattr(desk.broker, "volatile", False)
    story = Story(plan(2))
    desk.performer.take(story.state, story.started.effects)
    await desk.until(lambda: len(desk.confirmed) == 2)
    assert not faults and desk.performer.failing_since is None and desk.performer.waiting == 0


class TestSomeOfThem:
    """A publish that failed for some messages only."""

    def failing(self, desk: Desk, **told: object) -> list[list[Outgoing]]:
        """The next publish fails as told; `first` says of how many messages at the head."""
        seen: list[list[Outgoing]] = []
        publish = desk.broker.publish

        async def once(messages: Sequence[Outgoing]) -> None:
            seen.append(list(messages))
            desk.broker.publish = publish  # type: ignore[method-assign]
            count = int(str(told.get("first", 1)))
            if told.get("refused"):
                await publish(messages[count:])
                pairs = [(message, "larger than 1 MiB") for message in messages[:count]]
                raise BrokerUnavailableError("too large", unconfirmed=[], refused=pairs)
            await publish(messages[count:])
            raise BrokerUnavailableError("some", unconfirmed=messages[:count], works=bool(told.get("works")))

        desk.broker.publish = once  # type: ignore[method-assign]
        return seen

    async def test_confirmed_ones_are_not_sent_again(self, desk: Desk) -> None:
        story = Story(plan(3))
        self.failing(desk)
        desk.performer.take(story.state, story.started.effects)
        await desk.until(lambda: len(desk.confirmed) == 3)
        for position in range(3):
            assert len(await desk.broker.fetch(f"escavador_fonte{position}", limit=5, wait=0)) == 1

    async def test_one_that_waits_for_its_queue_holds_up_no_other(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(perform, "POSTPONE", 0.05)
        story = Story(plan(3))
        self.failing(desk, works=True)
        desk.performer.take(story.state, story.started.effects)
        await desk.until(lambda: len(desk.confirmed) >= 2)
        assert desk.performer.failing_since is None
        await desk.until(lambda: len(desk.confirmed) == 3)
        assert desk.performer.waiting == 0

    async def test_one_whose_ticket_is_closed_meanwhile_is_not_sent(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(perform, "POSTPONE", 0.05)
        monkeypatch.setattr(desk.broker, "volatile", False)
        story = Story(plan(2))
        self.failing(desk, works=True)
        desk.performer._still_owed = lambda _run, tickets: [one for one in tickets if one[0] == 1]
        desk.performer.take(story.state, story.started.effects)
        async with asyncio.timeout(5):
            while desk.performer.waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert desk.confirmed == [(1, 1)]
        assert await desk.broker.fetch("escavador_fonte0", limit=5, wait=0) == []

    async def test_one_that_no_broker_will_ever_take_fails_its_ticket(self, desk: Desk) -> None:
        story = Story(plan(2))
        self.failing(desk, refused=True)
        desk.performer.take(story.state, story.started.effects)
        await desk.until(lambda: len(desk.confirmed) == 1 and len(desk.reports) == 2)
        (failed,) = [work.command for work in desk.reports if isinstance(work.command, RecordResult)]
        assert (failed.ok, failed.definitivo, failed.ticket, failed.attempt) == (False, True, ticket_id(RUN, 0), 1)
        assert "larger than 1 MiB" in str(failed.erros)
        story.do(failed)
        assert story.statuses[0] == "erro"


class TestNotices:
    def ended(self, **targets: str) -> Story:
        story = Story(plan(1, **targets))
        story.ok(0)
        return story

    async def test_a_webhook(self, desk: Desk) -> None:
        story = self.ended(webhook="https://example.com/x")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        (notice,) = desk.notifier.notices
        assert (notice.url, notice.body) == ("https://example.com/x", b'{"status":"concluida"}')
        assert desk.deliveries == [RecordDelivery(0, 1, True, False, "200")]

    async def test_every_try_has_the_same_id(self, desk: Desk) -> None:
        desk.notifier.receipts = [Receipt(Outcome.RETRY, "503", 503)]
        story = self.ended(webhook="https://example.com/x")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        story.do(desk.deliveries[0])
        story.wake(10)
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 2)
        first, second = desk.notifier.notices
        assert first == second and first.webhook_id
        assert [(d.delivered, d.final, d.attempt) for d in desk.deliveries] == [(False, False, 1), (True, False, 2)]

    async def test_a_refusal_is_final(self, desk: Desk) -> None:
        desk.notifier.receipts = [Receipt(Outcome.REFUSED, "410", 410)]
        story = self.ended(webhook="https://example.com/x")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert (desk.deliveries[0].delivered, desk.deliveries[0].final) == (False, True)

    async def test_a_queue(self, desk: Desk) -> None:
        story = self.ended(fila="avisos")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        (delivery,) = await desk.broker.fetch("avisos", limit=5, wait=0)
        assert delivery.body == b'{"status":"concluida"}' and desk.deliveries[0].delivered

    async def test_a_queue_whose_broker_is_away_is_tried_again_later(self, desk: Desk) -> None:
        desk.broker.failures = 1
        story = self.ended(fila="avisos")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert (desk.deliveries[0].delivered, desk.deliveries[0].final) == (False, False)

    async def test_a_store_that_is_away_is_waited_for(self, desk: Desk) -> None:
        desk.store_failures = 2
        story = self.ended(fila="avisos")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert desk.deliveries[0].delivered

    async def test_a_result_that_was_pruned_gives_up(self, desk: Desk) -> None:
        desk.results.clear()
        story = self.ended(webhook="https://example.com/x")
        desk.performer.take(story.state, owed_effects(story.state))
        await desk.until(lambda: len(desk.deliveries) == 1)
        assert desk.deliveries[0].final and desk.notifier.notices == []

    async def test_without_a_notifier_it_is_refused(self, broker: FailingBroker, clock: ManualClock) -> None:
        reports: list[Work] = []
        told = asyncio.Event()

        def report(works: list[Work]) -> None:
            reports.extend(works)
            told.set()

        async def result_of(run: int) -> bytes:
            return b"{}"

        performer = Performer(broker, None, clock, report, result_of)
        story = self.ended(webhook="https://example.com/x")
        performer.take(story.state, owed_effects(story.state))
        await told.wait()
        assert reports[0].command.final

    async def test_a_notice_that_is_no_longer_owed_is_not_sent(self, desk: Desk) -> None:
        story = self.ended(fila="avisos")
        effects = owed_effects(story.state)
        story.told(0, 1, delivered=True)
        desk.performer.take(story.state, effects)
        assert desk.performer.waiting == 0
