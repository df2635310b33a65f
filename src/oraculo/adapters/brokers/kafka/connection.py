"""The connection to a Kafka cluster: a producer and an administrator that stand or fall together.

The supervisor makes them, asks the cluster for a sign of life every two seconds, and makes them again when there is
none, or when it is told that they are silent. Consumers have connections of their own (consume.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, NodeNotReadyError, for_code

from oraculo.adapters.brokers.kafka.client_internals import close_consumer, close_producer, ended, start
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.publish import BATCH_MAX_BYTES, BatchProducer
from oraculo.adapters.brokers.kafka.url import ISOLATION, Options
from oraculo.adapters.brokers.kit.reconnect import RETRY_FIRST_S, pauses
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Health

log = structlog.get_logger("oraculo.broker")

HEALTH_CHECK_INTERVAL_S = 2.0  # seconds between two signs of life
TOPIC_CACHE_S = 300.0  # seconds for which what is known of a topic is taken to be so
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588  # Kafka's own default
UNKNOWN_TOPIC, TOPIC_EXISTS, INVALID_TOPIC = 3, 36, 17
SILENCE_ERRORS = ("KafkaConnectionError", "NodeNotReadyError", "RequestTimedOutError", "StaleMetadata")

_client_log = logging.getLogger("aiokafka")
if _client_log.level == logging.NOTSET:
    _client_log.setLevel(
        logging.CRITICAL
    )  # it tells of every retry; we tell once that it is lost and once that it is back


class RefusedNameError(Exception):
    """Kafka does not allow this name for a topic."""


@dataclass(slots=True)
class Connection:
    producer: Any
    admin: Any
    batches: BatchProducer
    lost: asyncio.Future[None]
    task: asyncio.Task[None] | None = None  # of `batches.run`


@dataclass(frozen=True, slots=True)
class Topic:
    """It exists; `limit` is the most bytes that a batch for it may have."""

    limit: int
    partitions: tuple[int, ...]
    read: float  # when that was so


def allowed_name(name: str) -> bool:
    return re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) is not None and name not in (".", "..")


class ClusterConnection:
    """`topics` are those that are known to exist."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.topics: dict[str, Topic] = {}
        self._connection: Connection | None = None
        self._up = asyncio.Event()
        self._lost = asyncio.Event()
        self._error = ""
        self._tried = False  # a first connection was tried: what is not up now is down
        self._reconnects = -1
        self._supervisor: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # cancelled when it is closed
        self._closings: set[asyncio.Task[Any]] = set()  # waited for when it is closed
        self._making: dict[str, asyncio.Task[Topic]] = {}
        self._reader: Any = None
        self._reading = asyncio.Lock()
        self._closed = False  # for good: a caller that comes late must not connect again
        self.outages = 0

    @property
    def up(self) -> bool:
        return self._connection is not None

    def health(self) -> Health:
        return Health(self.up, "" if self.up else self._error or "not connected yet", max(self._reconnects, 0))

    def start(self) -> None:
        if self._supervisor is None:
            self._supervisor = self.spawn(self._supervise())

    async def ready(self, patience: float) -> Connection:
        """At once when it stands or is known to be down; a first connection is waited for."""
        if self._connection is None:
            self.start()
            if not self._tried:
                await self.wait_up(patience)
        if self._connection is None:
            await asyncio.sleep(0)  # a caller that tries again at once must not keep us from connecting
            raise BrokerUnavailableError(f"no connection to Kafka: {self._error or self.options.where}")
        return self._connection

    async def wait_up(self, patience: float | None) -> bool:
        self.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._up.wait()
        return self.up

    def drop(self, why: str, connection: Connection | None = None) -> None:
        """It is silent. `connection`: only if it is still this one."""
        if self._connection is None or connection not in (None, self._connection):
            return
        self._error = why
        self._down()

    def renew(self) -> None:
        """Connect again although the connection may be fine; callers wait for the new one."""
        self._tried = False
        self.drop("it was reset")

    async def close(self) -> None:
        self._closed = True
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
        self._down()
        while self._tasks or self._closings:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, *self._closings, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run it beside, at most until this is closed."""
        if self._closed:
            work.close()
            raise BrokerUnavailableError(f"the connection to Kafka was closed: {self.options.where}")
        return _kept(work, self._tasks)

    # -- topics ------------------------------------------------------------------------------------------------------

    async def topic(self, name: str) -> Topic:
        """Made if it does not exist. Several who ask at once wait for one answer."""
        found = self.topics.get(name)
        if found is not None and found.read > time.monotonic() - TOPIC_CACHE_S:
            return found
        if not allowed_name(name):
            raise RefusedNameError(f"Kafka does not allow the topic name {name[:260]!r}")
        making = self._making.get(name)
        if making is None:
            making = self._making[name] = self.spawn(self._find_topic(name))
            making.add_done_callback(lambda _: self._making.pop(name, None))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            if not self._closed or not making.cancelled():
                raise
            raise BrokerUnavailableError(f"the topic {name} cannot be had: the connection was closed") from None
        except FAULTS as error:
            raise BrokerUnavailableError(f"the topic {name} cannot be had: {_text(error)}") from error

    async def exists(self, name: str) -> bool:
        return name in self.topics or (allowed_name(name) and await self._limit(name) is not None)

    async def settings(self, kind: ConfigResourceType, name: str) -> dict[str, str] | None:
        """Of a topic or a broker; None when there is no such thing."""
        connection = await self.ready(self.options.confirm_timeout)
        (answer,) = await connection.admin.describe_configs([ConfigResource(kind, name)])
        for code, reason, _, _, entries, *_ in answer.resources:
            if code == UNKNOWN_TOPIC:
                return None
            if code:
                raise for_code(code)(reason)
            return {entry[0]: entry[1] for entry in entries}
        return None

    async def nodes(self) -> list[int]:
        """Return the ids of the brokers, once the cluster has any; callers limit the time."""
        connection = await self.ready(self.options.confirm_timeout)
        while True:  # brokers that have just come back are not members of their cluster yet
            with contextlib.suppress(NodeNotReadyError):
                if nodes := (await connection.admin.describe_cluster())["brokers"]:
                    return [node["node_id"] for node in nodes]
            await asyncio.sleep(RETRY_FIRST_S)

    async def _find_topic(self, name: str) -> Topic:
        async with asyncio.timeout(self.options.confirm_timeout):  # a producer that is closed meanwhile never answers
            while (limit := await self._limit(name)) is None:
                await self._create(name)  # a node may hear of it a little later than the one that made it
            partitions = await self.partitions(name)
        topic = self.topics[name] = Topic(limit, tuple(partitions), time.monotonic())
        return topic

    async def _limit(self, name: str) -> int | None:
        try:
            settings = await self.settings(ConfigResourceType.TOPIC, name)
        except KafkaError as error:
            if _silent(error):
                raise
            return DEFAULT_MAX_MESSAGE_BYTES  # we may not ask
        return None if settings is None else int(settings.get("max.message.bytes") or DEFAULT_MAX_MESSAGE_BYTES)

    async def _create(self, name: str) -> None:
        connection = await self.ready(self.options.confirm_timeout)
        replication = self.options.replication if self.options.replication > 0 else await self._replication()
        wanted = {"max.message.bytes": str(self.options.max_message)}
        topic = NewTopic(name, self.options.partitions, replication, topic_configs=wanted)
        answer = await connection.admin.create_topics([topic])
        for _, code, *reason in answer.topic_errors:
            if code == INVALID_TOPIC:
                raise RefusedNameError(str(reason))
            if code not in (0, TOPIC_EXISTS):
                raise for_code(code)(*reason)

    async def _replication(self) -> int:
        """The cluster's default, which this client cannot ask for by leaving it out; three where we may not know it."""
        nodes = await self.nodes()
        try:
            settings = await self.settings(ConfigResourceType.BROKER, str(nodes[0])) or {}
            return int(settings["default.replication.factor"])
        except (KeyError, ValueError):
            return min(3, len(nodes))
        except KafkaError as error:
            if _silent(error):
                raise
            return min(3, len(nodes))

    # -- offsets -----------------------------------------------------------------------------------------------------

    async def partitions(self, topic: str) -> list[int]:
        """Of a topic that exists."""
        connection = await self.ready(self.options.confirm_timeout)
        return sorted(await connection.producer.partitions_for(topic))

    async def committed(self, group: str, topic: str, partitions: list[int]) -> dict[int, tuple[int, str]]:
        """Partition → the group's offset (-1: none) and the note beside it."""
        connection = await self.ready(self.options.confirm_timeout)
        asked = [TopicPartition(topic, partition) for partition in partitions]
        while True:
            try:
                found = await connection.admin.list_consumer_group_offsets(group, partitions=asked)
                break
            except KafkaError as error:
                if _silent(error) or not error.retriable:
                    raise
                await asyncio.sleep(RETRY_FIRST_S)  # the cluster is about to choose who keeps them
        return {at.partition: (said.offset, said.metadata or "") for at, said in found.items()}

    async def bounds(self, topic: str, partitions: list[int]) -> dict[int, tuple[int, int]]:
        """Partition → its first offset, and the one after the last that a consumer can read: records of a transaction
        that is still open, and all after them, are not there yet."""
        asked = [TopicPartition(topic, partition) for partition in partitions]
        async with self._reading:
            if self._reader is None:
                reader = AIOKafkaConsumer(
                    **self.options.connection(),
                    isolation_level=ISOLATION,
                    request_timeout_ms=int(self.options.confirm_timeout * 1000),
                )
                try:
                    await start(reader)
                except BaseException:
                    await close_consumer(reader)
                    raise
                self._reader = reader
        begins = await self._reader.beginning_offsets(asked)
        ends = await self._reader.end_offsets(asked)
        return {at.partition: (begins[at], ends[at]) for at in asked}

    # -- life --------------------------------------------------------------------------------------------------------

    async def _supervise(self) -> None:
        attempts = pauses()
        while True:
            try:
                connection = await self._connect()
            except Exception as error:  # the client's own faults too
                if not self._error:
                    known = isinstance(error, FAULTS)
                    log.warning(
                        "broker unreachable",
                        broker="kafka",
                        where=self.options.where,
                        error=_text(error),
                        exc_info=None if known else error,
                    )
                self._tried, self._error = True, f"{self.options.where}: {_text(error)}"
                await asyncio.sleep(next(attempts))
                continue
            attempts = pauses()
            self._reconnects += 1
            if self._error:
                log.info("broker connection is back", broker="kafka", where=self.options.where)
            self._tried, self._error = True, ""
            self._connection = connection
            self._lost.clear()
            self._up.set()
            await self._watch(connection)
            log.warning("broker connection lost", broker="kafka", where=self.options.where, error=self._error)

    async def _connect(self) -> Connection:
        shared = self.options.connection()
        patience = self.options.confirm_timeout
        timeout = {"request_timeout_ms": int(patience * 1000)}
        admin = AIOKafkaAdminClient(**shared, **timeout)
        packed = None if self.options.compression == "none" else self.options.compression
        producer = AIOKafkaProducer(
            **shared,
            **timeout,
            acks="all",
            enable_idempotence=True,
            max_batch_size=BATCH_MAX_BYTES,
            compression_type=packed,
        )
        connection = Connection(producer, admin, BatchProducer(producer), asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(patience):
                await start(admin)
                await start(producer)
            connection.task = self.spawn(connection.batches.run())
        except BaseException:
            _kept(_close(connection), self._closings)
            raise
        return connection

    async def _watch(self, connection: Connection) -> None:
        """Until it is dropped or gives no sign of life twice: one node of several may be gone."""
        misses = 0
        while not self._lost.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_CHECK_INTERVAL_S if misses == 0 else HEALTH_CHECK_INTERVAL_S / 4):
                    await self._lost.wait()
                return
            try:
                async with asyncio.timeout(self.options.confirm_timeout):
                    await connection.admin.find_coordinator(self.options.group)
                misses = 0
            except Exception as error:
                misses = misses + 1 if _silent(error) else 0
                if misses == 2:
                    self.drop(f"{self.options.where}: {_text(error)}", connection)

    def _down(self) -> None:
        connection, self._connection = self._connection, None
        reader, self._reader = self._reader, None
        self._up.clear()
        self._lost.set()
        self.topics.clear()
        self.outages += 1
        if connection is not None:
            connection.lost.set_result(None)
            _kept(_close(connection), self._closings)
        if reader is not None:
            _kept(close_consumer(reader), self._closings)


def _kept(work: Coroutine[Any, Any, Any], tasks: set[asyncio.Task[Any]]) -> asyncio.Task[Any]:
    """Begin it, and keep it in the set until it has ended: the event loop itself holds no reference to a task."""
    task = asyncio.get_running_loop().create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


async def _close(connection: Connection) -> None:
    if connection.task is not None:
        connection.task.cancel()
    await ended(connection.admin.close())
    await close_producer(connection.producer)


def _silent(error: BaseException) -> bool:
    """It says nothing about the cluster but that we do not hear it."""
    return not isinstance(error, KafkaError) or type(error).__name__ in SILENCE_ERRORS


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
