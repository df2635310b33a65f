"""Signatures on the side of a worker: its answers get one, and orders without the orchestrator's are not worked on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

import structlog

from oraculo.errors import OraculoError, SettingsError
from oraculo.ports.broker import Delivery
from oraculo.wire.signatures import Signature, decoded, read_signing_key, signature_of, signed_body

log = structlog.get_logger("oraculo.worker")

KEYS_ASKED_EVERY_S = 5.0

Jwks = Callable[[], Awaitable[Mapping[str, Any]]]  # the public keys of the orchestrator, as it serves them


def answer_signer(signing_key: str) -> Callable[[bytes], bytes] | None:
    """What signs the bodies of answers with this private key; None without one. SettingsError: it is none."""
    if not signing_key:
        return None
    found = read_signing_key(signing_key)
    if found is None:
        raise SettingsError("ORACULO_SIGNING_KEY", "****", "orcw_…, as `oraculo keys create --sign` shows it")
    from oraculo.adapters.signing.ed25519 import private_key

    key_id, secret = found
    return partial(signed_body, key_id=key_id, sign=private_key(secret).sign)


class OrderVerifier:
    """Tells orders that the orchestrator signed from others. Its keys are read from `jwks`, and again when an order
    names another one, once in a while."""

    def __init__(self, jwks: Jwks, verify: Callable[[bytes, bytes, bytes], bool]) -> None:
        self._jwks = jwks
        self._verify = verify
        self._keys: dict[str, bytes] = {}
        self._asked_at: float | None = None

    async def sort(self, deliveries: Sequence[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
        """The orders that are good, and those that are not. OraculoError while the orchestrator's keys are unknown."""
        found = [signature_of(delivery.body, delivery.headers) for delivery in deliveries]
        if any(one is not None and one.key_id not in self._keys for one in found):
            await self._learn()
        good: list[Delivery] = []
        bad: list[Delivery] = []
        for delivery, signature in zip(deliveries, found, strict=True):
            (good if signature is not None and self._is_right(signature) else bad).append(delivery)
        return good, bad

    def _is_right(self, signature: Signature) -> bool:
        public = self._keys.get(signature.key_id)
        return public is not None and self._verify(public, signature.value, signature.over)

    async def _learn(self) -> None:
        if self._asked_at is not None and monotonic() - self._asked_at < KEYS_ASKED_EVERY_S and self._keys:
            return
        self._asked_at = monotonic()
        try:
            document = await self._jwks()
        except OraculoError:
            if not self._keys:
                raise
            log.warning("keys of orders not read: server unavailable")
            return
        found = {str(key.get("kid")): decoded(str(key.get("x"))) for key in document.get("keys", [])}
        self._keys = {kid: public for kid, public in found.items() if public is not None}
