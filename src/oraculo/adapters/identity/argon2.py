"""Passwords by Argon2id (`argon2-cffi`, imported when a password is hashed or checked)."""

from __future__ import annotations

from oraculo.errors import MissingExtraError


class Argon2Hasher:
    """Argon2id with the parameters that the library recommends (RFC 9106, low memory)."""

    def __init__(self) -> None:
        try:
            from argon2 import PasswordHasher
        except ImportError as error:
            raise MissingExtraError("ORACULO_LOCAL_USERS", "users") from error
        self._hasher = PasswordHasher()

    def hash(self, password: str) -> str:
        return self._hasher.hash(password)

    def verify(self, password_hash: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False
