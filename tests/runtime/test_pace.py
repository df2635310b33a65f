"""What fails at once is not tried again at once."""

from __future__ import annotations

import asyncio
from collections import Counter

from core.given import RUN, Story, coleta, plan
from oraculo.core.effects import owed_effects
from oraculo.ports.broker import Outgoing
from oraculo.runtime import pace
from oraculo.runtime.pace import Pace
from oraculo.runtime.perform import Performer
from oraculo.runtime.work import Work
from runtime.doubles import FailingBroker, ManualClock


def test_a_storm_is_spread_evenly() -> None:
    """10,000 that fail at once: no second has more than its share, and nobody is overtaken."""
    one: Pace[int] = Pace(500)
    went = [(0.0, n) for n in range(10_000) if one.may_go("q", n, 0.0)]
    now = 0.0
    while one:
        now = round(now + 0.02, 2)
        went += [(now - 1e-9, n) for n in one.due(now)]
    assert [n for _, n in went] == list(range(10_000))
    seconds = Counter(int(at) for at, _ in went)
    assert len(seconds) == 20 and max(seconds.values()) <= 501


def test_queues_do_not_wait_for_each_other_and_who_waited_is_forgotten() -> None:
    one: Pace[str] = Pace(1)
    assert one.may_go("a", "1", 0.0) and one.may_go("b", "2", 0.0)
    assert not one.may_go("a", "3", 0.5) and list(one) == ["3"]
    assert one.due(0.9) == [] and one.due(1.0) == ["3"] and one.next_at is None
    assert one.may_go("b", "4", 1.0), "its last one is a second ago"
    for n in range(3 * pace.MOST_QUEUES):
        one.may_go(f"q{n}", "", 100.0 + 2 * n)
    assert len(one._next) <= pace.MOST_QUEUES


async def test_first_attempts_do_not_wait_and_retries_do(broker: FailingBroker, clock: ManualClock) -> None:
    rate, count = 200.0, 60
    loop = asyncio.get_running_loop()
    went: list[tuple[float, int]] = []

    class Watched(FailingBroker):
        async def publish(self, messages: list[Outgoing]) -> None:
            went.extend((loop.time(), int(message.message_id[-1])) for message in messages)
            await super().publish(messages)

    async def no_result(_run: int) -> bytes | None:
        return None

    reported: list[Work] = []
    performer = Performer(Watched(), None, clock, reported.extend, no_result, retry_rate=rate)
    running = asyncio.create_task(performer.run())
    story = Story(plan([coleta("mesma", attempts=2) for _ in range(count)]))
    performer.take(story.state, story.started.effects)
    async with asyncio.timeout(10):
        while len(went) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)
    for position in range(count):
        story.fail(position)
    story.wake(5)
    again = loop.time()
    performer.take(story.state, owed_effects(story.state))
    async with asyncio.timeout(10):
        while len(went) < 2 * count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    running.cancel()
    await performer.close()
    assert [attempt for _, attempt in went] == [1] * count + [2] * count
    for number, (at, _) in enumerate(went[count:]):
        assert at - again >= number / rate - 1e-3, f"retry {number} came early"
    assert {work.run for work in reported} <= {RUN}
