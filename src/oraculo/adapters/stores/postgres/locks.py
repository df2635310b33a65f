"""Advisory locks: two numbers for what there is one of, one number for a name or a key.

All versions of Oráculo that share a database must come to the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

_OURS = 0x6F7261
MIGRATION = (_OURS, 1)
TAIL = (_OURS, 2)  # whoever holds it gives out positions of the journal, until it has committed
MEMBERS = (_OURS, 3)
SYSTEM = (_OURS, 4)  # as TAIL, for system events


def numbers(names: Iterable[str], keys: Iterable[str]) -> list[int]:
    """In the order of the locks themselves, so that nobody who takes several waits for one who waits for him."""
    texts = [*("n" + name for name in names), *("k" + key for key in keys)]
    return sorted({int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True) for text in texts})
