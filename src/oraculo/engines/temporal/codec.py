"""How payloads travel to Temporal and are kept there: large ones compressed, and all of them sealed where payloads are
sealed at rest.

Plans and journals repeat themselves, and Temporal takes 2 MB at most. A sealed payload has the key of the tenant whose
workflow it is about; what is in no workflow has that of `default`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Self

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from oraculo.core.tenants import DEFAULT_TENANT, tenant_of
from oraculo.ports.message_seal import MessageSeal

COMPRESS_MIN_BYTES = 16 * 1024
ENCODING = b"binary/oraculo-zlib"
SEALED_ENCODING = b"binary/oraculo-sealed"
WORKFLOW_PREFIX = "orch-"


class CompressingCodec(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [compressed(payload) if len(payload.data) > COMPRESS_MIN_BYTES else payload for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [_restored(payload) for payload in payloads]


class SealingCodec(CompressingCodec, WithSerializationContext):
    """Seals what was compressed, for a tenant; reads what came unsealed, from a person or an earlier time, as it is."""

    def __init__(self, seal: MessageSeal, tenant: str = DEFAULT_TENANT) -> None:
        self._seal = seal
        self._tenant = tenant

    def with_context(self, context: SerializationContext) -> Self:
        if not isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return self
        return type(self)(self._seal, tenant_of((context.workflow_id or "").removeprefix(WORKFLOW_PREFIX)))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [await self._sealed(payload) for payload in await super().encode(payloads)]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await super().decode([await self._opened(payload) for payload in payloads])

    async def _sealed(self, payload: Payload) -> Payload:
        sealed = await self._seal.seal(self._tenant, payload.SerializeToString())
        return Payload(metadata={"encoding": SEALED_ENCODING}, data=sealed)

    async def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != SEALED_ENCODING:
            return payload
        return Payload.FromString(await self._seal.open(payload.data))


def compressed(payload: Payload) -> Payload:
    return Payload(metadata={"encoding": ENCODING}, data=zlib.compress(payload.SerializeToString(), 1))


def _restored(payload: Payload) -> Payload:
    if payload.metadata.get("encoding") != ENCODING:
        return payload
    return Payload.FromString(zlib.decompress(payload.data))


CONVERTER = DataConverter(payload_codec=CompressingCodec())


def converter_of(seal: MessageSeal | None) -> DataConverter:
    """How payloads travel; sealed, with the texts of failures, where there is a seal."""
    if seal is None:
        return CONVERTER
    return DataConverter(
        payload_codec=SealingCodec(seal), failure_converter_class=DefaultFailureConverterWithEncodedAttributes
    )
