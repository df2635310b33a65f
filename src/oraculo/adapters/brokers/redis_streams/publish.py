"""Publish a batch: all commands go out, then all answers are waited for, and each message has its own fate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oraculo.adapters.brokers.redis_streams.connection import ReplyError, pack
from oraculo.adapters.brokers.redis_streams.entries import add
from oraculo.adapters.brokers.redis_streams.session import Session
from oraculo.ports.broker import ALL_CONFIRMED, Outgoing, PublishReport, Refusal

PING_COMMAND = pack(("PING",))
CHUNK_MAX_BYTES = 256 * 1024  # of one write
SERVER_REPLACED_CODES = (
    "READONLY",
    "LOADING",
    "MASTERDOWN",
)  # this server takes no messages; another may be in its place soon
ERROR_TEXTS = {
    "OOM": "the memory of the server is full",
    "MISCONF": "the server cannot write its files",
    "NOPERM": "this user may not publish",
    "NOREPLICAS": "the server has too few replicas",
}


class Publication:
    """The messages of one publish: `send` sends them and waits; `report` then tells what became of each."""

    def __init__(self, session: Session, messages: Sequence[Outgoing]) -> None:
        self._session = session
        self._messages = messages
        self._refused: list[Refusal] = []
        self._answers: list[Any] = []
        self._why = ""
        self._replicas: Any = None  # how many of them have it

    @property
    def queues(self) -> set[str]:
        return {message.queue for message in self._messages}

    async def send(self) -> None:
        orders, options = self._session.orders, self._session.options
        for data, count in _chunks(self._pack()):
            orders.send(data, count, self._answers)
            await orders.room()
        if options.wait_replicas:
            last = pack(("WAIT", options.wait_replicas, int(options.confirm_timeout * 700)))
        else:
            last = PING_COMMAND
        (self._replicas,) = await orders.answers(last, 1)

    def failed(self, why: str) -> None:
        """Not everything was answered."""
        self._why = why

    def report(self) -> PublishReport:
        answers, messages = self._answers, self._messages
        needed = self._session.options.wait_replicas
        unconfirmed: Sequence[Outgoing]
        if needed and not (isinstance(self._replicas, int) and self._replicas >= needed):
            unconfirmed = messages
            self._why = self._why or f"{self._replicas} of {needed} replicas have it"
        elif len(answers) == len(messages) and not any(isinstance(answer, ReplyError) for answer in answers):
            unconfirmed = ()
        else:
            unconfirmed = [*self._not_taken(), *messages[len(answers) :]]
        if not unconfirmed and not self._refused:
            return ALL_CONFIRMED
        where, total = self._session.options.where, len(messages) + len(self._refused)
        what = f"{len(unconfirmed)} of {total} messages not confirmed" + (f" ({self._why})" if self._why else "")
        if self._refused:
            what += f", {len(self._refused)} refused ({self._refused[0].reason})"
        return PublishReport(unconfirmed, refused=self._refused, reason=f"redis {where}: {what}")

    def _not_taken(self) -> Iterator[Outgoing]:
        """Those whose answer is an error. A name that is used for something else is refused for good."""
        for message, answer in zip(self._messages, self._answers, strict=False):
            if not isinstance(answer, ReplyError):
                continue
            text = str(answer)
            code = text.partition(" ")[0]
            if code == "WRONGTYPE":
                self._refused.append(
                    Refusal(message, f"the key {message.queue!r} holds something that is not a stream")
                )
                continue
            if code in SERVER_REPLACED_CODES:
                self._session.drop(text)
            self._why = self._why or (f"{ERROR_TEXTS[code]}: {text}" if code in ERROR_TEXTS else text)
            yield message

    def _pack(self) -> list[bytes]:
        """The commands. What cannot be sent is refused here, so that it harms no other message."""
        largest = self._session.largest
        try:
            packed = [add(message) for message in self._messages]
            if max(map(len, packed)) <= largest:
                return packed
        except (ValueError, TypeError):
            pass  # one of them cannot be written
        good: list[Outgoing] = []
        packed = []
        for message in self._messages:
            try:
                data = add(message)
            except (ValueError, TypeError) as error:
                self._refused.append(Refusal(message, f"it cannot be written: {error}"))
                continue
            if len(data) > largest:
                self._refused.append(
                    Refusal(message, f"{len(data)} bytes; the server takes {largest} (proto-max-bulk-len)")
                )
                continue
            good.append(message)
            packed.append(data)
        self._messages = good
        return packed


def _chunks(packed: list[bytes]) -> Iterator[tuple[bytes, int]]:
    start = size = 0
    for end, data in enumerate(packed, 1):
        size += len(data)
        if size >= CHUNK_MAX_BYTES or end == len(packed):
            yield b"".join(packed[start:end]), end - start
            start, size = end, 0
