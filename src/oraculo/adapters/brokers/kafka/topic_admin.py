"""Topics of a Kafka cluster, for its operators: look at them, make them, give them more partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from oraculo.adapters.brokers.kafka.client_internals import ended, start
from oraculo.adapters.brokers.kafka.faults import FAULTS
from oraculo.adapters.brokers.kafka.url import Options
from oraculo.errors import BrokerUnavailableError

ADMIN_TIMEOUT_S = 20.0
TOPIC_EXISTS = 36


@dataclass(frozen=True, slots=True)
class TopicFound:
    """A topic as it is. `retention` is None when records are kept for ever, or when it may not be asked for."""

    partitions: int
    replicas: int
    retention: timedelta | None


@dataclass(frozen=True, slots=True)
class ClusterFound:
    brokers: int
    topics: Mapping[str, TopicFound]


class TopicAdmin:
    """One conversation with a cluster. Every method raises BrokerUnavailableError when the cluster cannot be had."""

    def __init__(self, options: Options) -> None:
        self._options = options

    async def look(self, names: Iterable[str]) -> ClusterFound:
        """Count the brokers and describe the named topics that exist. Asking creates no topic."""
        async with self._client() as client:
            wanted, brokers = set(names), (await client.describe_cluster())["brokers"]
            every = await client.describe_topics()
            parts = {one["topic"]: one["partitions"] for one in every if one["topic"] in wanted}
            kept = await self._retentions(client, list(parts))
            topics = {
                name: TopicFound(len(found), min(len(part["replicas"]) for part in found), kept.get(name))
                for name, found in parts.items()
                if found
            }
            return ClusterFound(len(brokers), topics)

    async def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        """One that exists already is left as it is."""
        async with self._client() as client:
            wanted = NewTopic(name, partitions, replicas, topic_configs=dict(config))
            for _, code, *reason in (await client.create_topics([wanted])).topic_errors:
                if code not in (0, TOPIC_EXISTS):
                    raise for_code(code)(*reason)

    async def grow(self, name: str, partitions: int) -> None:
        """Give the topic so many partitions; it had fewer."""
        async with self._client() as client:
            await client.create_partitions({name: NewPartitions(partitions)})

    @staticmethod
    async def _retentions(client: AIOKafkaAdminClient, names: list[str]) -> dict[str, timedelta]:
        if not names:
            return {}
        asked = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        found = {}
        for answer in await client.describe_configs(asked):
            for code, _, _, name, entries, *_ in answer.resources:
                kept = {entry[0]: entry[1] for entry in entries}.get("retention.ms") if not code else None
                if kept is not None and int(kept) >= 0:
                    found[name] = timedelta(milliseconds=int(kept))
        return found

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[AIOKafkaAdminClient]:
        client = AIOKafkaAdminClient(**self._options.connection(), request_timeout_ms=int(ADMIN_TIMEOUT_S * 1000))
        try:
            async with asyncio.timeout(ADMIN_TIMEOUT_S):
                await start(client)
                yield client
        except FAULTS as error:
            text = str(error) or type(error).__name__
            raise BrokerUnavailableError(f"Kafka at {self._options.where}: {text}") from error
        finally:
            await ended(client.close())
