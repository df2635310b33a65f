"""The process that signs many tokens at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oraculo.adapters.signing.ed25519 import key_of
from oraculo.adapters.signing.process import SigningProcess
from oraculo.wire.ticket_tokens import signed

SECRET = bytes(range(32))
TEXTS = [b"{%d}" % number * (number % 7) for number in range(1000)]


@pytest.fixture
def process() -> Iterator[SigningProcess]:
    process = SigningProcess()
    yield process
    process.close()


def test_its_tokens_are_those_that_are_signed_here(process: SigningProcess) -> None:
    key = key_of(SECRET)
    expected = [signed(key.header, text, key.sign).decode() for text in TEXTS]
    assert process.sign_many(SECRET, key.header, TEXTS) == expected
    other = key_of(bytes(32))
    assert process.sign_many(bytes(32), other.header, TEXTS[:1]) == [signed(other.header, b"", other.sign).decode()]


def test_one_that_died_is_begun_anew(process: SigningProcess) -> None:
    first = process.sign_many(SECRET, b"h", TEXTS)
    assert process._process is not None
    process._process.kill()
    process._process.wait()
    with pytest.raises(OSError):
        process.sign_many(SECRET, b"h", TEXTS)
    assert process.sign_many(SECRET, b"h", TEXTS) == first
