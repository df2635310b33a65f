"""The brokers that are installed, by the scheme of their URLs: read from the entry points `oraculo.brokers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import structlog

from oraculo.errors import SettingsError
from oraculo.ports.broker import Broker
from oraculo.ports.broker_plugin import ENTRY_POINTS, BrokerPlugin

log = structlog.get_logger("oraculo.broker")

OURS = "oraculo"
FIRST = ("memory", "amqp", "amqps", "redis", "rediss", "nats", "kafka")  # the order in which they are listed


def scheme_of(url: str) -> str:
    return url.strip().partition("://")[0].lower()


def schemes() -> tuple[str, ...]:
    """Every scheme that a broker is registered for: Oráculo's own first, the others by name."""
    return tuple(_registered())


def plugin_of(scheme: str) -> BrokerPlugin:
    """SettingsError if no broker is registered for the scheme, or if what is registered is no BrokerPlugin."""
    found = _registered().get(scheme)
    if found is None:
        raise SettingsError("ORACULO_BROKER", f"{scheme}://", f"one of {', '.join(schemes())}")
    plugin = found.load()
    if not isinstance(plugin, BrokerPlugin):
        raise SettingsError("ORACULO_BROKER", f"{scheme}://", f"{found.value} is not a BrokerPlugin")
    return plugin


def plugins() -> dict[str, BrokerPlugin]:
    """Scheme → what is registered for it."""
    return {scheme: plugin_of(scheme) for scheme in schemes()}


def open_broker(url: str, groups: Mapping[str, str] | None = None) -> Broker:
    """The broker of one URL. `groups`: queues that are read in a consumer group of that name."""
    return plugin_of(scheme_of(url)).open(url, groups or {})


@cache
def _registered() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=_place):
        if entry.name in found and found[entry.name].value != entry.value:
            log.warning("broker ignored: its scheme is taken", scheme=entry.name, broker=entry.value)
        found.setdefault(entry.name, entry)
    return found


def _place(entry: EntryPoint) -> tuple[bool, int, str]:
    """Oráculo's own before all others, so that no other distribution replaces one of them."""
    ours = entry.dist is not None and entry.dist.name == OURS
    return not ours, FIRST.index(entry.name) if entry.name in FIRST else len(FIRST), entry.name
