"""Several brokers as one: consume from all, publish to the first that works, lose nothing on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from oraculo.adapters.brokers import failover
from oraculo.adapters.brokers.breaker import FAILURES_MAX, PROBES_NEEDED
from oraculo.adapters.brokers.failover import FailoverBroker, Switch
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import (
    Backlog,
    BrokerTraits,
    Delivery,
    Health,
    Outgoing,
    PublishReport,
    Refusal,
    Settle,
    Settlement,
    publish_confirmed,
)
from waiting import DEADLINE_S, until


class Member(MemoryBroker):
    """A broker that goes away when it is told to."""

    traits = BrokerTraits()

    def __init__(self, scheme: str, durability: str = "crash-safe") -> None:
        super().__init__()
        self.scheme = scheme
        self.away = False
        self.silent = False
        self.report: PublishReport | None = None
        self.tries = 0
        self.expected: list[str] = []
        self._durability = durability

    def expect(self, queue: str) -> None:
        self.expected.append(queue)

    async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
        self.tries += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.report is not None:
            return self.report
        if self.away:
            return PublishReport(messages, reason="away")
        return await super().publish(messages)

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        self._check()
        return await super().fetch(queue, limit=limit, wait=wait)

    async def backlog(self, queue: str) -> Backlog:
        self._check()
        return await super().backlog(queue)

    async def durability(self) -> str:
        self._check()
        return self._durability

    def health(self) -> Health:
        return Health(not self.away, "away" if self.away else "")

    def _check(self) -> None:
        if self.away:
            raise BrokerUnavailableError("away")


class Pair:
    def __init__(self) -> None:
        self.first = Member("amqp", "power-safe")
        self.second = Member("redis")
        self.switches: list[Switch] = []
        self.broker = FailoverBroker([self.first, self.second], dwell=0, on_switch=self.switches.append)

    async def publish(self, *bodies: str, queue: str = "q") -> None:
        await publish_confirmed(self.broker, [Outgoing(queue, body.encode(), body) for body in bodies])

    async def found(self, member: Member, queue: str = "q") -> list[str]:
        return [d.body.decode() for d in await MemoryBroker.fetch(member, queue, limit=100, wait=0)]

    def heal(self, times: int = PROBES_NEEDED) -> None:
        for _ in range(times):
            self.broker.probed("amqp", True)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    yield pair
    await pair.broker.close()


async def test_answers_are_expected_on_all(pair: Pair) -> None:
    pair.broker.expect("respostas")
    assert pair.first.expected == pair.second.expected == ["respostas"]


class TestPublishing:
    async def test_to_the_first_while_it_works(self, pair: Pair) -> None:
        await pair.publish("a", "b")
        assert await pair.found(pair.first) == ["a", "b"] and await pair.found(pair.second) == []
        assert pair.switches == [] and pair.broker.active == "amqp"

    async def test_the_very_first_failure_goes_to_the_second_at_once(self, pair: Pair) -> None:
        pair.first.away = True
        await pair.publish("a")
        assert await pair.found(pair.second) == ["a"]
        assert pair.broker.active == "amqp"  # one failure is no reason to leave it

    async def test_after_several_failures_the_first_is_left_alone(self, pair: Pair) -> None:
        pair.first.away = True
        for number in range(FAILURES_MAX + 3):
            await pair.publish(str(number))
        assert pair.first.tries == FAILURES_MAX
        assert len(await pair.found(pair.second)) == FAILURES_MAX + 3
        (switch,) = pair.switches
        assert (switch.epoch, switch.source, switch.target) == (1, "amqp", "redis") and "away" in switch.reason
        assert pair.broker.active == "redis"

    async def test_it_comes_back_after_probes_and_not_before(self, pair: Pair) -> None:
        pair.first.away = True
        for number in range(FAILURES_MAX):
            await pair.publish(str(number))
        pair.first.away = False
        pair.heal(PROBES_NEEDED - 1)
        await pair.publish("still on the second")
        pair.heal(1)
        await pair.publish("back")
        assert await pair.found(pair.first) == ["back"]
        assert [(s.source, s.target, s.epoch) for s in pair.switches] == [("amqp", "redis", 1), ("redis", "amqp", 2)]

    async def test_probes_that_fail_open_it_although_nobody_publishes(self, pair: Pair) -> None:
        for _ in range(FAILURES_MAX):
            pair.broker.probed("amqp", False, "no answer")
        assert pair.broker.active == "redis"

    async def test_a_broker_that_says_nothing_is_given_up_in_time(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(failover, "PUBLISH_TIMEOUT_S", 0.05)
        pair.first.silent = True
        async with asyncio.timeout(DEADLINE_S):
            await pair.publish("a")
        assert await pair.found(pair.second) == ["a"]

    async def test_only_what_was_not_confirmed_goes_to_the_second(self, pair: Pair) -> None:
        messages = [Outgoing("q", body, "") for body in (b"a", b"b", b"c")]
        pair.first.report = PublishReport([messages[1]], reason="half of it")
        await publish_confirmed(pair.broker, messages)
        assert await pair.found(pair.second) == ["b"]

    async def test_what_no_broker_would_take_is_told_and_harms_nobody(self, pair: Pair) -> None:
        messages = [Outgoing("q", b"a", ""), Outgoing("q", b"b", "")]
        pair.first.report = PublishReport(refused=[Refusal(messages[0], "too large")])
        for _ in range(FAILURES_MAX + 1):
            report = await pair.broker.publish(messages)
            assert report.refused == [Refusal(messages[0], "too large")] and not report.unconfirmed
        assert await pair.found(pair.second) == [] and pair.switches == []

    async def test_a_queue_that_nobody_has_made_yet_is_waited_for_and_not_sought_elsewhere(self, pair: Pair) -> None:
        message = Outgoing("q", b"a", "")
        pair.first.report = PublishReport(no_queue=[message], reason="no queue yet")
        for _ in range(FAILURES_MAX + 1):
            report = await pair.broker.publish([message])
            assert report.no_queue == [message] and not report.unconfirmed
        assert await pair.found(pair.second) == [] and pair.switches == []

    async def test_all_away(self, pair: Pair) -> None:
        pair.first.away = pair.second.away = True
        message = Outgoing("q", b"a", "")
        assert await pair.broker.publish([message]) == PublishReport([message], [], [], "amqp: away; redis: away")

    async def test_all_breakers_open_is_no_reason_not_to_try(self, pair: Pair) -> None:
        pair.first.away = pair.second.away = True
        for _ in range(FAILURES_MAX):
            with pytest.raises(BrokerUnavailableError):
                await pair.publish("a")
        pair.second.away = False
        await pair.publish("b")
        assert await pair.found(pair.second) == ["b"]


class TestConsuming:
    async def test_from_all_of_them(self, pair: Pair) -> None:
        await publish_confirmed(pair.first, [Outgoing("q", b"a", "")])
        await publish_confirmed(pair.second, [Outgoing("q", b"b", "")])
        got = []
        async with asyncio.timeout(DEADLINE_S):
            while len(got) < 2:
                got += await pair.broker.fetch("q", limit=10, wait=5)
        assert {(d.broker, d.body) for d in got} == {("amqp", b"a"), ("redis", b"b")}
        await pair.broker.settle([Settlement(d) for d in got])
        assert all(taken == 0 for member in (pair.first, pair.second) for _, taken in member.depths().values())

    async def test_one_that_is_away_does_not_hide_the_other(self, pair: Pair) -> None:
        pair.first.away = True
        waiting = asyncio.create_task(pair.broker.fetch("q", limit=10, wait=60))
        await asyncio.sleep(0)
        await publish_confirmed(pair.second, [Outgoing("q", b"b", "")])
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await waiting] == [b"b"]

    async def test_never_more_than_asked_for_and_the_rest_is_next(self, pair: Pair) -> None:
        for member in (pair.first, pair.second):
            await publish_confirmed(member, [Outgoing("q", f"{member.scheme}{n}".encode(), "") for n in range(3)])
        got: list[Delivery] = []
        async with asyncio.timeout(DEADLINE_S):
            while len(got) < 6:
                taken = await pair.broker.fetch("q", limit=3, wait=5)
                assert len(taken) <= 3
                got += taken
        assert len({d.body for d in got}) == 6

    async def test_what_nobody_asks_for_again_goes_back(self, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(failover, "KEEP_TIMEOUT_S", 0.01)
        for member in (pair.first, pair.second):
            await publish_confirmed(member, [Outgoing("q", b"x", "")])
        (one,) = await pair.broker.fetch("q", limit=1, wait=5)
        other = pair.second if one.broker == "amqp" else pair.first
        await until(lambda: other.depths()["q"] == (1, 0))

    async def test_giving_back_goes_to_where_it_came_from(self, pair: Pair) -> None:
        await publish_confirmed(pair.second, [Outgoing("q", b"b", "")])
        (delivery,) = await pair.broker.fetch("q", limit=1, wait=5)
        await pair.broker.settle([Settlement(delivery, Settle.RETRY)])
        assert await pair.found(pair.second) == ["b"]

    async def test_all_away(self, pair: Pair) -> None:
        pair.first.away = pair.second.away = True
        with pytest.raises(BrokerUnavailableError):
            await pair.broker.fetch("q", limit=1, wait=0)

    async def test_one_who_goes_away_loses_nothing(self, pair: Pair) -> None:
        waiting = asyncio.create_task(pair.broker.fetch("q", limit=1, wait=60))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await publish_confirmed(pair.first, [Outgoing("q", b"a", "")])
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(DEADLINE_S):
            assert [d.body for d in await pair.broker.fetch("q", limit=1, wait=5)] == [b"a"]


class TestLooking:
    async def test_the_backlog_is_that_of_all_that_can_be_asked(self, pair: Pair) -> None:
        for member in (pair.first, pair.second):
            await publish_confirmed(member, [Outgoing("q", b"x", "")])
        assert (await pair.broker.backlog("q")).waiting == 2
        pair.first.away = True
        assert (await pair.broker.backlog("q")).waiting == 1
        pair.second.away = True
        with pytest.raises(BrokerUnavailableError):
            await pair.broker.backlog("q")

    async def test_the_weakest_promise_counts(self, pair: Pair) -> None:
        assert await pair.broker.durability() == "crash-safe"
        pair.second.away = True
        assert await pair.broker.durability() == "power-safe"

    async def test_one_connection_is_a_connection(self, pair: Pair) -> None:
        pair.first.away = True
        health = pair.broker.health()
        assert health.connected and "amqp: away" in health.error

    async def test_two_of_a_kind_are_told_apart(self) -> None:
        broker = FailoverBroker([Member("redis"), Member("redis"), Member("amqp")])
        assert list(broker.members) == ["redis", "redis-2", "amqp"]
        await broker.close()
