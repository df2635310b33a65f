"""A process that verifies signatures, so that many of them do not hold up the event loop: verifying takes three times
as long as signing, and the interpreter is not free meanwhile."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from typing import IO

from oraculo.adapters.signing.ed25519 import verify
from oraculo.adapters.signing.process import LENGTH, SideProcess, read_exactly

SIGNED = struct.Struct(">32s64sI")  # public half, signature, length of what it is over


class VerifyingProcess(SideProcess):
    """One request at a time; a process that died is begun anew by the next request."""

    module = "oraculo.adapters.signing.verifying"

    def verify_many(self, asked: Sequence[tuple[bytes, bytes, bytes]]) -> list[bool]:
        """For each public half, signature and text whether it is right, in order. It blocks; OSError when the process
        is gone."""
        parts = [LENGTH.pack(len(asked))]
        for public, signature, text in asked:
            parts += (SIGNED.pack(public, signature, len(text)), text)
        return [one == 1 for one in self.request(b"".join(parts))]


def serve(inside: IO[bytes], outside: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    while request := inside.read(LENGTH.size):
        verdicts = bytearray()
        for _ in range(LENGTH.unpack(request)[0]):
            public, signature, size = SIGNED.unpack(read_exactly(inside, SIGNED.size))
            verdicts.append(verify(public, signature, read_exactly(inside, size)))
        outside.write(LENGTH.pack(len(verdicts)) + verdicts)
        outside.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
