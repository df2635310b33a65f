"""Payloads that are large travel compressed: plans and journals repeat themselves, and Temporal takes 2 MB at most."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

COMPRESS_MIN_BYTES = 16 * 1024
ENCODING = b"binary/oraculo-zlib"


class CompressingCodec(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [compressed(payload) if len(payload.data) > COMPRESS_MIN_BYTES else payload for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [_restored(payload) for payload in payloads]


def compressed(payload: Payload) -> Payload:
    return Payload(metadata={"encoding": ENCODING}, data=zlib.compress(payload.SerializeToString(), 1))


def _restored(payload: Payload) -> Payload:
    if payload.metadata.get("encoding") != ENCODING:
        return payload
    return Payload.FromString(zlib.decompress(payload.data))


CONVERTER = DataConverter(payload_codec=CompressingCodec())
