"""Private members of aiokafka: starting and closing clients within seconds, whether or not the server answers, and how
far a consumer has read."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaError

CLOSE_TIMEOUT_S = 2.0


async def start(client: Any) -> None:
    """Start a producer, a consumer or an administrator. When that is cancelled or times out while the first connection
    waits for the cluster's metadata, aiokafka leaves that connection open and keeps no reference to it but in the frame
    of its `bootstrap`: it is closed here."""
    try:
        await client.start()
    except BaseException as error:
        traceback = error.__traceback__
        while traceback is not None:
            connection = traceback.tb_frame.f_locals.get("bootstrap_conn")
            if isinstance(connection, AIOKafkaConnection):
                connection.close()
            traceback = traceback.tb_next
        raise


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
        batch._drain_waiter.exception()  # no other caller asks
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


def position(consumer: Any, partition: Any) -> int | None:
    """The offset that a consumer reads next; None while that is not known. Offsets of aborted records and of Kafka's
    own marks are passed over without a record. The public method may wait for the server."""
    subscription = consumer._subscription.subscription
    assignment = None if subscription is None else subscription.assignment
    if assignment is None or partition not in assignment.tps:
        return None
    state = assignment.state_value(partition)
    found: int | None = state.position if state.has_valid_position else None
    return found


async def ended(closing: Coroutine[Any, Any, Any]) -> bool:
    """Whether it came to a good end in time. In a task of its own: this client raises CancelledError when it awaits a
    task that it cancelled itself."""
    task = asyncio.get_running_loop().create_task(closing)
    await asyncio.wait([task], timeout=CLOSE_TIMEOUT_S)
    if not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CLOSE_TIMEOUT_S)
    return task.done() and not task.cancelled() and task.exception() is None
