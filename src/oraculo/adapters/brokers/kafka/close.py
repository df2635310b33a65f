"""Closing Kafka clients within seconds, whether or not the server answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka.errors import KafkaError

PATIENCE = 2.0


async def close_producer(producer: Any) -> None:
    """Without waiting for what was not confirmed. An idempotent producer tries that for ever, and its `stop` waits for
    it; so its sender is ended and its batches are failed first."""
    sender = producer._sender.sender_task
    while sender is not None and not sender.done():
        sender.cancel()
        await asyncio.wait([sender], timeout=0.1)
    accumulator = producer._message_accumulator
    unsent = [batch for batches in accumulator._batches.values() for batch in batches]
    accumulator.fail_all(KafkaError("the connection was dropped"))
    for batch in unsent:
        await asyncio.wait([batch._drain_waiter])
        batch._drain_waiter.exception()  # nobody else asks
    await ended(producer.stop())


async def close_consumer(consumer: Any) -> None:
    """As it should be, or by force: `stop` has no limit of its own, and when it is broken off its tasks go on."""
    if await ended(consumer.stop()):
        return
    coordinator, fetcher = consumer._coordinator, consumer._fetcher
    names = ("_coordination_task", "_heartbeat_task", "_commit_refresh_task")
    tasks = [getattr(coordinator, name, None) for name in names]
    tasks += [getattr(fetcher, "_fetch_task", None), *getattr(fetcher, "_pending_tasks", ())]
    left = [task for task in tasks if task is not None and not task.done()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await ended(consumer._client.close())


async def ended(closing: Coroutine[Any, Any, Any]) -> bool:
    """Whether it came to a good end in time. In a task of its own: this client raises CancelledError when it awaits a
    task that it cancelled itself."""
    task = asyncio.get_running_loop().create_task(closing)
    await asyncio.wait([task], timeout=PATIENCE)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
    return task.done() and not task.cancelled() and task.exception() is None
