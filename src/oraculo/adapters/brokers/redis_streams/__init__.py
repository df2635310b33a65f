"""Redis Streams behind the broker port: hiredis on connections of our own (docs/adr/0010)."""

from oraculo.adapters.brokers.redis_streams.broker import RedisBroker

__all__ = ["RedisBroker"]
