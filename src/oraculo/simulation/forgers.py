"""Worlds where answers need tokens: a key without a store, and forgers who answer for workers."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any

from oraculo.ports.clock import Clock
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.runtime.token_ring import TokenRing
from oraculo.wire.mensagem import Mensagem
from oraculo.wire.ticket_tokens import TokenKey

KEY_CREATED_AT = datetime(2000, 1, 1, tzinfo=UTC)
FORGED_SHARE = 0.4  # of the orders that are answered


class _OneKey:
    """The key of every life. It does not come from the store, whose faults are for the journal."""

    async def token_keys(self) -> list[StoredTokenKey]:
        return [StoredTokenKey("modelo", b"segredo", KEY_CREATED_AT, KEY_CREATED_AT)]

    async def add_first_token_key(self, key: StoredTokenKey) -> None:
        raise NotImplementedError

    async def succeed_token_keys(self, key: StoredTokenKey, old_until: datetime, now: datetime) -> None:
        raise NotImplementedError


def _key_of(secret: bytes) -> TokenKey:
    """A key whose signatures are as long as those of Ed25519; what signs is not what is tried here."""
    return TokenKey("modelo", partial(hmac.digest, secret, digest="sha512"), bytes(32))


async def model_tokens(clock: Clock) -> TokenRing:
    """Tokens as one life of the process knows them: the same key, and nothing remembered."""
    ring = TokenRing(_OneKey(), clock, _key_of, lambda: b"", required=True)
    await ring.open()
    return ring


@dataclass(slots=True)
class Forger:
    """Has seen every order, and answers with what it has: nothing, or the token of another order."""

    rng: Random
    seen: dict[str, str] = field(default_factory=dict)  # message_id → token

    def answers(self, order: Mensagem, honest: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Answers to this order that must have no effect, like an `honest` one, but without its token."""
        mine = f"{order.ticket_id}.{order.tentativa}"
        others = [token for message_id, token in self.seen.items() if message_id != mine]
        earlier = [self.seen.get(f"{order.ticket_id}.{attempt}") for attempt in range(1, order.tentativa or 1)]
        self.seen[mine] = order.token or ""
        if self.rng.random() >= FORGED_SHARE:
            return []
        tokens = [None, *(token for token in earlier if token), *([self.rng.choice(others)] if others else [])]
        forged = [
            {**honest, "ticket_id": order.ticket_id, "tentativa": order.tentativa, "token": one} for one in tokens
        ]
        for number, one in enumerate(forged):
            one["payload"] = {**one["payload"], "dados": {"forjada": f"{mine}.{number}"}}
        return forged
