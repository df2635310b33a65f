"""Advisory locks: two numbers for a lock that exists once, one number for a correlation_id, an idempotency key or
the key of a request that exists once.

All versions of Oráculo that share a database must come to the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

_LOCK_CLASS = 0x6F7261
MIGRATION_LOCK = (_LOCK_CLASS, 1)
TAIL_LOCK = (_LOCK_CLASS, 2)  # the holder gives out positions of the journal, until it has committed
MEMBERS_LOCK = (_LOCK_CLASS, 3)
SYSTEM_EVENTS_LOCK = (_LOCK_CLASS, 4)  # as TAIL_LOCK, for system events


def lock_numbers(names: Iterable[str], keys: Iterable[str], unique: Iterable[str] = ()) -> list[int]:
    """The locks of these names and keys, sorted: processes that take several never wait for each other in a circle."""
    texts = [*("n" + name for name in names), *("k" + key for key in keys), *("u" + key for key in unique)]
    return sorted({int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True) for text in texts})
