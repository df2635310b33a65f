"""Signed tokens (JWS, compact form), read and checked: nothing in a token decides how it is judged.

The algorithms are fixed, each with the one kind of key that it takes; `none` and everything with a shared secret are
not among them. Encrypted tokens and critical extensions are refused; keys inside of tokens are not looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from oraculo.errors import WireError
from oraculo.wire import strict_json

TOKEN_MAX_CHARS = 16_384
RSA_MIN_BITS, RSA_MAX_BITS = 2048, 8192
_PART = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class TokenError(ValueError):
    """The token is not good; the text says why, for the log."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key of a provider: its name, and the algorithm that it is bound to, where it says so."""

    kid: str
    algorithm: str
    key: PublicKey


def _rsa(key: PublicKey, signature: bytes, signed: bytes) -> None:
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(signature, signed, padding.PKCS1v15(), SHA256())


def _pss(key: PublicKey, signature: bytes, signed: bytes) -> None:
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(signature, signed, padding.PSS(padding.MGF1(SHA256()), 32), SHA256())


def _p256(key: PublicKey, signature: bytes, signed: bytes) -> None:
    assert isinstance(key, ec.EllipticCurvePublicKey)
    if len(signature) != 64:
        raise InvalidSignature
    pair = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
    key.verify(pair, signed, ec.ECDSA(SHA256()))


def _ed25519(key: PublicKey, signature: bytes, signed: bytes) -> None:
    assert isinstance(key, ed25519.Ed25519PublicKey)
    key.verify(signature, signed)


_CHECKS: Final[dict[str, tuple[type, Callable[[PublicKey, bytes, bytes], None]]]] = {
    "RS256": (rsa.RSAPublicKey, _rsa),
    "PS256": (rsa.RSAPublicKey, _pss),
    "ES256": (ec.EllipticCurvePublicKey, _p256),
    "EdDSA": (ed25519.Ed25519PublicKey, _ed25519),
}
ALGORITHMS = tuple(_CHECKS)


@dataclass(frozen=True, slots=True)
class Jws:
    """A token that was taken apart and not judged yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes

    @property
    def kid(self) -> str | None:
        kid = self.header.get("kid")
        return kid if isinstance(kid, str) else None

    def check_signature(self, keys: Sequence[VerificationKey]) -> None:
        """TokenError unless one of these keys, the one that the token names, has signed it."""
        algorithm = self.header["alg"]
        kind, check = _CHECKS[algorithm]
        fitting = [
            one
            for one in keys
            if isinstance(one.key, kind)
            and one.algorithm in ("", algorithm)
            and (self.kid is None or one.kid == self.kid)
        ]
        if len(fitting) != 1:
            raise TokenError("no single key of the provider fits")
        try:
            check(fitting[0].key, self.signature, self.signed)
        except InvalidSignature:
            raise TokenError("wrong signature") from None


def parse(token: str) -> Jws:
    """Take a token apart. TokenError: it is none, or of a kind that is not taken."""
    if len(token) > TOKEN_MAX_CHARS:
        raise TokenError(f"more than {TOKEN_MAX_CHARS} characters")
    parts = token.split(".")
    if len(parts) != 3:
        raise TokenError("not three parts")
    header, claims = (_object(part) for part in parts[:2])
    if header.get("alg") not in ALGORITHMS:
        raise TokenError("another algorithm")
    if "crit" in header or "b64" in header:
        raise TokenError("critical extensions")
    if "kid" in header and not isinstance(header["kid"], str):
        raise TokenError("kid is no text")
    return Jws(header, claims, f"{parts[0]}.{parts[1]}".encode(), decoded(parts[2]))


def _object(part: str) -> dict[str, Any]:
    try:
        found = strict_json.loads(decoded(part))
    except WireError as error:
        raise TokenError(f"not JSON: {error.code}") from None
    if not isinstance(found, dict):
        raise TokenError("not a JSON object")
    return found


def decoded(part: str) -> bytes:
    """Base64url as it is written, and no other way: two spellings of one token would be two tokens."""
    if _PART.fullmatch(part) is None:
        raise TokenError("not base64url")
    try:
        content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise TokenError("not base64url") from None
    if encoded(content) != part:
        raise TokenError("not base64url in its one form")
    return content


def encoded(content: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


# -- keys --------------------------------------------------------------------------------------------------------------


def keys_of(document: Any) -> list[VerificationKey]:
    """The keys of a JWKS document that can check signatures; others are passed over."""
    entries = document.get("keys") if isinstance(document, dict) else None
    found = (_key(entry) for entry in entries or () if isinstance(entry, dict))
    return [key for key in found if key is not None]


def _key(entry: Mapping[str, Any]) -> VerificationKey | None:
    algorithm, kid = entry.get("alg", ""), entry.get("kid", "")
    if entry.get("use", "sig") != "sig" or not isinstance(kid, str) or algorithm not in ("", *ALGORITHMS):
        return None
    try:
        key = _public(entry)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None if key is None else VerificationKey(kid, algorithm, key)


def _public(entry: Mapping[str, Any]) -> PublicKey | None:
    kind, curve = entry.get("kty"), entry.get("crv")
    if kind == "RSA":
        key = rsa.RSAPublicNumbers(_number(entry["e"]), _number(entry["n"])).public_key()
        return key if RSA_MIN_BITS <= key.key_size <= RSA_MAX_BITS else None
    if kind == "EC" and curve == "P-256":
        return ec.EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), ec.SECP256R1()).public_key()
    if kind == "OKP" and curve == "Ed25519":
        return ed25519.Ed25519PublicKey.from_public_bytes(decoded(entry["x"]))
    return None


def _number(text: str) -> int:
    return int.from_bytes(decoded(text))
