"""Signed messages: who sent one is said by the key that signed it, and not by the queue that it lay in.

The keys are those of the API that have a public half. All of them are known to this process; a message that names
another makes it look again, a few times in a while. Answers count for tickets of the queues of their worker, requests
and approvals as those of their key; what is not signed, or wrong, is a dead letter with the reason `unauthenticated`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from oraculo.core.access import Actor, Scope
from oraculo.core.commands import RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.tenants import tenant_of
from oraculo.errors import StoreError, WireError
from oraculo.ports.api_keys import ApiKey, ApiKeys
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.work import Work, by_actor
from oraculo.runtime.bound_answers import answer_of
from oraculo.runtime.consumer import quarantined
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.signatures import HEADER, Signature, decoded, signature_of
from oraculo.wire.ticket_tokens import HEADER as TOKEN_HEADER
from oraculo.wire.ticket_tokens import UNAUTHENTICATED

log = structlog.get_logger("oraculo.signatures")

RELOAD_INTERVAL_S = 5.0
UNKNOWN_MAX_READS = 10  # of the store in RELOAD_INTERVAL_S, for names of keys that are not known
MODES: Final = ("off", "accept", "require")

Verify = Callable[[bytes, bytes, bytes], bool]  # public half, signature, what it is over
# The same for many of them. It blocks; OSError when it cannot be done.
VerifyMany = Callable[[Sequence[tuple[bytes, bytes, bytes]]], Sequence[bool]]
TOGETHER_MIN = 8  # signatures; fewer take less time than to hand them to another process
PAUSE_EVERY = 100  # signatures that are verified here, before others have their turn


@dataclass(frozen=True, slots=True)
class _Signer:
    key: ApiKey
    actor: Actor
    public: bytes


class SignatureRing:
    """The keys that sign messages, as this process knows them. `verify` never raises; `verify_many` does the same
    beside the event loop, what it cannot do is done here. `answers_signed`: an answer without a signature counts
    nowhere."""

    def __init__(
        self,
        store: ApiKeys,
        clock: Clock,
        verify: Verify,
        verify_many: VerifyMany | None = None,
        *,
        answers_signed: bool = False,
    ) -> None:
        self._verify_many = verify_many
        self.answers_signed = answers_signed
        self._store = store
        self._clock = clock
        self._verify = verify
        self._signers: dict[str, _Signer] = {}
        self._reads_left = UNKNOWN_MAX_READS

    async def reload(self) -> None:
        """Read the keys of the store."""
        found = {key.id: key for key in await self._store.api_keys() if key.public_key}
        self._signers = {
            id: _Signer(key, key.actor, public)
            for id, key in found.items()
            if (public := decoded(key.public_key or "")) is not None
        }

    async def run(self) -> None:
        """Follow the store for ever. While it is away the keys that are known stay good until they expire."""
        while True:
            await asyncio.sleep(RELOAD_INTERVAL_S)
            self._reads_left = UNKNOWN_MAX_READS
            try:
                await self.reload()
            except StoreError as error:
                log.warning("keys of signatures not read: store unavailable", error=str(error))

    async def _learn(self, found: Sequence[Signature | None]) -> None:
        """Look for keys that messages name and that are not known yet. StoreError: not now."""
        if all(one is None or one.key_id in self._signers for one in found):
            return
        if self._reads_left > 0:
            self._reads_left -= 1
            await self.reload()

    async def signers_of(self, found: Sequence[Signature | None]) -> list[Actor | WireError | None]:
        """For each signature the actor whose it is, or the refusal `unauthenticated` unless a key that is good made it;
        None for none. StoreError: it cannot be told now."""
        await self._learn(found)
        known = [None if one is None else self._signers.get(one.key_id) for one in found]
        now = self._clock.now()
        asked = [
            (signer.public, one.value, one.over)
            for one, signer in zip(found, known, strict=True)
            if one is not None and signer is not None and signer.key.is_live(now)
        ]
        right = iter(await self._verified(asked))
        told: list[Actor | WireError | None] = []
        for one, signer in zip(found, known, strict=True):
            if one is None:
                told.append(None)
            elif signer is None or not signer.key.is_live(now):
                told.append(_refusal(f"no key {one.key_id} that signs is good here"))
            elif next(right):
                told.append(signer.actor)
            else:
                told.append(_refusal(f"the signature is not one of the key {one.key_id} over this message"))
        return told

    async def _verified(self, asked: Sequence[tuple[bytes, bytes, bytes]]) -> Sequence[bool]:
        if self._verify_many is not None and len(asked) >= TOGETHER_MIN:
            try:
                return await asyncio.to_thread(self._verify_many, asked)
            except OSError as error:
                log.warning("signatures are verified in the event loop: the other process failed", error=str(error))
                self._verify_many = None
        right: list[bool] = []
        for number, one in enumerate(asked, 1):
            right.append(self._verify(*one))
            if number % PAUSE_EVERY == 0:
                await asyncio.sleep(0)
        return right


class HasState(Protocol):
    """The part of an engine that tells what an answer is about."""

    async def state(self, run: int) -> Orchestration | None: ...

    async def state_of(self, correlation_id: str) -> Orchestration | None: ...


Signed = tuple[bytes, Mapping[str, str]]  # body, headers


class MessageGuard:
    """Judges messages that do what `scope` names. `required`: one without a signature is refused."""

    def __init__(self, ring: SignatureRing, engine: HasState, scope: Scope, *, required: bool) -> None:
        self._ring = ring
        self._engine = engine
        self._scope = scope
        self._required = required

    async def judged(self, messages: Sequence[Signed], works: Sequence[Work]) -> list[Work]:
        """The work of each message as that of its sender, or a dead letter. StoreError: it cannot be told now."""
        found = [signature_of(body, headers) for body, headers in messages]
        senders = await self._ring.signers_of(found)
        return [
            await self._judge(sender, headers, work)
            for sender, (_, headers), work in zip(senders, messages, works, strict=True)
        ]

    async def one(self, body: bytes, work: Work) -> Work:
        """The same for one message without headers."""
        return (await self.judged([(body, NO_HEADERS)], [work]))[0]

    async def _judge(self, sender: Actor | WireError | None, headers: Mapping[str, str], work: Work) -> Work:
        if work.dead is not None:
            return work
        try:
            if sender is None:
                if self._required or HEADER in headers:
                    raise _refusal("the message is not signed by a key of its sender")
                return work
            actor = self._allowed(sender, work)
            if isinstance(work.command, RecordResult):
                return await self._answer(actor, headers, work)
        except WireError as error:
            return quarantined(work.body, work.queue, error, work.correlation_id)
        return by_actor(work, actor)

    def _allowed(self, actor: Actor | WireError, work: Work) -> Actor:
        if isinstance(actor, WireError):
            raise actor
        if not actor.may(self._scope):
            raise _refusal(f"the key {actor.id} has no {self._scope}")
        if actor.tenant != tenant_of(work.queue):
            raise _refusal(f"the key {actor.id} is of another tenant than the queue")
        return actor

    async def _answer(self, actor: Actor, headers: Mapping[str, str], work: Work) -> Work:
        """The answer as its worker's. It names its attempt where the signature covers it, and is good for no other."""
        answer = work.command
        assert isinstance(answer, RecordResult)
        if work.fixed and TOKEN_HEADER in headers:
            raise _refusal("the token of a signed answer stands in its body, where the signature covers it")
        if answer.ticket is None or answer.attempt is None:
            raise _refusal("a signed answer names its ticket_id and its tentativa")
        bound = await answer_of(actor, work, self._state_for(work))
        if bound.dead is None:
            bound = by_actor(bound, actor)
            bound.fixed = bound.fixed or HEADER in headers  # whoever gets the body alone could not judge it again
        return bound

    def _state_for(self, work: Work) -> Callable[[str], Awaitable[Orchestration | None]]:
        if work.correlation_id:
            return self._engine.state_of

        async def by_run(_name: str) -> Orchestration | None:
            return await self._engine.state(work.run)

        return by_run


def _refusal(detail: str) -> WireError:
    return WireError(UNAUTHENTICATED, detail)


class Modes(Protocol):
    """How much is asked of messages: `off`, `accept` or `require`."""

    @property
    def results(self) -> str: ...

    @property
    def requests(self) -> str: ...


class MessageGuards:
    """The guards of an installation, one for each thing that messages do. `ring` is None where all modes are `off`."""

    def __init__(self, ring: SignatureRing | None, engine: HasState, modes: Modes) -> None:
        self._ring = ring
        self._engine = engine
        self._modes = modes

    def of(self, scope: Scope) -> MessageGuard | None:
        """What judges messages that do this; None: nothing does."""
        mode = self._modes.results if scope is Scope.RESULT_WRITE else self._modes.requests
        if self._ring is None or mode == "off":
            return None
        return MessageGuard(self._ring, self._engine, scope, required=mode == "require")

    def of_queues(self, broker: Broker) -> Callable[[Scope], MessageGuard | None]:
        """The same for messages of this broker. Nothing from outside gets into one inside the process."""
        return (lambda _scope: None) if broker.traits.volatile else self.of
