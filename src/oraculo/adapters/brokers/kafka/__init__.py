"""Kafka behind the broker port: aiokafka with batches of our own (docs/adr/0012)."""

from oraculo.adapters.brokers.kafka.broker import KafkaBroker

__all__ = ["KafkaBroker"]
