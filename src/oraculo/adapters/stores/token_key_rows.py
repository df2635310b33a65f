"""Keys of tokens as rows of a table, the same in every database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros
from oraculo.ports.token_keys import StoredTokenKey

TOKEN_KEY_COLUMNS = "kid, secret, created_at, signs_from, good_until"


def token_key_row(key: StoredTokenKey) -> tuple[Any, ...]:
    """The values of TOKEN_KEY_COLUMNS."""
    until = None if key.good_until is None else to_micros(key.good_until)
    return (key.kid, key.secret, to_micros(key.created_at), to_micros(key.signs_from), until)


def token_key_of(row: Sequence[Any]) -> StoredTokenKey:
    """The key in a row of TOKEN_KEY_COLUMNS."""
    kid, secret, created, signs, until = row
    return StoredTokenKey(kid, bytes(secret), from_micros(created), from_micros(signs), from_micros_or_none(until))
