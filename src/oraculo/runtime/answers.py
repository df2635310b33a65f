"""Answers of workers as they come in → work for an engine. Whatever door an answer takes, it is read here."""

from __future__ import annotations

from collections.abc import Mapping

from oraculo.core.tenants import in_tenant, tenant_of
from oraculo.errors import WireError
from oraculo.ports.work import Work
from oraculo.runtime.consumer import quarantined
from oraculo.runtime.token_ring import TokenRing
from oraculo.wire import mensagem, payloads
from oraculo.wire.payloads import NO_HEADERS
from oraculo.wire.ticket_tokens import TokenKey

WORKER_NAME_MAX_CHARS = 128


class AnswerReader:
    """`tokens` judges what an answer says by its token; without it tokens are not looked at. `keys` are those of
    orders, where these are signed."""

    def __init__(self, tokens: TokenRing | None = None, keys: TokenRing | None = None) -> None:
        self._tokens = tokens
        self._keys = keys or tokens

    @property
    def public_keys(self) -> list[TokenKey]:
        """The keys that sign tokens and orders; none when neither has a signature."""
        return [] if self._keys is None else self._keys.public_keys

    def __call__(self, raw: bytes, queue: str, headers: Mapping[str, str] = NO_HEADERS, /) -> Work:
        """Turn one result message into work: an answer for the tenant of its queue. What cannot be read, or may not
        count, becomes a dead letter; this never raises."""
        correlation_id, fixed = "", False
        try:
            message = mensagem.parse(raw)
            correlation_id = message.correlation_id
            command = payloads.answer(message, raw, headers)
            if self._tokens is not None:
                fixed = self._tokens.judge(command, correlation_id, payloads.token_of(message, headers))
        except WireError as error:
            return quarantined(raw, queue, error, in_tenant(tenant_of(queue), correlation_id))
        extra = message.extra
        worker, served = (_name(extra.get("worker")), _name(extra.get("fila"))) if extra else ("", "")
        name = in_tenant(tenant_of(queue), correlation_id)
        return Work(command, name, queue=queue, body=raw, worker=worker, served=served, fixed=fixed)


def _name(said: object) -> str:
    return said if isinstance(said, str) and len(said) <= WORKER_NAME_MAX_CHARS and said.isprintable() else ""
