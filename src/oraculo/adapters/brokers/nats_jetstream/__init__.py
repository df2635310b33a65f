"""NATS JetStream behind the broker port: nats-py's connection, our own bookkeeping of confirmations (docs/adr/0011)."""

from oraculo.adapters.brokers.nats_jetstream.broker import NatsBroker

__all__ = ["NatsBroker"]
