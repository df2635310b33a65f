"""The brokers that come with Oráculo, as its entry points name them. Client libraries are imported when a broker is
opened, and a missing one names the extra to install."""

from __future__ import annotations

from collections.abc import Mapping

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.errors import MissingExtraError
from oraculo.ports.broker import Broker
from oraculo.ports.broker_plugin import BrokerPlugin

Groups = Mapping[str, str]


def _memory(url: str, groups: Groups) -> Broker:
    return MemoryBroker()


def _rabbitmq(url: str, groups: Groups) -> Broker:
    try:
        from oraculo.adapters.brokers.rabbitmq import RabbitMQBroker
    except ModuleNotFoundError as error:
        raise MissingExtraError("amqp://", "rabbitmq") from error
    return RabbitMQBroker(url)


def _redis(url: str, groups: Groups) -> Broker:
    try:
        from oraculo.adapters.brokers.redis_streams import RedisBroker
    except ModuleNotFoundError as error:
        raise MissingExtraError("redis://", "redis") from error
    return RedisBroker(url)


def _nats(url: str, groups: Groups) -> Broker:
    try:
        from oraculo.adapters.brokers.nats_jetstream import NatsBroker
    except ModuleNotFoundError as error:
        raise MissingExtraError("nats://", "nats") from error
    return NatsBroker(url)


def _kafka(url: str, groups: Groups) -> Broker:
    try:
        from oraculo.adapters.brokers.kafka import KafkaBroker
    except ModuleNotFoundError as error:
        raise MissingExtraError("kafka://", "kafka") from error
    return KafkaBroker(url, groups)


MEMORY = BrokerPlugin(_memory)
RABBITMQ = BrokerPlugin(_rabbitmq, "queue on RabbitMQ", "pika", "docs/brokers/rabbitmq.md")
REDIS = BrokerPlugin(_redis, "stream on Redis", "redis", "docs/brokers/redis.md")
NATS = BrokerPlugin(_nats, "subject on NATS", "nats-py", "docs/brokers/nats.md")
KAFKA = BrokerPlugin(_kafka, "topic on Kafka", "aiokafka", "docs/brokers/kafka.md")
