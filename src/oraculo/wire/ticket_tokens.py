"""The `token` of an order: a JWT (RFC 7519, signed as RFC 8037 says) that is bound to one attempt of one ticket.

A worker hands it back with its answer. Signatures of Ed25519 are the same for the same text, so a token is checked by
signing its first two parts again and comparing: what we would not have written ourselves is no token, whatever its
header claims. Nothing of a token chooses an algorithm, and `kid` only picks one of the keys that are known here.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from oraculo.core.ticket_id import parse_ticket_id

ISSUER: Final = "oraculo"
TYPE: Final = "ticket+jwt"
HEADER: Final = "oraculo-token"  # of messages whose body has no room for a token
UNAUTHENTICATED: Final = "unauthenticated"  # the reason of dead letters that an answer without a right token becomes
TOKEN_MAX_CHARS = 2048
_PREFIX = "eyJhbGciOiJFZERTQSIsImtpZCI6"  # how {"alg":"EdDSA","kid": is written
_ATTEMPT_MAX = 2**31
_SIGNED = re.compile(rb"(%b[\w-]{1,2048}\.[\w-]{1,2048})\.([\w-]{43,128})" % _PREFIX.encode())
_HIDDEN = re.compile(rb"(%b[\w-]{1,2048}\.[\w-]{1,2048})\.\*\*\*" % _PREFIX.encode())


@dataclass(frozen=True, slots=True)
class TokenKey:
    """A key that signs tokens; `public` are the 32 bytes of its public half."""

    kid: str
    sign: Callable[[bytes], bytes] = field(repr=False)
    public: bytes

    @property
    def header(self) -> bytes:
        return _encode(b'{"alg":"EdDSA","kid":"%b","typ":"%b"}' % (self.kid.encode(), TYPE.encode()))

    @property
    def jwk(self) -> dict[str, str]:
        """The public half as others read it (RFC 8037)."""
        public = _encode(self.public).decode()
        return {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.kid, "x": public}


class TicketClaim(NamedTuple):
    """What a token says that is right: the attempt of the ticket that it was given to."""

    ticket: str
    attempt: int
    correlation_id: str

    @property
    def message_id(self) -> str:
        return f"{self.ticket}.{self.attempt}"


def claim_text(claim: TicketClaim) -> bytes:
    """What a token of this claim says, as JSON."""
    ticket, attempt, name = claim
    said = b'{"iss":"oraculo","sub":"%b","tentativa":%d,"correlation_id":%b}'
    return said % (ticket.encode(), attempt, orjson.dumps(name))


def signed(header: bytes, said: bytes, sign: Callable[[bytes], bytes]) -> bytes:
    """The token with this header that says this."""
    text = b"%b.%b" % (header, _encode(said))
    return b"%b.%b" % (text, _encode(sign(text)))


def looks_like_token(text: object) -> bool:
    """True for a text that begins as our tokens do. It may still be wrong."""
    return isinstance(text, str) and text.startswith(_PREFIX)


def without_signatures(body: bytes) -> bytes:
    """Hide the signatures of tokens in a message: who reads one that was not taken gets no token that is still good."""
    return _SIGNED.sub(rb"\1.***", body)


def with_signatures_of(body: bytes, original: bytes) -> bytes:
    """Put back the signatures that were hidden in what was shown of the original."""
    known = {found[1]: found[2] for found in _SIGNED.finditer(original)}
    return _HIDDEN.sub(lambda found: b"%b.%b" % (found[1], known.get(found[1], b"***")), body)


class TokenReader:
    """Knows the keys whose tokens are right."""

    def __init__(self, keys: Iterable[TokenKey]) -> None:
        self._keys = {key.header.decode(): key for key in keys}

    def read(self, token: str) -> TicketClaim | None:
        """What a token says, None when it is not one that one of the keys has signed. Never raises."""
        if len(token) > TOKEN_MAX_CHARS or not token.isascii():
            return None
        header, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        key = self._keys.get(header)
        if key is None:
            return None
        expected = _encode(key.sign(f"{header}.{body}".encode()))
        if not hmac.compare_digest(expected, signature.encode()):
            return None
        return _claim(body)


def _claim(body: str) -> TicketClaim | None:
    """What a signed body says. A key of ours may have signed something else one day, so its form is looked at."""
    try:
        said = orjson.loads(_decode(body))
    except (ValueError, Base64Error):
        return None
    if not isinstance(said, Mapping) or said.get("iss") != ISSUER:
        return None
    ticket, attempt, correlation_id = said.get("sub"), said.get("tentativa"), said.get("correlation_id")
    if not isinstance(ticket, str) or parse_ticket_id(ticket) is None or not isinstance(correlation_id, str):
        return None
    if type(attempt) is not int or not 1 <= attempt <= _ATTEMPT_MAX:
        return None
    return TicketClaim(ticket, attempt, correlation_id)


def jwks(keys: Iterable[TokenKey]) -> dict[str, Any]:
    """The public keys as one document (RFC 7517)."""
    return {"keys": [key.jwk for key in keys]}


def _encode(raw: bytes) -> bytes:
    return urlsafe_b64encode(raw).rstrip(b"=")


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
