"""A process that signs tokens, so that many of them do not hold up the event loop: the interpreter is not free while
OpenSSL signs. It begins with the first request and ends with this process, or with `close`."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Sequence
from threading import Lock
from typing import IO

from oraculo.adapters.signing.ed25519 import SECRET_BYTES, private_key
from oraculo.wire.ticket_tokens import signed

REQUEST = struct.Struct(f">{SECRET_BYTES}sHI")  # private half, length of the header, number of texts
LENGTH = struct.Struct(">I")
STOP_TIMEOUT_S = 2.0


class SideProcess:
    """One request at a time; a process that died is begun anew by the next request. `module` is what it runs."""

    module = ""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def request(self, content: bytes) -> bytes:
        """The answer to a request. It blocks; OSError when the process is gone."""
        with self._lock:
            try:
                return self._asked(content)
            except (OSError, struct.error) as error:
                self._end()
                raise OSError(str(error) or type(error).__name__) from error

    def _asked(self, content: bytes) -> bytes:
        if self._process is None:
            command = [sys.executable, "-m", self.module]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        inside, outside = self._process.stdin, self._process.stdout
        assert inside is not None and outside is not None
        inside.write(content)
        inside.flush()
        return read_exactly(outside, LENGTH.unpack(read_exactly(outside, LENGTH.size))[0])

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()


class SigningProcess(SideProcess):
    """Signs tokens."""

    module = "oraculo.adapters.signing.process"

    def sign_many(self, secret: bytes, header: bytes, texts: Sequence[bytes]) -> list[str]:
        """The tokens that say this, in order. It blocks; OSError when the process is gone."""
        lengths = struct.pack(f">{len(texts)}I", *map(len, texts))
        request = b"".join((REQUEST.pack(secret, len(header), len(texts)), header, lengths, *texts))
        return self.request(request).decode("ascii").split("\n")


def read_exactly(pipe: IO[bytes], size: int) -> bytes:
    """So many bytes; OSError when the process has ended before."""
    found = pipe.read(size)
    if len(found) < size:
        raise OSError("the process has ended")
    return found


def serve(inside: IO[bytes], outside: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    while request := inside.read(REQUEST.size):
        secret, header_length, count = REQUEST.unpack(request)
        header, sign = read_exactly(inside, header_length), private_key(secret).sign
        lengths = struct.unpack(f">{count}I", read_exactly(inside, count * LENGTH.size))
        texts = [read_exactly(inside, length) for length in lengths]
        answer = b"\n".join(signed(header, text, sign) for text in texts)
        outside.write(LENGTH.pack(len(answer)) + answer)
        outside.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
