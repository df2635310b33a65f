"""What the client raises when the cluster cannot be had. uvloop says RuntimeError of a connection that was closed under
the client, and the client lets that through."""

from aiokafka.errors import KafkaError

FAULTS = (KafkaError, OSError, RuntimeError)  # a TimeoutError is an OSError
