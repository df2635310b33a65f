"""What fails at once is not tried again at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from core.given import RUN, Story, coleta, plan
from oraculo.core.effects import owed_effects
from oraculo.ports.broker import Outgoing, PublishReport
from oraculo.ports.work import Work
from oraculo.runtime.effects import pacing
from oraculo.runtime.effects.pacing import RetryRateLimiter
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from runtime.doubles import FailingBroker, FailingStore, ManualClock
from waiting import until


def test_a_storm_is_spread_evenly() -> None:
    """10,000 that fail at once: no second has more than its share, and nobody is overtaken."""
    one: RetryRateLimiter[int] = RetryRateLimiter(500)
    went = [(0.0, n) for n in range(10_000) if one.may_go("q", n, 0.0)]
    now = 0.0
    while one:
        now = round(now + 0.02, 2)
        went += [(now - 1e-9, n) for n in one.due(now)]
    assert [n for _, n in went] == list(range(10_000))
    seconds = Counter(int(at) for at, _ in went)
    assert len(seconds) == 20 and max(seconds.values()) <= 501


def test_queues_do_not_wait_for_each_other_and_who_waited_is_forgotten() -> None:
    one: RetryRateLimiter[str] = RetryRateLimiter(1)
    assert one.may_go("a", "1", 0.0) and one.may_go("b", "2", 0.0)
    assert not one.may_go("a", "3", 0.5) and list(one) == ["3"]
    assert one.due(0.9) == [] and one.due(1.0) == ["3"] and one.next_at is None
    assert one.may_go("b", "4", 1.0), "its last one is a second ago"
    for n in range(3 * pacing.REMEMBERED_MAX_QUEUES):
        one.may_go(f"q{n}", "", 100.0 + 2 * n)
    assert len(one._next) <= pacing.REMEMBERED_MAX_QUEUES


async def test_first_attempts_do_not_wait_and_retries_do(store: FailingStore, clock: ManualClock) -> None:
    rate, count = 200.0, 60
    loop = asyncio.get_running_loop()
    went: list[tuple[float, int]] = []

    class Watched(FailingBroker):
        async def publish(self, messages: Sequence[Outgoing]) -> PublishReport:
            went.extend((loop.time(), int(message.message_id[-1])) for message in messages)
            return await super().publish(messages)

    reported: list[Work] = []
    runner = EffectRunner(KernelPorts(store, Watched(), clock), KernelOptions(retry_rate=rate), reported.extend)
    running = asyncio.create_task(runner.run())
    story = Story(plan([coleta("mesma", attempts=2) for _ in range(count)]))
    runner.take(story.state, story.started.effects)
    await until(lambda: len(went) >= count)
    for position in range(count):
        story.fail(position)
    story.wake(5)
    again = loop.time()
    runner.take(story.state, owed_effects(story.state))
    await until(lambda: len(went) >= 2 * count)
    running.cancel()
    await runner.close()
    assert [attempt for _, attempt in went] == [1] * count + [2] * count
    for number, (at, _) in enumerate(went[count:]):
        assert at - again >= number / rate - 1e-3, f"retry {number} came early"
    assert {work.run for work in reported} <= {RUN}
