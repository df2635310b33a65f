"""The digest of an answer: 32 bits of the bytes that arrived, and 31 of what they say.

The same bytes are the same message, sent again. Other bytes may still say the same (a worker that did its work twice
writes another timestamp); an answer conflicts with an earlier one only when it says something else. A digest of which
only the lower half is known (older journals) tells nothing about what was said.
"""

from __future__ import annotations

import json
import zlib
from hashlib import blake2b


def digest_of(raw: bytes, ok: bool, dados: bytes, erros: list[dict[str, object]]) -> int:
    """The digest of one answer: `raw` as it arrived, the rest as it was understood."""
    said = blake2b(b"ok" if ok else b"erro", digest_size=4)
    if erros:
        said.update(json.dumps(erros, sort_keys=True).encode())
    said.update(dados)
    content = int.from_bytes(said.digest()) & 0x7FFF_FFFF  # the whole fits into a signed number of 64 bits
    return (content or 1) << 32 | (zlib.crc32(raw) or 1)


def bytes_of(digest: int) -> int:
    """The part of a digest that stands for the bytes that arrived."""
    return digest & 0xFFFF_FFFF


def content_of(digest: int) -> int:
    """The part of a digest that stands for what was said; 0 when it is not known."""
    return digest >> 32
