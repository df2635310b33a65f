"""Signatures of messages: what is right, and ten thousand that are not."""

from __future__ import annotations

from collections import Counter
from random import Random

import orjson
import pytest

from oraculo.adapters.signing.ed25519 import key_of, private_key, verify
from oraculo.adapters.signing.verifying import VerifyingProcess
from oraculo.wire import mensagem
from oraculo.wire.signatures import (
    HEADER,
    MEMBER,
    encoded,
    read_signing_key,
    signature_of,
    signed_body,
    signed_header,
    signing_key_text,
)

KEY_ID, SECRET = "kaaaaaaaaaaa", bytes(range(32))
KEY, THEIRS = key_of(SECRET), key_of(bytes(32))
BODY = orjson.dumps(
    {
        "correlation_id": "abc123",
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": "youtube", "status": "ok", "dados": [1, "ç", {MEMBER: "x"}]},
        "timestamp": "2025-10-14T12:00:00Z",
        "ticket_id": "t",
        "tentativa": 1,
    }
)
BROKEN = 10_000


def is_right(body: bytes, headers: dict[str, str] | None = None) -> bool:
    found = signature_of(body, headers or {})
    return found is not None and found.key_id == KEY_ID and verify(KEY.public, found.value, found.over)


def test_a_signature_is_read_back_from_a_member_and_from_a_header() -> None:
    signed = signed_body(BODY, KEY_ID, KEY.sign)
    assert is_right(signed) and not is_right(BODY)
    assert orjson.loads(signed)[MEMBER] == signed_header(BODY, KEY_ID, KEY.sign)
    assert mensagem.parse(signed).payload == orjson.loads(BODY)["payload"]
    assert is_right(BODY, {HEADER: signed_header(BODY, KEY_ID, KEY.sign)})
    avro = b"\x00\x00\x00\x00\x01anything"
    assert is_right(avro, {HEADER: signed_header(avro, KEY_ID, KEY.sign)})


def test_any_language_can_make_one() -> None:
    """As the documentation says it: Ed25519 over `oraculo-message`, a line feed and the body."""
    value = private_key(SECRET).sign(b"oraculo-message\n" + BODY)
    assert is_right(BODY[:-1] + f',"assinatura":"{KEY_ID}.{encoded(value)}"}}'.encode())


def test_the_private_half_is_kept_as_text() -> None:
    assert read_signing_key(signing_key_text(KEY_ID, SECRET)) == (KEY_ID, SECRET)
    for wrong in ("", "orcw_", signing_key_text(KEY_ID, SECRET)[:-1], signing_key_text(KEY_ID, SECRET) + "A"):
        assert read_signing_key(wrong) is None


def test_of_ten_thousand_broken_signatures_none_is_taken_and_none_raises() -> None:
    random = Random(17)
    signed, header = signed_body(BODY, KEY_ID, KEY.sign), signed_header(BODY, KEY_ID, KEY.sign)
    other = signed_header(BODY.replace(b"abc123", b"abc124"), KEY_ID, KEY.sign)
    taken: Counter[str] = Counter()
    for number in range(BROKEN):
        kind = number % 10
        body, headers = signed, {}
        if kind == 0:  # one bit of the body or of its signature
            at = random.randrange(len(signed))
            body = signed[:at] + bytes([signed[at] ^ (1 << random.randrange(8))]) + signed[at + 1 :]
        elif kind == 1:
            body = signed[: random.randrange(len(signed))]
        elif kind == 2:
            body = signed + random.choice((b" ", b"\n", b"}", b"\0"))
        elif kind == 3:  # by another key, which says that it is this one
            body = signed_body(BODY + b" " * 0, KEY_ID, THEIRS.sign)
        elif kind == 4:
            headers = {HEADER: other}
        elif kind == 5:
            headers = {HEADER: header[: random.randrange(len(header))]}
        elif kind == 6:  # a right one over a part of it
            body = BODY[:-1] + b',"x":%d,' % number + signed[len(BODY) :]
        elif kind == 7:
            headers = {HEADER: f"{KEY_ID}.{encoded(random.randbytes(64))}"}
        elif kind == 8:  # over the body without its context
            headers = {HEADER: f"{KEY_ID}.{encoded(KEY.sign(signed))}"}
        else:
            headers = {
                HEADER: random.choice(("", ".", "none", KEY_ID, f"{KEY_ID}.", "k" * 12 + "." + "A" * 86, "\x00"))
            }
        if is_right(body, headers):
            taken[str(kind)] += 1
    assert not taken


def test_another_process_says_the_same_of_many() -> None:
    process = VerifyingProcess()
    try:
        asked = [(KEY.public if number % 3 else THEIRS.public, KEY.sign(BODY), BODY) for number in range(40)]
        assert process.verify_many(asked) == [number % 3 != 0 for number in range(40)]
        assert process._process is not None
        process._process.kill()
        process._process.wait()
        with pytest.raises(OSError, match=r"(?i)ended|pipe"):
            process.verify_many(asked)
        assert process.verify_many(asked[:2]) == [False, True]
    finally:
        process.close()
