"""Tokens of orders: what is right, and ten thousand that are not."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from oraculo.adapters.signing.ed25519 import key_of
from oraculo.core.ticket_id import ticket_id
from oraculo.wire.ticket_tokens import (
    TOKEN_MAX_CHARS,
    TicketClaim,
    TokenKey,
    TokenReader,
    claim_text,
    jwks,
    looks_like_token,
    signed,
    with_signatures_of,
    without_signatures,
)

OURS, RETIRED, THEIRS = (key_of(bytes([number]) * 32) for number in (1, 2, 3))
READER = TokenReader([OURS])
BROKEN_TOKENS = 10_000


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def issue(claim: TicketClaim, key: TokenKey = OURS) -> str:
    return signed(key.header, claim_text(claim), key.sign).decode()


def claim_of(random: Random) -> TicketClaim:
    ticket = ticket_id(random.randrange(1, 2**63), random.randrange(1000))
    return TicketClaim(ticket, random.randint(1, 9), random.choice(("abc123", "a/b ç ☃", '"\\', "x" * 128)))


class TestRight:
    @given(st.integers(1, 2**63), st.integers(0, 2**20), st.integers(1, 2**31), st.text(min_size=1, max_size=128))
    def test_what_was_issued_is_read_back(self, run: int, position: int, attempt: int, name: str) -> None:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            return  # no message has such an id
        claim = TicketClaim(ticket_id(run, position), attempt, name)
        token = issue(claim)
        assert READER.read(token) == claim and len(token) <= TOKEN_MAX_CHARS and looks_like_token(token)

    def test_others_check_it_with_the_published_key_alone(self) -> None:
        """As any JWT library does: the header says EdDSA and names a key of the document."""
        token = issue(TicketClaim(ticket_id(5, 0), 2, "abc123"))
        header, body, signature = token.split(".")
        said = json.loads(unb64(header))
        assert said == {"alg": "EdDSA", "kid": OURS.kid, "typ": "ticket+jwt"}
        (found,) = [key for key in jwks([THEIRS, OURS])["keys"] if key["kid"] == said["kid"]]
        assert (found["kty"], found["crv"], found["alg"], found["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
        Ed25519PublicKey.from_public_bytes(unb64(found["x"])).verify(unb64(signature), f"{header}.{body}".encode())
        assert json.loads(unb64(body)) == {
            "iss": "oraculo", "sub": ticket_id(5, 0), "tentativa": 2, "correlation_id": "abc123",
        }  # fmt: skip

    def test_the_published_keys_hold_nothing_private(self) -> None:
        assert all(set(key) == {"kty", "crv", "use", "alg", "kid", "x"} for key in jwks([OURS, RETIRED])["keys"])

    def test_during_a_rotation_both_keys_are_good(self) -> None:
        both, claim = TokenReader([OURS, RETIRED]), TicketClaim(ticket_id(5, 0), 1, "a")
        assert both.read(issue(claim, RETIRED)) == both.read(issue(claim)) == claim

    def test_a_key_has_the_same_name_everywhere(self) -> None:
        assert key_of(bytes([1]) * 32).kid == OURS.kid != RETIRED.kid


# -- wrong ones --------------------------------------------------------------------------------------------------------


def flipped(random: Random, token: str) -> str:
    """One bit of one character."""
    place = random.randrange(len(token))
    return token[:place] + chr(ord(token[place]) ^ 1 << random.randrange(7)) + token[place + 1 :]


def cut(random: Random, token: str) -> str:
    return token[: random.randrange(len(token))]


def longer(random: Random, token: str) -> str:
    return token + random.choice(("=", ".", "A", " ", "\n", "é", "\ud800", ".e30", "A" * TOKEN_MAX_CHARS))


def other_claim(random: Random, token: str) -> str:
    """The body of another ticket, attempt or orchestration under this signature."""
    header, body, signature = token.split(".")
    said = json.loads(unb64(body))
    match random.randrange(3):
        case 0:
            said["tentativa"] += random.choice((1, -1, 7))
        case 1:
            said["sub"] = ticket_id(random.randrange(1, 2**63), 0)
        case _:
            said["correlation_id"] += "x"
    return f"{header}.{b64(json.dumps(said).encode())}.{signature}"


def other_signature(random: Random, token: str) -> str:
    """This body under the signature of another ticket."""
    return token.rpartition(".")[0] + "." + issue(claim_of(random)).rpartition(".")[2]


def foreign(random: Random, _token: str) -> str:
    """A whole token of a key that is over, or that was never ours."""
    return issue(claim_of(random), random.choice((RETIRED, THEIRS)))


def foreign_under_our_name(random: Random, token: str) -> str:
    text = token.rpartition(".")[0]
    return f"{text}.{b64(THEIRS.sign(text.encode()))}"


def unsigned_algorithm(random: Random, token: str) -> str:
    """`none` in the spellings that libraries have fallen for, with and without a signature."""
    _, body, signature = token.split(".")
    header = {"alg": random.choice(("none", "None", "NONE", "", None)), "kid": OURS.kid, "typ": "ticket+jwt"}
    return f"{b64(json.dumps(header).encode())}.{body}.{random.choice(('', signature))}"


def public_key_as_secret(random: Random, token: str) -> str:
    """HMAC with the published key: the confusion of algorithms. Also under our own header."""
    header, body, _ = token.split(".")
    if random.random() < 0.5:
        header = b64(json.dumps({"alg": "HS256", "kid": OURS.kid, "typ": "ticket+jwt"}).encode())
    secret = random.choice((OURS.public, b64(OURS.public).encode(), json.dumps(OURS.jwk).encode()))
    return f"{header}.{body}.{b64(hmac.new(secret, f'{header}.{body}'.encode(), hashlib.sha256).digest())}"


def own_key_in_header(random: Random, token: str) -> str:
    """A header that brings its own key (`jwk`, `jku`, `x5c`), signed with that."""
    _, body, _ = token.split(".")
    kid = random.choice((OURS.kid, THEIRS.kid, "../../dev/null", "' OR 1=1 --", ""))
    header = {"alg": "EdDSA", "kid": kid, random.choice(("jwk", "jku", "x5c")): THEIRS.jwk}
    text = f"{b64(json.dumps(header).encode())}.{body}"
    return f"{text}.{b64(THEIRS.sign(text.encode()))}"


def padded(random: Random, token: str) -> str:
    """Other spellings of the same bytes: with padding, with bits that base64 ignores, in the other alphabet."""
    header, body, signature = token.split(".")
    spellings = (f"{signature}==", signature[:-1] + chr(ord(signature[-1]) + 1), f" {signature}", f"{signature}\t")
    return random.choice(
        (
            f"{header}.{body}.{random.choice(spellings)}",
            f"{header}=.{body}.{signature}",
            f"{header}.{body}=.{signature}",
        )
    )


def rubbish(random: Random, _token: str) -> str:
    alphabet = "eyJ.{}\"'\\\0\ud800é☃AAAA=-_"
    return "".join(random.choice(alphabet) for _ in range(random.choice((0, 1, 5, 300, 5000))))


BREAKERS: tuple[Callable[[Random, str], str], ...] = (
    flipped, cut, longer, other_claim, other_signature, foreign, foreign_under_our_name, unsigned_algorithm,
    public_key_as_secret, own_key_in_header, padded, rubbish,
)  # fmt: skip


def test_of_ten_thousand_broken_tokens_none_is_taken_and_none_raises() -> None:
    random = Random(36)
    tried: Counter[str] = Counter()
    for number in range(BROKEN_TOKENS):
        breaker = BREAKERS[number % len(BREAKERS)]
        token = issue(claim_of(random))
        broken = breaker(random, token)
        assert broken != token, breaker.__name__
        assert READER.read(broken) is None, f"{breaker.__name__}: {broken!r}"
        tried[breaker.__name__] += 1
    assert len(tried) == len(BREAKERS) and min(tried.values()) > 800


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"1", b"{", b"\xff", b"{}", b'{"iss":"outro"}',
        b'{"iss":"oraculo","sub":"x","tentativa":1,"correlation_id":"a"}',
        b'{"iss":"oraculo","sub":"%b","tentativa":0,"correlation_id":"a"}' % ticket_id(5, 0).encode(),
        b'{"iss":"oraculo","sub":"%b","tentativa":true,"correlation_id":"a"}' % ticket_id(5, 0).encode(),
        b'{"iss":"oraculo","sub":"%b","tentativa":1,"correlation_id":null}' % ticket_id(5, 0).encode(),
    ],
)  # fmt: skip
def test_what_our_key_signed_and_is_no_claim_is_none_either(body: bytes) -> None:
    assert READER.read(signed(OURS.header, body, OURS.sign).decode()) is None


def test_what_is_shown_of_a_message_has_no_token_that_is_good_and_hands_it_back() -> None:
    random = Random(5)
    first, second = issue(claim_of(random)), issue(claim_of(random))
    body = b'{"token":"%b","a":["%b","eyJ.x.y",1]}' % (first.encode(), second.encode())
    shown = without_signatures(body)
    for token in (first, second):
        assert READER.read(token) and token.rpartition(".")[2].encode() not in shown
    assert with_signatures_of(shown, body) == body
    edited = shown.replace(b",1]", b",2]").replace(second.rpartition(".")[0].encode(), b"eyJ")
    assert with_signatures_of(edited, body) == b'{"token":"%b","a":["eyJ.***","eyJ.x.y",2]}' % first.encode()
    assert with_signatures_of(shown, b"{}") == shown and without_signatures(b"{}") == b"{}"
