"""RabbitMQ behind the broker port: pika's asyncio connection with confirms in bulk (docs/adr/0009)."""

from oraculo.adapters.brokers.rabbitmq.broker import RabbitMQBroker

__all__ = ["RabbitMQBroker"]
