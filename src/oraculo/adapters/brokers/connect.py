"""From the URLs of a setting to a broker, with failover where there are several."""

from __future__ import annotations

from collections.abc import Mapping

from oraculo.adapters.brokers.breaker import DWELL_S
from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.registry import open_broker
from oraculo.ports.broker import Broker


def broker_of(urls: str, dwell: float = DWELL_S, groups: Mapping[str, str] | None = None) -> Broker:
    """The broker of one URL, or of several with commas between: then with failover, the first one first. `groups` names
    the consumer group of Kafka in which a queue is read."""
    members = [open_broker(url.strip(), groups) for url in urls.split(",")]
    if len(members) == 1:
        return members[0]
    return FailoverBroker(members, dwell=dwell)
