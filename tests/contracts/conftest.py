"""The adapters that every suite here runs on. A new one joins by adding a case to BROKERS or STORES.

A case says how to make the adapter and, where technologies differ, how to bring about what the suite needs: a consumer
that vanishes, a full broker, a second process on the same database. What a technology cannot do is None, and the tests
that need it skip aloud. A case for a server takes its URL from the environment and skips without one.
"""

from __future__ import annotations

import importlib
import itertools
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.ports.broker import Broker
from oraculo.ports.store import Store
from waiting import DEADLINE_S

CONFIRM_LONG = f"?confirm_timeout={DEADLINE_S:g}"  # these suites are not about how quick a busy server confirms

_numbers = itertools.count(1)


class BrokerCase:
    """`broker` is open; `queue()` gives a name that nobody used before."""

    broker: Broker

    async def open(self, stack: AsyncExitStack) -> None:
        raise NotImplementedError

    def queue(self) -> str:
        return f"teste_{secrets.token_hex(4)}_{next(_numbers)}"

    async def lose_consumer(self, queue: str) -> None:
        """Whoever took messages and did not settle them is gone."""
        raise NotImplementedError

    async def small(self, stack: AsyncExitStack, capacity: int) -> Broker | None:
        """A broker that refuses more than `capacity` bytes; None when capacity is the server's affair."""
        return None

    def real(self, reason: str) -> None:
        """Skips, aloud, where only an imitation of the server is to be had and that cannot do what the test needs."""

    async def another(self, stack: AsyncExitStack, group: str | None = None) -> Broker | None:
        """The same server seen by another process, in another consumer group when that is given. None when there is no
        server, or when it knows no groups."""
        return None


class MemoryCase(BrokerCase):
    broker: MemoryBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = MemoryBroker()
        stack.push_async_callback(self.broker.close)

    async def lose_consumer(self, queue: str) -> None:
        await self.broker.redeliver(queue)

    async def small(self, stack: AsyncExitStack, capacity: int) -> Broker | None:
        broker = MemoryBroker(capacity)
        stack.push_async_callback(broker.close)
        return broker


class Odd:
    """Every queue whose name ends with an odd digit."""

    def __contains__(self, queue: object) -> bool:
        return str(queue)[-1] in "13579"


class RoutingCase(BrokerCase):
    broker: RoutingBroker

    async def open(self, stack: AsyncExitStack) -> None:
        self.broker = RoutingBroker(MemoryBroker(), MemoryBroker(), Odd())
        stack.push_async_callback(self.broker.close)

    async def lose_consumer(self, queue: str) -> None:
        for one in self.broker.members.values():
            assert isinstance(one, MemoryBroker)
            await one.redeliver(queue)

    async def small(self, stack: AsyncExitStack, capacity: int) -> Broker | None:
        broker = RoutingBroker(MemoryBroker(capacity), MemoryBroker(capacity), Odd())
        stack.push_async_callback(broker.close)
        return broker


class StoreCase:
    """`store` is open on an empty database."""

    store: Store

    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        raise NotImplementedError

    async def second(self, stack: AsyncExitStack) -> Store | None:
        """The same database opened once more, as another process would; None when nobody else can reach it."""
        return None


class SqliteFileCase(StoreCase):
    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        self._path = str(folder / "oraculo.db")
        self.store = await stack.enter_async_context(SqliteStore(self._path))

    async def second(self, stack: AsyncExitStack) -> Store | None:
        return await stack.enter_async_context(SqliteStore(self._path))


class SqliteMemoryInlineCase(StoreCase):
    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        self.store = await stack.enter_async_context(SqliteStore(":memory:", threads=False))


class SqliteSealedCase(StoreCase):
    """Payload encryption changes nothing for whoever reads and writes."""

    async def open(self, stack: AsyncExitStack, folder: Path) -> None:
        sealing = Sealing([bytes(32)])
        self.store = await stack.enter_async_context(SqliteStore(":memory:", threads=False, sealing=sealing))


BROKERS = ("memory", "routing", "spool", "rabbitmq", "redis", "nats", "kafka")


def broker_case_of(name: str) -> BrokerCase:
    """One module per server: `case_<name>.py` with a class `Case`."""
    ours = {"memory": MemoryCase, "routing": RoutingCase}
    if name in ours:
        return ours[name]()
    case: BrokerCase = importlib.import_module(f"contracts.case_{name}").Case()
    return case


STORES = ("sqlite-file", "sqlite-memory-inline", "sqlite-sealed", "postgres")


def store_case_of(name: str) -> StoreCase:
    """As with brokers."""
    ours = {
        "sqlite-file": SqliteFileCase,
        "sqlite-memory-inline": SqliteMemoryInlineCase,
        "sqlite-sealed": SqliteSealedCase,
    }
    if name in ours:
        return ours[name]()
    case: StoreCase = importlib.import_module(f"contracts.case_{name}").Case()
    return case


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=BROKERS)
async def broker_case(request: pytest.FixtureRequest, stack: AsyncExitStack) -> BrokerCase:
    case = broker_case_of(request.param)
    await case.open(stack)
    return case


@pytest.fixture
def broker(broker_case: BrokerCase) -> Broker:
    return broker_case.broker


@pytest.fixture
def queue(broker_case: BrokerCase) -> str:
    return broker_case.queue()


@pytest.fixture(params=STORES)
async def store_case(request: pytest.FixtureRequest, stack: AsyncExitStack, tmp_path: Path) -> StoreCase:
    case = store_case_of(request.param)
    await case.open(stack, tmp_path)
    return case


@pytest.fixture
def store(store_case: StoreCase) -> Store:
    return store_case.store
