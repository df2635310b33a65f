"""Is every broker really there? A message through each of them, end to end, and an eye on consumers that fell silent.

A connection can look alive while nothing comes through it any more. So a small message is published to each broker and
fetched back, now and then; and a queue in which messages wait while its consumer here gets none is noticed. In both
cases the connection is made anew, with all its consumers.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Protocol

import orjson
import structlog

from oraculo.errors import BrokerError
from oraculo.ports.broker import Backlog, Broker, Outgoing, Settlement
from oraculo.ports.broker_group import group_of
from oraculo.ports.clock import Clock
from oraculo.wire import names

log = structlog.get_logger("oraculo.probe")

QUEUE = names.PROBE
EVERY = 15.0  # seconds between two probes of a broker that works
AGAIN = 1.0  # and of one that does not
PROBE_TIMEOUT_S = 5.0  # for a probe to come back
PARTITIONED_WAIT = 1.0
STALE = 60.0  # seconds after which a probe that is found was somebody's who has given up
SILENT_AFTER = 3  # looks in a row at waiting messages that nobody gets
QUEUES = 200  # that are measured at most


@dataclass(slots=True)
class Probe:
    """What is known of one broker."""

    ok: bool | None = None  # None: not probed yet
    at: datetime | None = None
    round_trip_s: float | None = None
    error: str = ""
    failures: int = 0  # in a row
    resets: int = 0
    durability: str | None = None
    backlogs: dict[str, Backlog] = field(default_factory=dict)  # of the queues that we know


class MonitoredConsumer(Protocol):
    """A consumer of this process. `slow`: other consumers of its queue may work long on what they took."""

    queue: str
    slow: bool
    fetches: int
    asking: bool

    def taken(self, broker: str | None = None) -> int: ...


class Prober:
    """`members` are the brokers by name; `probed` is told how each probe went; `doubted` says of which ones more probes
    are wanted."""

    def __init__(
        self,
        members: Mapping[str, Broker],
        clock: Clock,
        ears: Collection[MonitoredConsumer] = (),
        queues: Callable[[], Collection[str]] = tuple,
        probed: Callable[[str, bool, str], None] = lambda _name, _ok, _error: None,
        doubted: Callable[[str], bool] = lambda _name: False,
        every: float = EVERY,
    ) -> None:
        self._members = dict(members)
        self._clock = clock
        self._ears = ears
        self._queues = queues
        self._probed = probed
        self._doubted = doubted
        self._every = every
        self._silent: dict[tuple[str, str], tuple[int, int, int]] = {}  # looks in a row, deliveries, fetches
        self.found = {name: Probe() for name in self._members}

    async def run(self) -> None:
        await asyncio.gather(*(self._watch(name) for name in self._members))

    async def _watch(self, name: str) -> None:
        while True:
            ok = await self.probe(name)
            if ok:
                await self._look_around(name)
            await self._pause(name, ok)

    async def _pause(self, name: str, ok: bool) -> None:
        """Long when all is well; a broker that is in doubt meanwhile is probed soon."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._every
        await asyncio.sleep(min(AGAIN, self._every))
        while ok and clock() < until and not self._suspicious(name):  # noqa: ASYNC110
            await asyncio.sleep(min(AGAIN, until - clock()))

    async def _look_around(self, name: str) -> None:
        try:
            async with asyncio.timeout(self._every):
                await self.look_for_silence(name)
                await self._measure(name)
        except (BrokerError, TimeoutError) as error:
            log.debug("cannot look around", broker=name, error=str(error))

    async def _measure(self, name: str) -> None:
        found, member = self.found[name], self._members[name]
        found.durability = await member.durability()
        found.backlogs = {queue: await member.backlog(queue) for queue in sorted(self._queues())[:QUEUES]}

    def _suspicious(self, name: str) -> bool:
        looks = [looks for (broker, _), (looks, _, _) in self._silent.items() if broker == name]
        return self._doubted(name) or any(looks)

    async def probe(self, name: str) -> bool:
        """One message there and back."""
        found, began = self.found[name], perf_counter()
        error = ""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                await self._round_trip(self._members[name])
            found.round_trip_s = perf_counter() - began
        except TimeoutError:
            error = f"a probe did not come back within {PROBE_TIMEOUT_S:g} s"
        except BrokerError as failed:
            error = str(failed)
        found.at = self._clock.now()
        ok = found.ok = not error
        if error:
            found.failures += 1
            if found.failures == 1:
                log.warning("probe failed", broker=name, error=error)
            if self._members[name].health().connected and found.failures % 2 == 0:
                await self._reset(name, error)
        elif found.failures:
            log.info("probe works again", broker=name, failures=found.failures)
            found.failures = 0
        found.error = error
        self._probed(name, ok, error)
        return ok

    async def _round_trip(self, broker: Broker) -> None:
        """Each probe takes one message, so that several processes can share the queue."""
        token = secrets.token_hex(8)
        now = self._clock.now()
        probe = Outgoing(QUEUE, orjson.dumps({"sonda": token, "em": now}), "")
        report = await broker.publish([probe])
        if report.no_queue:
            await broker.fetch(QUEUE, limit=1, wait=0)  # which makes the queue
            report = await broker.publish([probe])
        report.raise_unless_complete()
        if broker.traits.partitioned:
            await self._partitioned(broker)
            return
        while True:
            for delivery in await broker.fetch(QUEUE, limit=1, wait=PROBE_TIMEOUT_S):
                await broker.settle([Settlement(delivery)])
                sonda, at = _read(delivery.body)
                if sonda == token or (at is not None and abs((now - at).total_seconds()) < STALE):
                    return

    async def _partitioned(self, broker: Broker) -> None:
        """Where a queue is divided among its readers (Kafka), a probe may be for another process to read, which is not
        reading now: that it was confirmed, and that reading goes without an error, has to do."""
        taken = await broker.fetch(QUEUE, limit=100, wait=PARTITIONED_WAIT)
        await broker.settle([Settlement(delivery) for delivery in taken])

    async def look_for_silence(self, name: str) -> None:
        """Messages wait, a consumer here asks for them, and gets none: it is deaf. Where a queue is divided among its
        readers, the messages may be waiting for another one that is slow."""
        member = self._members[name]
        divided = member.traits.partitioned
        for ear in [ear for ear in self._ears if not (divided and ear.slow)]:
            key = (name, ear.queue)
            taken, fetches = ear.taken(name), ear.fetches
            looks, taken_before, fetches_before = self._silent.get(key, (0, -1, -1))
            try:
                waiting = (await member.backlog(ear.queue)).waiting
            except BrokerError:
                waiting = None
            if not waiting or taken != taken_before or not (ear.asking or fetches > fetches_before):
                self._silent[key] = (0, taken, fetches)
                continue
            self._silent[key] = (looks + 1, taken, fetches)
            if looks + 1 >= SILENT_AFTER:
                self._silent.pop(key)
                await self._reset(name, f"{waiting} messages wait in {ear.queue} and none of them comes")

    async def _reset(self, name: str, reason: str) -> None:
        self.found[name].resets += 1
        log.warning("connection made anew", broker=name, reason=reason)
        try:
            await self._members[name].reset()
        except BrokerError as error:
            log.warning("cannot be made anew yet", broker=name, error=str(error))


def prober_of(
    broker: Broker,
    clock: Clock,
    ears: Collection[MonitoredConsumer] = (),
    queues: Callable[[], Collection[str]] = tuple,
) -> Prober:
    """The prober of one broker, or of the members of a group."""
    group = group_of(broker)
    return Prober(group.members, clock, ears, queues, group.probed, group.doubted)


def _read(body: bytes) -> tuple[str | None, datetime | None]:
    try:
        document = orjson.loads(body)
        return str(document["sonda"]), datetime.fromisoformat(document["em"])
    except (ValueError, TypeError, KeyError):
        return None, None
