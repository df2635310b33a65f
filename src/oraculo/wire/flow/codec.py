"""Records of Fluxo C ↔ bytes: Avro in the framing of a schema registry (0x00, the schema's number in four bytes, the
body), or JSON.

Both are read from every sender; `format` is what we write. Whatever is wrong with bytes is a WireError with a code of
its own. A RegistryUnavailableError means that the registry could not be asked yet: the bytes may be fine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import BytesIO
from types import MappingProxyType
from typing import Any

import orjson

from oraculo.errors import MissingExtraError, WireError
from oraculo.ports.registry import Registry
from oraculo.wire import strict_json
from oraculo.wire.flow import schemas
from oraculo.wire.flow.avro_check import Check, check_of, whole
from oraculo.wire.flow.avro_value import Fault, fault_of

AVRO, JSON = "avro", "json"
MAX_BYTES = 8 * 1024 * 1024
_MAGIC = b"\0"
_HEADER = struct.Struct(">bI")


class Codec:
    """Reads Avro and JSON, and writes `format`: by the schemas `written`, else by the shipped ones."""

    def __init__(
        self,
        registry: Registry,
        format: str = AVRO,
        *,
        max_bytes: int = MAX_BYTES,
        written: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if format == AVRO:
            _fastavro()  # missing: said at the start
        self._registry = registry
        self.format = format
        self._max_bytes = max_bytes
        self._written = written
        self._writers: dict[int, _Writer] = {}

    async def learn(self, messages: Iterable[bytes] = ()) -> None:
        """To be called before `decode` and `encode`: after it, all is known that they need for these messages.
        RegistryUnavailableError when the registry is away; then try again later."""
        headed = (raw for raw in messages if raw[:1] == _MAGIC and len(raw) >= _HEADER.size)
        await self._registry.learn({_HEADER.unpack_from(raw)[1] for raw in headed})

    def decode(self, records: str | tuple[str, ...], raw: bytes) -> dict[str, Any]:
        """The value of one of these records. JSON is taken as it is: what it means is for its reader to check."""
        if len(raw) > self._max_bytes:
            raise WireError("too_large", f"{len(raw)} bytes; at most {self._max_bytes} are allowed")
        if raw[:1] == _MAGIC:
            return self._decode_avro((records,) if isinstance(records, str) else records, raw)
        value = strict_json.loads(raw, max_bytes=self._max_bytes)
        if not isinstance(value, dict):
            raise WireError("not_an_object", f"a record is a JSON object, not {type(value).__name__}")
        return value

    def encode(self, record: str, value: dict[str, Any]) -> bytes:
        """WireError `invalid_value`, with the place, when it is not what the schema says."""
        if self.format == JSON:
            return strict_json.compact(value)
        return _HEADER.pack(0, self._registry.number(record)) + avro_body(record, value, self._written.get(record, ""))

    def _decode_avro(self, records: tuple[str, ...], raw: bytes) -> dict[str, Any]:
        if len(raw) < _HEADER.size:
            raise WireError("truncated_avro", f"{len(raw)} bytes; the framing alone has {_HEADER.size}")
        number = _HEADER.unpack_from(raw)[1]
        writer = self._writers.get(number)
        if writer is None:
            try:
                writer = self._writers[number] = _Writer(number, self._text(number))
            except MissingExtraError as error:
                raise WireError("avro_not_supported", str(error)) from None
        if writer.record not in records:
            raise WireError("wrong_schema", f"schema {number} is {writer.record}; wanted: {' or '.join(records)}")
        return writer.read(raw[_HEADER.size :])

    def _text(self, number: int) -> str:
        try:
            return self._registry.schema(number)
        except KeyError:
            raise WireError("unknown_schema_id", f"there is no schema {number}") from None


def avro_body(record: str, value: dict[str, Any], text: str = "") -> bytes:
    """The Avro bytes of a value, without framing; by the schema of this text, else by the shipped one. It has to be
    what the shipped one says in either case."""
    wrong = _fault(record)(value)
    if wrong:
        raise WireError("invalid_value", record + wrong)
    file = BytesIO()
    try:
        _fastavro().schemaless_writer(file, parsed(text) if text else _shipped(record), value)
    except (ValueError, KeyError) as error:  # a lone surrogate, which no encoding has; a field that has no default
        raise WireError("invalid_value", f"{record}: {error}") from None
    return file.getvalue()


class _Writer:
    """What wrote a message: its schema, and how its values become those of ours. Logical types are left out, so that an
    instant is the number that it is on the wire, for every writer."""

    def __init__(self, number: int, text: str) -> None:
        if not text:
            raise WireError("invalid_schema", f"schema {number} is no Avro schema that stands by itself")
        plain = _without_logical_types(strict_json.loads(text.encode()))
        if not isinstance(plain, dict) or not isinstance(plain.get("name"), str):
            raise WireError("invalid_schema", f"schema {number} is no record")
        self._check: Check = check_of(plain)
        self.record: str = plain["name"].rpartition(".")[2]
        library = _fastavro()
        try:
            self._schema = library.parse_schema(plain)
        except Exception as error:
            raise WireError("invalid_schema", f"schema {number} cannot be used: {error}"[:500]) from None

    def read(self, body: bytes) -> dict[str, Any]:
        whole(self._check, body)
        try:
            found: dict[str, Any] = _fastavro().schemaless_reader(BytesIO(body), self._schema, _shipped(self.record))
        except Exception as error:
            raise WireError("invalid_avro", f"not a {self.record}: {error}"[:500]) from None
        return found


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return [_without_logical_types(one) for one in schema] if isinstance(schema, list) else schema


@lru_cache
def _shipped(record: str) -> Any:
    return _fastavro().parse_schema(schemas.schema(record))


@lru_cache
def parsed(text: str) -> Any:
    """A schema of another as the library has it, without logical types. WireError: it is none."""
    try:
        return _fastavro().parse_schema(_without_logical_types(orjson.loads(text)))
    except Exception as error:
        raise WireError("invalid_schema", f"it cannot be used: {error}"[:500]) from None


@lru_cache
def _fault(record: str) -> Fault:
    return fault_of(schemas.schema(record))


def _fastavro() -> Any:
    try:
        import fastavro
    except ModuleNotFoundError as error:
        raise MissingExtraError("Avro", "avro") from error
    return fastavro
