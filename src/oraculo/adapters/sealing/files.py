"""Files that are sealed in pieces, so that they are never whole in memory: `ORD1`, key id, salt, then the pieces.

A piece has a nonce of its number and of whether it is the last: pieces that are cut off, exchanged or left out do not
open. Each file has a key of its own, derived from the tenant's and the salt.
"""

from __future__ import annotations

import io
import os
from typing import BinaryIO, cast

from oraculo.adapters.sealing.aes_gcm import TAG_BYTES, cipher, derived
from oraculo.adapters.sealing.codec import KEY_ID_BYTES, Sealing
from oraculo.errors import SealError
from oraculo.ports.order_data import OpenedData

UNSEALED = Sealing()
MARK = b"ORD1"
SALT_BYTES = 16
PIECE_BYTES = 64 * 1024
_HEAD_BYTES = len(MARK) + KEY_ID_BYTES + SALT_BYTES


class SealedWriter:
    """Seals what is written to a file; `finish` writes the last piece."""

    def __init__(self, file: BinaryIO, sealing: Sealing, tenant: str) -> None:
        key, salt = sealing.secret_for(tenant), os.urandom(SALT_BYTES)
        self._file = file
        self._cipher = cipher(derived(key.secret, _place(salt)))
        self._held = bytearray()
        self._number = 0
        file.write(MARK + bytes.fromhex(key.id) + salt)

    def write(self, chunk: bytes) -> None:
        self._held += chunk
        while len(self._held) > PIECE_BYTES:  # the last piece has at least one byte, unless there is none at all
            self._piece(bytes(self._held[:PIECE_BYTES]), last=False)
            del self._held[:PIECE_BYTES]

    def finish(self) -> None:
        self._piece(bytes(self._held), last=True)

    def _piece(self, plain: bytes, *, last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, last), plain, None))
        self._number += 1


class SealedReader(io.RawIOBase):
    """The plain bytes of a sealed file."""

    def __init__(self, file: BinaryIO, secret: bytes, salt: bytes, sealed_bytes: int) -> None:
        self._file = file
        self._cipher = cipher(derived(secret, _place(salt)))
        self._left = sealed_bytes
        self._number = 0
        self._plain = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        if not self._plain and self._left:
            self._plain = self._next()
        count = min(len(view), len(self._plain))
        view[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _next(self) -> bytes:
        from cryptography.exceptions import InvalidTag

        sealed = self._file.read(min(self._left, PIECE_BYTES + TAG_BYTES))
        self._left -= len(sealed)
        try:
            plain = self._cipher.decrypt(_nonce(self._number, not self._left), sealed, None)
        except InvalidTag:
            raise SealError("stored data of an order do not open: they were changed") from None
        self._number += 1
        return plain

    def close(self) -> None:
        self._file.close()
        super().close()


def unsealed(file: BinaryIO, sealing: Sealing) -> OpenedData | None:
    """A file as it was written, sealed or not; None when its key was forgotten."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(_HEAD_BYTES)
    if not head.startswith(MARK):
        file.seek(0)
        return OpenedData(file, size)
    secret = sealing.secret_of(head[len(MARK) : len(MARK) + KEY_ID_BYTES].hex())
    if secret is None:
        file.close()
        return None
    left = size - _HEAD_BYTES
    pieces = -(-left // (PIECE_BYTES + TAG_BYTES))
    reader = SealedReader(file, secret, head[-SALT_BYTES:], left)
    return OpenedData(cast(BinaryIO, io.BufferedReader(reader, PIECE_BYTES)), left - pieces * TAG_BYTES)


def _place(salt: bytes) -> str:
    return f"order-data/{salt.hex()}"


def _nonce(number: int, last: bool) -> bytes:
    return bytes([last]) + number.to_bytes(11, "big")
