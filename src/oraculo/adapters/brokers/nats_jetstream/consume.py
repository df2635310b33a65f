"""Taking messages from one queue: every `fetch` that waits has a subscription and a pull request of its own.

A request is answered with what is there, up to its limit, as soon as there is anything, and is over then: nothing is
taken that no fetch asked for. What arrives for a fetch that went away is kept for the next one, for a second; then it
is given back to the server.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import orjson

from oraculo.adapters.brokers.nats_jetstream.connection import NO_RESPONDERS, Connection
from oraculo.ports.broker import Delivery

KEEP_TIMEOUT_S = 1.0  # how long a message waits here for a fetch
PULL_TIMEOUT_S = 5.0  # a request is made anew after this long: one that the server forgot is not waited for
ANSWER_TIMEOUT_S = 1.0  # how long after that the server may still answer
BATCH_END_TIMEOUT_S = 0.1  # the rest of an answer follows its first message at once, or not at all
REFUSED_PAUSE_S = 0.01  # between requests that the server refuses because others wait for the same messages

NO_ANSWER = b"no answer"
ANSWER_MAX_BYTES = 16 * 1024 * 1024  # of one answer: a server cuts off who does not read fast enough

_OVER = (b"404", b"408")


class PullRequest:
    """A subscription with at most one open request. `waiter` is the fetch that uses it now, if one does."""

    def __init__(self, queue: JetStreamConsumer) -> None:
        connection = queue.connection
        self._queue = queue
        self._count = 0
        self.inbox = b"%b.q%d" % (connection.inbox, len(connection.sinks))
        self.got: list[Delivery] = []
        self.left = 0  # messages that the open request may still bring; 0: none is open
        self.ends = 0.0
        self.trouble = b""
        self.waiter: asyncio.Future[None] | None = None
        self._grace: asyncio.TimerHandle | None = None
        connection.subscribe_to(self.inbox + b".*", self._arrived)

    def ask(self, limit: int, wait: float) -> None:
        """`wait` 0: only what is there now."""
        request: dict[str, int | bool] = {"batch": limit, "no_wait": True, "max_bytes": self._queue.most_bytes}
        if wait > 0:
            request["expires"] = max(1_000_000, int(wait * 1e9))
        body = orjson.dumps(request)
        self._count += 1
        self.left, self.trouble = limit, b""
        self.ends = self._queue.clock() + wait + ANSWER_TIMEOUT_S
        self._queue.connection.send(
            b"PUB %b %b.%d %d\r\n%b\r\n" % (self._queue.next, self.inbox, self._count, len(body), body)
        )

    @property
    def open(self) -> bool:
        return self.left > 0 and self._queue.clock() < self.ends

    def release(self) -> None:
        """Wake the fetch that waits, whatever came so far."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def give_up(self) -> None:
        """The end of the answer did not come: the request counts as closed."""
        if self.left > 0 and not self.got:
            self.trouble = NO_ANSWER
        self.left = 0
        self.release()

    def _arrived(self, subject: bytes, reply: bytes, body: bytes, headers: bytes | None) -> None:
        if not reply:
            if headers is not None and subject.endswith(b".%d" % self._count):
                self._ended(headers)
            return
        words = reply.split(b".")
        again = words[4 if len(words) < 11 else 6] != b"1"
        delivery = Delivery(self._queue.name, body, reply, again, read_headers(headers) if headers else {})
        self.left -= 1
        if self.waiter is None:
            self._queue.keep([delivery])
            return
        self.got.append(delivery)
        if self.left <= 0:
            self.release()
        elif self._grace is None:
            self._grace = self._queue.loop.call_later(BATCH_END_TIMEOUT_S, self.give_up)

    def _ended(self, headers: bytes) -> None:
        status = headers[9:12]
        if status == b"100":
            return
        self.left = 0
        if status not in _OVER and b"MaxBytes" not in headers:
            self.trouble = headers
        self.release()


class JetStreamConsumer:
    """Takes messages from one queue for the fetches of this process. `nak` gives messages back to the server."""

    def __init__(
        self, name: str, connection: Connection, stream: str, consumer: str, nak: Callable[[list[bytes]], None]
    ) -> None:
        self.name = name
        self.connection = connection
        self.most_bytes = max(ANSWER_MAX_BYTES, connection.max_payload + 65_536)
        self.next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}".encode()
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.kept: deque[Delivery] = deque()
        self._nak = nak
        self._pulls: list[PullRequest] = []  # all of them; those with a waiter are in use
        self._return: asyncio.TimerHandle | None = None

    async def fetch(self, limit: int, until: float, *, ask: bool) -> tuple[list[Delivery], bytes]:
        """The deliveries, and what the server said against it. Empty when the time is over, the connection lost, or the
        server refused. With `ask` the server is asked even when the time is over."""
        while not self.kept:
            remaining = until - self.clock()
            if (remaining <= 0 and not ask) or self.connection.lost.done():
                return [], b""
            pull = self._idle(adopt=remaining > 0)
            ask = False
            if not pull.open:
                pull.ask(limit, max(0.0, min(remaining, PULL_TIMEOUT_S)))
            got = await self._wait(pull, limit)
            if got:
                return got, b""
            if pull.trouble:
                return [], pull.trouble
            if not pull.open and until - self.clock() > REFUSED_PAUSE_S:
                await asyncio.sleep(REFUSED_PAUSE_S)
        got = [self.kept.popleft() for _ in range(min(limit, len(self.kept)))]
        self._wake()
        return got, b""

    def keep(self, deliveries: list[Delivery]) -> None:
        """Keep deliveries for a fetch that waits, or for the next one."""
        if not deliveries:
            return
        self.kept.extend(deliveries)
        self._wake()
        if self._return is None:
            self._return = self.loop.call_later(KEEP_TIMEOUT_S, self.give_back)

    def give_back(self) -> None:
        if self._return is not None:
            self._return.cancel()
            self._return = None
        if self.kept:
            self._nak([delivery.tag for delivery in self.kept])
            self.kept.clear()

    def stop(self) -> None:
        """The connection is gone, or about to be."""
        if self._return is not None:
            self._return.cancel()
        for pull in self._pulls:
            pull.release()

    def _wake(self) -> None:
        """Wake one fetch that has nothing yet, if there is something for it."""
        if self.kept:
            for pull in self._pulls:
                if pull.waiter is not None and not pull.waiter.done() and not pull.got:
                    pull.release()
                    return

    def _idle(self, *, adopt: bool) -> PullRequest:
        """A pull that no fetch uses: with an open request if the caller can wait for it, else without one."""
        free = [pull for pull in self._pulls if pull.waiter is None]
        for pull in free:
            if pull.open is adopt:
                return pull
        for pull in free:
            if not pull.open:
                return pull
        self._pulls.append(PullRequest(self))
        return self._pulls[-1]

    async def _wait(self, pull: PullRequest, limit: int) -> list[Delivery]:
        pull.waiter = self.loop.create_future()
        timer = self.loop.call_at(pull.ends, pull.give_up)
        try:
            await pull.waiter
            got, pull.got = pull.got, []
        except asyncio.CancelledError:
            pull.waiter = None
            pull.release()
            left, pull.got = pull.got, []
            self.keep(left)
            self._wake()  # it may have been our turn
            raise
        finally:
            timer.cancel()
            pull.waiter = None
        self.keep(got[limit:])
        return got[:limit]


def is_gone(trouble: bytes) -> bool:
    """The consumer, its stream, or JetStream as a whole: it is to be made again."""
    return trouble.startswith(NO_RESPONDERS) or b"Consumer Deleted" in trouble


def read_status(trouble: bytes) -> str:
    """`NATS/1.0 409 Consumer Deleted` → `409 Consumer Deleted`."""
    return trouble.partition(b"\r\n")[0].removeprefix(b"NATS/1.0 ").decode("utf-8", "replace")


def read_headers(raw: bytes) -> dict[str, str]:
    """Whatever a client put there: the last of a name counts, a line without a colon does not."""
    found = {}
    for line in raw.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found
