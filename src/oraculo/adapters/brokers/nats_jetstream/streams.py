"""Queues on JetStream: which stream a queue lives in, its consumer, and what may be forgotten.

A stream that covers the queue's subject is used as it is, and so is a consumer. Where there is no
stream one is made for this queue alone: in files, without any limit that would drop a message. Such a stream keeps what
every consumer acknowledged until it is purged here.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from oraculo.adapters.brokers.nats_jetstream.connection import ApiError, Connection
from oraculo.adapters.brokers.nats_jetstream.url import Options
from oraculo.errors import BrokerUnavailableError
from oraculo.ports.broker import Backlog
from oraculo.wire import names

log = structlog.get_logger("oraculo.broker")

OUR_DESCRIPTION = "made by Oráculo, which purges what every consumer has acknowledged"
OUR_CONSUMER = "made by Oráculo"
ACK_PENDING_MAX = 100_000  # a message that waits for its retry counts too
WAITING_PULLS_MAX = 2048

LEFT_TO_READERS = (names.RESULTS, names.REQUESTS)
CONSUMER_NOT_FOUND, STREAM_NOT_FOUND, OVERLAP, NAME_IN_USE = 10014, 10059, 10065, 10058
REFUSAL_CODES = (10052, 10054)  # invalid subject; message larger than the stream takes
NO_ROOM_CODES = (10077,)  # the stream holds as many messages or bytes as it may

_SUBJECT = re.compile(r"[^\s.*>$\x00-\x20\x7f][^\s.*>\x00-\x20\x7f]*(\.[^\s.*>\x00-\x20\x7f]+)*")
_PLAIN = re.compile(r"[A-Za-z0-9_-]")


class NotASubjectError(BrokerUnavailableError):
    """No stream can ever have this name."""


@dataclass(slots=True)
class Stream:
    """`alone`: no other queue lives in it. `ours`: made here, so purged here."""

    name: str
    consumer: str
    alone: bool
    ours: bool
    in_memory: bool
    attached: bool = False  # the consumer is known to exist
    lease: float = 0.0  # of that consumer, in seconds
    busy: bool = False  # something was sent or taken since it was last looked at
    floor: int = 0  # what every consumer had acknowledged when it was last looked at


def name_of(queue: str) -> str:
    """JetStream takes no dots, blanks, wildcards or slashes in a name. Two queues never share one."""
    return "".join(
        char if _PLAIN.match(char) else "~" if char == "." else "".join(f"={byte:02X}" for byte in char.encode())
        for char in queue
    )


def is_subject(queue: str) -> bool:
    return _SUBJECT.fullmatch(queue) is not None and len(name_of(queue)) <= 255 and not queue.startswith("_INBOX.")


class Streams:
    """What is known of the streams behind one link; a new connection begins with nothing."""

    def __init__(self, connection: Connection, options: Options) -> None:
        self.known: dict[str, Stream] = {}
        self._connection = connection
        self._options = options
        self._making = asyncio.Lock()
        self._prepared: set[str] = set()

    async def of(self, queue: str) -> Stream:
        """The stream of a queue, made if there is none."""
        stream = self.known.get(queue)
        if stream is None:
            async with self._making:
                stream = self.known.get(queue) or await self._find(queue) or await self._make(queue)
        return stream

    async def prepare(self, queues: set[str]) -> None:
        """Streams for answers, tried once: a worker that answers at once may not look for one, and the server drops
        what has none."""
        if queues <= self._prepared:
            return
        for queue in queues:
            try:
                await self.of(queue)
            except (ApiError, BrokerUnavailableError) as error:
                log.warning("stream for answers not made", broker="nats", queue=queue, reason=str(error))
        self._prepared |= queues

    async def with_consumer(self, queue: str) -> Stream:
        stream = await self.of(queue)
        if not stream.attached:
            async with self._making:
                try:
                    stream.lease = await self._attach(stream, queue) / 1e9
                except ApiError as error:
                    if error.code == STREAM_NOT_FOUND:
                        self.forget(queue)
                    raise
                stream.attached = True
        return stream

    def forget(self, queue: str) -> None:
        self.known.pop(queue, None)

    async def backlog(self, queue: str) -> Backlog:
        """What no consumer of this group was given yet. Nothing is made."""
        stream = self.known.get(queue) or (await self._find(queue) if is_subject(queue) else None)
        if stream is None:
            return Backlog(0)
        try:
            info = await self._ask(f"CONSUMER.INFO.{stream.name}.{stream.consumer}")
            waiting, given, now = info["num_pending"], info["delivered"]["stream_seq"], info.get("ts")
        except ApiError as error:
            if error.code not in (CONSUMER_NOT_FOUND, STREAM_NOT_FOUND):
                raise
            stream.attached = False
            try:
                info = await self._ask(f"STREAM.INFO.{stream.name}", {"subjects_filter": queue})
            except ApiError:
                self.forget(queue)
                return Backlog(0)
            waiting, given, now = (info["state"].get("subjects") or {}).get(queue, 0), 0, info.get("ts")
        if not waiting or now is None:
            return Backlog(waiting)
        return Backlog(waiting, await self._age(stream, queue, given + 1, now))

    async def purge(self) -> None:
        """Forget what every consumer of a stream of ours had acknowledged already when this was called before: a group
        that comes a little later still finds it. A stream without any consumer keeps everything. Those of the
        orchestrator are left to it: a worker that answers need not have the right."""
        for queue, stream in list(self.known.items()):
            if not (stream.ours and stream.busy) or (queue in LEFT_TO_READERS and not stream.attached):
                continue
            try:
                before, stream.floor = stream.floor, await self._floor(stream)
                state = (await self._ask(f"STREAM.INFO.{stream.name}"))["state"]
                stream.busy = state["messages"] > 0
                done = min(before, stream.floor)  # the stream may be another one of that name by now
                if done >= state["first_seq"] > 0:
                    await self._ask(f"STREAM.PURGE.{stream.name}", {"seq": done + 1})
            except ApiError:
                self.forget(queue)

    # -- requests ----------------------------------------------------------------------------------------------------

    async def _ask(self, what: str, request: Any = None) -> dict[str, Any]:
        return await self._connection.ask(what, request, patience=self._options.confirm_timeout)

    async def _find(self, queue: str) -> Stream | None:
        found = (await self._ask("STREAM.NAMES", {"subject": queue}))["streams"]
        if not found:
            return None
        try:
            config = (await self._ask(f"STREAM.INFO.{found[0]}"))["config"]
        except ApiError as error:
            if error.code == STREAM_NOT_FOUND:
                return None
            raise
        return self._know(queue, config)

    async def _make(self, queue: str) -> Stream:
        if not is_subject(queue):
            raise NotASubjectError(f"{queue!r} is not a subject that NATS takes")
        name = name_of(queue)
        config = {
            "name": name,
            "description": OUR_DESCRIPTION,
            "subjects": [queue],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": self._options.replicas,
        }
        try:
            made = await self._ask(f"STREAM.CREATE.{name}", config)
        except ApiError as error:
            found = (
                await self._find(queue) if error.code in (OVERLAP, NAME_IN_USE) else None
            )  # another process was quicker
            if found is None:
                raise
            return found
        return self._know(queue, made["config"])

    def _know(self, queue: str, config: dict[str, Any]) -> Stream:
        alone = config.get("subjects") == [queue]
        group = self._options.group
        stream = Stream(
            config["name"],
            group if alone else f"{group}-{name_of(queue)}",
            alone,
            alone and config.get("description") == OUR_DESCRIPTION,
            config.get("storage") == "memory",
            busy=True,
        )
        self.known[queue] = stream
        return stream

    async def _attach(self, stream: Stream, queue: str) -> int:
        """The lease of the consumer, in nanoseconds. One that another program made keeps its own."""
        wanted = int(self._options.lease * 1e9)
        where = f"{stream.name}.{stream.consumer}"
        config: dict[str, Any] = {
            "name": stream.consumer,
            "durable_name": stream.consumer,
            "description": OUR_CONSUMER,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "max_deliver": -1,
            "max_ack_pending": ACK_PENDING_MAX,
            "max_waiting": WAITING_PULLS_MAX,
        }
        if not stream.alone:
            config["filter_subject"] = queue
        try:
            config = (await self._ask(f"CONSUMER.INFO.{where}"))["config"]
        except ApiError as error:
            if error.code != CONSUMER_NOT_FOUND:
                raise
        lease: int = config.get("ack_wait", 0)
        if lease == wanted or config.get("description") != OUR_CONSUMER:
            return lease or wanted
        if not stream.alone:
            where = f"{where}.{queue}"
        await self._ask(
            f"CONSUMER.CREATE.{where}", {"stream_name": stream.name, "config": config | {"ack_wait": wanted}}
        )
        return wanted

    async def _floor(self, stream: Stream) -> int:
        floors: list[int] = []
        while True:
            page = await self._ask(f"CONSUMER.LIST.{stream.name}", {"offset": len(floors)})
            consumers = page.get("consumers") or []
            floors += [one["ack_floor"]["stream_seq"] for one in consumers]
            if not consumers or len(floors) >= page["total"]:
                return min(floors, default=0)

    async def _age(self, stream: Stream, queue: str, sequence: int, now: str) -> float | None:
        try:
            found = await self._ask(f"STREAM.MSG.GET.{stream.name}", {"seq": sequence, "next_by_subj": queue})
        except ApiError:
            return None
        return max(0.0, (_instant(now) - _instant(found["message"]["time"])).total_seconds())


def _instant(text: str) -> datetime:
    """Nanoseconds are cut to what Python reads."""
    whole, _, rest = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{rest[:6]:0<6}+00:00")
