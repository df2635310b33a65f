"""A message through every broker, end to end; and consumers that fell silent are noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from oraculo.ports.broker import BrokerTraits, Delivery, Outgoing, PublishReport
from oraculo.runtime import probes as module
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.consumer import QueueConsumer
from oraculo.runtime.probes import QUEUE, SILENT_AFTER, Prober
from oraculo.wire import names
from oraculo.worker.transport import BrokerTransport
from runtime.doubles import DirectEngine, FailingBroker, ManualClock
from waiting import until


class Deaf(FailingBroker):
    """Takes messages and, when it is deaf, gives none."""

    def __init__(self) -> None:
        super().__init__()
        self.deaf = False
        self.resets = 0

    async def fetch(self, queue: str, *, limit: int, wait: float) -> list[Delivery]:
        if self.deaf:
            await asyncio.sleep(wait)
            return []
        return await super().fetch(queue, limit=limit, wait=wait)

    async def reset(self) -> None:
        self.resets += 1
        self.deaf = False


class Told:
    def __init__(self) -> None:
        self.probes: list[tuple[str, bool]] = []

    def __call__(self, name: str, ok: bool, error: str) -> None:
        assert ok == (not error)
        self.probes.append((name, ok))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(module, "AGAIN", 0.0)


async def test_there_and_back(clock: ManualClock) -> None:
    broker, told = Deaf(), Told()
    prober = Prober({"um": broker}, clock, probed=told)
    assert await prober.probe("um")
    found = prober.found["um"]
    assert found.ok and found.at == clock.now() and found.round_trip_s is not None and not found.error
    assert told.probes == [("um", True)] and broker.depths()[QUEUE] == (0, 0)


async def test_a_broker_that_does_not_take_it(clock: ManualClock) -> None:
    broker, told = Deaf(), Told()
    broker.failures = 1
    prober = Prober({"um": broker}, clock, probed=told)
    assert not await prober.probe("um")
    assert prober.found["um"].error == "the broker is away" and prober.found["um"].failures == 1
    assert await prober.probe("um")
    assert prober.found["um"].failures == 0 and told.probes == [("um", False), ("um", True)]


@pytest.mark.usefixtures("quick")
async def test_one_that_takes_it_and_does_not_give_it_is_made_anew(clock: ManualClock) -> None:
    broker = Deaf()
    broker.deaf = True
    prober = Prober({"um": broker}, clock)
    assert not await prober.probe("um")
    assert broker.resets == 0
    assert not await prober.probe("um")
    assert (broker.resets, prober.found["um"].resets) == (1, 1)
    assert await prober.probe("um")


async def test_several_processes_share_the_queue(clock: ManualClock) -> None:
    broker = Deaf()
    probers = [Prober({"um": broker}, clock) for _ in range(5)]
    for _ in range(5):
        assert all(await asyncio.gather(*(prober.probe("um") for prober in probers)))
    assert broker.depths()[QUEUE] == (0, 0)


async def test_what_somebody_left_behind_long_ago_does_not_count(clock: ManualClock) -> None:
    broker = Deaf()
    await broker.publish(
        [Outgoing(QUEUE, b'{"sonda":"x","em":"2020-01-01T00:00:00+00:00"}', ""), Outgoing(QUEUE, b"?", "")]
    )
    prober = Prober({"um": broker}, clock)
    assert await prober.probe("um")
    assert broker.depths()[QUEUE] == (0, 0)


async def test_it_measures_what_waits_and_what_is_promised(clock: ManualClock) -> None:
    broker = Deaf()
    await broker.publish([Outgoing("escavador_x", b"a", "")])
    prober = Prober({"um": broker}, clock, queues=lambda: {"escavador_x", "escavador_y"})
    await prober._look_around("um")
    found = prober.found["um"]
    assert found.durability == "best-effort"
    assert {name: one.waiting for name, one in found.backlogs.items()} == {"escavador_x": 1, "escavador_y": 0}
    oldest = found.backlogs["escavador_x"].oldest_s
    assert oldest is not None and oldest >= 0


class TestSilence:
    @pytest.fixture
    def desk(self, engine: DirectEngine, clock: ManualClock) -> tuple[Deaf, QueueConsumer, Prober]:
        broker = Deaf()
        intake = QueueConsumer(broker, names.RESULTS, AnswerReader(), engine.submit)
        return broker, intake, Prober({"um": broker}, clock, [intake])

    async def test_messages_wait_and_the_consumer_gets_none(self, desk: tuple[Deaf, QueueConsumer, Prober]) -> None:
        broker, intake, prober = desk
        await broker.publish([Outgoing(names.RESULTS, b"x", "")])
        intake.asking = True
        for _ in range(SILENT_AFTER):
            await prober.look_for_silence("um")
            assert broker.resets == 0
        await prober.look_for_silence("um")
        assert broker.resets == 1

    async def test_one_that_gets_some_is_only_slow(self, desk: tuple[Deaf, QueueConsumer, Prober]) -> None:
        broker, intake, prober = desk
        await broker.publish([Outgoing(names.RESULTS, b"x", "") for _ in range(20)])
        intake.asking = True
        for _ in range(10):
            await intake.take(await broker.fetch(names.RESULTS, limit=1, wait=0))
            await prober.look_for_silence("um")
        assert broker.resets == 0

    async def test_one_that_does_not_ask_is_busy_with_something_else(
        self, desk: tuple[Deaf, QueueConsumer, Prober]
    ) -> None:
        broker, _intake, prober = desk
        await broker.publish([Outgoing(names.RESULTS, b"x", "")])
        for _ in range(10):
            await prober.look_for_silence("um")
        assert broker.resets == 0

    async def test_one_of_several_is_deaf_while_the_others_deliver(
        self, engine: DirectEngine, clock: ManualClock
    ) -> None:
        deaf, fine = Deaf(), Deaf()
        intake = QueueConsumer(deaf, names.RESULTS, AnswerReader(), engine.submit)
        prober = Prober({"surdo": deaf, "bom": fine}, clock, [intake])
        await deaf.publish([Outgoing(names.RESULTS, b"x", "")])
        intake.asking = True
        for number in range(SILENT_AFTER + 1):
            await intake.take([Delivery(names.RESULTS, b"y", number, broker="bom")])
            for name in ("surdo", "bom"):
                await prober.look_for_silence(name)
        assert (deaf.resets, fine.resets) == (1, 0)

    async def test_a_worker_is_watched_too(self, clock: ManualClock) -> None:
        broker = Deaf()
        transport = BrokerTransport(broker)
        assert await transport.take("escavador_x", 1, 0) == []
        prober = Prober({"um": broker}, clock, transport.watches.values())
        await broker.publish([Outgoing("escavador_x", b"x", "")])
        for _ in range(SILENT_AFTER + 1):
            transport.watches["escavador_x"].heard([])
            await prober.look_for_silence("um")
        assert broker.resets == 1

    async def test_a_worker_beside_a_slow_one_is_not_deaf(self, clock: ManualClock) -> None:
        class Divided(Deaf):
            traits = BrokerTraits(partitioned=True)

        broker = Divided()
        transport = BrokerTransport(broker)
        await transport.take("escavador_x", 1, 0)
        prober = Prober({"um": broker}, clock, transport.watches.values())
        await broker.publish([Outgoing("escavador_x", b"x", "")])
        for _ in range(10):
            transport.watches["escavador_x"].heard([])
            await prober.look_for_silence("um")
        assert broker.resets == 0

    async def test_an_empty_queue_is_no_silence(self, desk: tuple[Deaf, QueueConsumer, Prober]) -> None:
        broker, intake, prober = desk
        intake.asking = True
        for _ in range(10):
            await prober.look_for_silence("um")
        assert broker.resets == 0


@pytest.mark.usefixtures("quick")
async def test_it_goes_on_for_ever(clock: ManualClock) -> None:
    class Away(Deaf):
        async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
            return PublishReport(messages, reason="away")

    told = Told()
    prober = Prober({"um": Away(), "dois": Deaf()}, clock, probed=told, every=0.0)
    running = asyncio.create_task(prober.run())
    await until(lambda: told.probes.count(("um", False)) >= 5 and told.probes.count(("dois", True)) >= 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
