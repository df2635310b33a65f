"""The keys of tokens as this process knows them: orders get their tokens here, and answers are judged by theirs.

The store has the keys, so that every process on it takes the tokens of every other. A new key is known everywhere
before it signs. Tokens that were issued lately are remembered: their answers are checked without a signature.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

import structlog

from oraculo.core.commands import RecordResult
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import StoreError, WireError
from oraculo.ports.clock import Clock
from oraculo.ports.token_keys import StoredTokenKey, TokenKeys
from oraculo.wire.signatures import signature_of, signed_header
from oraculo.wire.ticket_tokens import (
    UNAUTHENTICATED,
    TicketClaim,
    TokenKey,
    TokenReader,
    claim_text,
    signed,
)

log = structlog.get_logger("oraculo.tokens")

RELOAD_INTERVAL_S = 15.0
ANNOUNCED_FOR = timedelta(minutes=1)  # that a new key is in the store before it signs: every process has read it then
REMEMBERED_MAX = 32_768  # tokens
PREPARED_MIN = 32  # tokens; fewer take less time than to hand them to another process
MODES: Final = ("off", "accept", "require")


# Private half of a key, header, what each token says → the tokens. It blocks; OSError when it cannot be done.
SignMany = Callable[[bytes, bytes, Sequence[bytes]], Sequence[str]]


class TokenRing:
    """`key_of` makes a key of its private half, `new_secret` a new private half. `required`: an answer without a token
    is refused; else only one with a wrong token is. `sign_many` signs many tokens at once, beside the event loop; what
    it cannot do, and few, are signed here."""

    def __init__(
        self,
        store: TokenKeys,
        clock: Clock,
        key_of: Callable[[bytes], TokenKey],
        new_secret: Callable[[], bytes],
        *,
        required: bool,
        sign_many: SignMany | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._key_of = key_of
        self._new_secret = new_secret
        self._required = required
        self._sign_many = sign_many
        self._stored: list[StoredTokenKey] = []
        self._keys: dict[str, TokenKey] = {}  # by kid: those that are good
        self._signing: TokenKey
        self._header = self._secret = b""  # of the key that signs
        self._reader = TokenReader(())
        # message_id → token, correlation_id: those of late, and those before them.
        self._issued: dict[str, tuple[str, str]] = {}
        self._issued_before: dict[str, tuple[str, str]] = {}

    # -- keys --------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the keys; make the first one of this store. StoreError when that cannot be."""
        await self.reload()
        if not self._keys or all(key.good_until is not None for key in self._stored):
            await self._store.add_first_token_key(self._new_key(timedelta()))
            await self.reload()

    async def reload(self) -> None:
        """Read the keys of the store."""
        now = self._clock.now()
        self._stored = [key for key in await self._store.token_keys() if key.is_good(now)]
        if self._stored:
            self._use(now)

    def _use(self, now: datetime) -> None:
        keys = {key.kid: self._keys.get(key.kid) or self._key_of(key.secret) for key in self._stored}
        signing = next((key.kid for key in self._stored if key.signs_from <= now), self._stored[-1].kid)
        if keys.keys() != self._keys.keys():
            self._issued, self._issued_before = {}, {}
        self._keys, self._reader = keys, TokenReader(keys.values())
        self._signing, self._header = keys[signing], keys[signing].header
        self._secret = next(key.secret for key in self._stored if key.kid == signing)

    async def run(self) -> None:
        """Follow the store for ever. While it is away the keys that are known stay good."""
        failing = False
        while True:
            await asyncio.sleep(RELOAD_INTERVAL_S)
            try:
                await self.reload()
                failing = False
            except StoreError as error:
                if not failing:
                    log.warning("keys of tokens not read: store unavailable", error=str(error))
                failing = True

    async def rotate(self, overlap: timedelta) -> StoredTokenKey:
        """Store a new key, which signs a minute from now. Tokens of the others are right for `overlap` from then on."""
        key, now = self._new_key(ANNOUNCED_FOR), self._clock.now()
        await self._store.succeed_token_keys(key, key.signs_from + overlap, now)
        await self.reload()
        return key

    def _new_key(self, later: timedelta) -> StoredTokenKey:
        secret, now = self._new_secret(), self._clock.now()
        return StoredTokenKey(self._key_of(secret).kid, secret, now, now + later)

    @property
    def public_keys(self) -> list[TokenKey]:
        """Every key whose tokens are right, the newest first."""
        return list(self._keys.values())

    # -- orders ------------------------------------------------------------------------------------------------------

    def issue(self, claim: TicketClaim) -> str:
        """The token of an attempt, the same each time while its key signs."""
        known = self._known(claim.message_id)
        if known is not None:
            return known[0]
        return self._remember(claim, signed(self._header, claim_text(claim), self._signing.sign).decode())

    def issue_for(self, message_id: str, ticket: str, attempt: int, correlation_id: str) -> str:
        """The token of the attempt that has this message_id."""
        known = self._known(message_id)
        return self.issue(TicketClaim(ticket, attempt, correlation_id)) if known is None else known[0]

    def prepare(self, claims: Iterable[TicketClaim]) -> Awaitable[None] | None:
        """Sign tokens of orders that go out soon; None when they are few. It is never needed: `issue` signs what was
        not prepared."""
        if self._sign_many is None:
            return None
        late, before = self._issued, self._issued_before
        wanted: dict[str, TicketClaim] = {}
        for claim in claims:
            name = claim.message_id
            if name not in late and name not in before:
                wanted[name] = claim
        return self._prepared(wanted, self._sign_many) if len(wanted) >= PREPARED_MIN else None

    async def _prepared(self, wanted: dict[str, TicketClaim], sign_many: SignMany) -> None:
        header, secret = self._header, self._secret
        try:
            tokens = await asyncio.to_thread(sign_many, secret, header, list(map(claim_text, wanted.values())))
        except OSError as error:
            log.warning("tokens are signed in the event loop: the signing process failed", error=str(error))
            self._sign_many = None
            return
        if header == self._header:
            names = [claim.correlation_id for claim in wanted.values()]
            self._issued.update(zip(wanted, zip(tokens, names, strict=True), strict=True))
            self._forget_some()

    def _remember(self, claim: TicketClaim, token: str) -> str:
        self._issued[claim.message_id] = (token, claim.correlation_id)
        self._forget_some()
        return token

    def _forget_some(self) -> None:
        if len(self._issued) >= REMEMBERED_MAX // 2:
            self._issued, self._issued_before = {}, self._issued

    def _known(self, message_id: str) -> tuple[str, str] | None:
        return self._issued.get(message_id) or self._issued_before.get(message_id)

    # -- signatures of orders ----------------------------------------------------------------------------------------

    def sign_order(self, body: bytes) -> str:
        """The signature of an order, for the header of its message."""
        return signed_header(body, self._signing.kid, self._signing.sign)

    def has_signed(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """True if one of the keys signed this order."""
        signature = signature_of(body, headers)
        key = None if signature is None else self._keys.get(signature.key_id)
        return key is not None and signature is not None and compare_digest(key.sign(signature.over), signature.value)

    # -- answers -----------------------------------------------------------------------------------------------------

    def judge(self, answer: RecordResult, correlation_id: str | None, token: str | None) -> bool:
        """Raise WireError `unauthenticated` unless the answer may count. One with a token is fixed to the attempt that
        the token was given to; returns whether that changed anything. None as `correlation_id`: the answer names
        none."""
        if token is None:
            if self._required:
                raise _refusal("the answer does not echo the `token` of its order")
            return False
        known = self._known(f"{answer.ticket}.{answer.attempt}")
        if known is not None and known[1] == correlation_id and token.isascii() and compare_digest(known[0], token):
            return False
        claim = self._reader.read(token)
        if claim is None:
            raise _refusal("the token is none of this orchestrator, or its key is over")
        if correlation_id is not None and correlation_id != claim.correlation_id:
            raise _refusal("the token was given to another orchestration")
        if answer.ticket is not None and not _same_ticket(answer.ticket, claim.ticket):
            raise _refusal("the token was given to another ticket")
        if answer.attempt is not None and answer.attempt != claim.attempt:
            raise _refusal(f"the token was given to attempt {claim.attempt}, and the answer is of {answer.attempt}")
        if (answer.ticket, answer.attempt) == (claim.ticket, claim.attempt):
            return False
        answer.ticket, answer.attempt = claim.ticket, claim.attempt
        return True


def _same_ticket(said: str, claimed: str) -> bool:
    return said == claimed or parse_ticket_id(said) == parse_ticket_id(claimed)


def _refusal(detail: str) -> WireError:
    return WireError(UNAUTHENTICATED, detail)
