"""A broker for Oráculo that keeps its queues in a SQLite file: `spool:////var/lib/queues.db?lease=10`.

docs/brokers/writing-one.md explains it line by line.
"""

from __future__ import annotations

from collections.abc import Mapping

from oraculo.ports.broker import Broker
from oraculo.ports.broker_plugin import BrokerPlugin


def _open(url: str, groups: Mapping[str, str]) -> Broker:
    from oraculo_spool.broker import SpoolBroker

    return SpoolBroker(url)


SPOOL = BrokerPlugin(_open, queue="rows of a queue in SQLite", page="the README of oraculo-spool")
