"""Bytes from anybody: every record there and back, every fault with its own code, and nothing but WireError."""

from __future__ import annotations

import json
import struct
import sys
import tracemalloc
from collections.abc import Collection
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oraculo.adapters.registry.folder import folder_schemas
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.errors import MissingExtraError, WireError
from oraculo.wire.flow import schemas
from oraculo.wire.flow.codec import AVRO, JSON, Codec, avro_body
from wire.flow.samples import DECISION, EVENT, PLAN, RESULT, SAMPLES, T0_MS, TICKET

codec = Codec(LocalRegistry())
records = pytest.mark.parametrize("record", schemas.NUMBERS)


class Others:
    """A registry with schemas of other writers."""

    def __init__(self, **known: Any) -> None:
        self._known = {int(name[1:]): json.dumps(schema) for name, schema in known.items()}

    def schema(self, number: int) -> str:
        return self._known[number]

    def number(self, record: str) -> int:
        return 99

    async def learn(self, numbers: Collection[int] = ()) -> None: ...

    async def close(self) -> None: ...


def framed(number: int, body: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + body


def refused(raw: bytes, record: str | tuple[str, ...] = "ExecutionResult", by: Codec = codec) -> str:
    with pytest.raises(WireError) as error:
        by.decode(record, raw)
    assert error.value.detail
    return error.value.code


class TestThereAndBack:
    @records
    def test_every_field_of_every_record_as_avro(self, record: str) -> None:
        assert codec.decode(record, codec.encode(record, SAMPLES[record])) == SAMPLES[record]

    @records
    def test_every_field_of_every_record_as_json(self, record: str) -> None:
        raw = Codec(LocalRegistry(), JSON).encode(record, SAMPLES[record])
        assert json.loads(raw) == SAMPLES[record]
        assert codec.decode(record, raw) == SAMPLES[record]

    @records
    def test_a_plain_client_with_the_shipped_schema_reads_and_writes_the_same(self, record: str) -> None:
        raw = codec.encode(record, SAMPLES[record])
        assert raw[:5] == struct.pack(">bI", 0, schemas.NUMBERS[record])
        parsed = fastavro.parse_schema(schemas.schema(record))
        assert fastavro.schemaless_reader(BytesIO(raw[5:]), parsed, None) == SAMPLES[record]
        file = BytesIO()
        fastavro.schemaless_writer(file, parsed, SAMPLES[record])
        assert codec.decode(record, framed(schemas.NUMBERS[record], file.getvalue())) == SAMPLES[record]

    @records
    def test_the_numbers_are_for_ever(self, record: str) -> None:
        assert schemas.NUMBERS == {
            "CognitivePlan": 1, "ConsolidatedDecision": 2, "ExecutionTicket": 3, "ExecutionResult": 4,
            "FlowCTelemetryEvent": 5, "OrchestrationIncident": 6, "TelemetryFrame": 7, "ApprovalResponse": 8,
        }  # fmt: skip
        assert schemas.schema(record)["name"] == record

    def test_a_sample_says_every_field(self) -> None:
        for record, sample in SAMPLES.items():
            assert list(sample) == [field["name"] for field in schemas.schema(record)["fields"]]

    def test_one_of_several_records(self) -> None:
        wanted = ("ConsolidatedDecision", "CognitivePlan")
        assert codec.decode(wanted, codec.encode("CognitivePlan", PLAN)) == PLAN
        assert codec.decode(wanted, codec.encode("ConsolidatedDecision", DECISION)) == DECISION


def holding(kind: Any) -> dict[str, Any]:
    """The schema of a record with one field of this type."""
    return {"type": "record", "name": "ExecutionResult", "fields": [{"name": "a", "type": kind}]}


class TestOtherWriters:
    def writer(self, change: Any) -> tuple[Codec, dict[str, Any]]:
        schema = schemas.schema("ExecutionResult")
        change(schema)
        return Codec(Others(n7=schema)), schema

    def written(self, schema: dict[str, Any], value: dict[str, Any]) -> bytes:
        file = BytesIO()
        fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
        return framed(7, file.getvalue())

    def test_one_that_knows_fewer_fields(self) -> None:
        def older(schema: dict[str, Any]) -> None:
            schema["fields"] = [
                field for field in schema["fields"] if field["name"] not in ("schema_version", "error_message")
            ]

        by, schema = self.writer(older)
        value = by.decode("ExecutionResult", self.written(schema, RESULT))
        assert value == RESULT

    def test_one_that_knows_more_and_in_another_order(self) -> None:
        def newer(schema: dict[str, Any]) -> None:
            schema["fields"].insert(0, {"name": "region", "type": ["null", "string"], "default": None})
            schema["fields"].reverse()

        by, schema = self.writer(newer)
        assert by.decode("ExecutionResult", self.written(schema, {**RESULT, "region": "sul"})) == RESULT

    def test_instants_are_numbers_whatever_their_logical_type(self) -> None:
        def logical(schema: dict[str, Any]) -> None:
            field = next(field for field in schema["fields"] if field["name"] == "timestamp")
            field["type"] = {"type": "long", "logicalType": "timestamp-millis"}

        by, schema = self.writer(logical)
        assert by.decode("ExecutionResult", self.written(schema, RESULT))["timestamp"] == T0_MS

    def test_another_namespace(self) -> None:
        by, schema = self.writer(lambda schema: schema.update(namespace="outro.lugar"))
        assert by.decode("ExecutionResult", self.written(schema, RESULT)) == RESULT

    def test_a_field_that_we_need_and_it_lacks(self) -> None:
        def without(schema: dict[str, Any]) -> None:
            schema["fields"] = [field for field in schema["fields"] if field["name"] != "agent_id"]

        by, schema = self.writer(without)
        assert refused(self.written(schema, RESULT), by=by) == "invalid_avro"

    @pytest.mark.parametrize(
        "schema",
        [
            "",
            [],
            {},
            "string",
            {"type": "record", "name": "ExecutionResult"},
            {"type": "record", "name": "ExecutionResult", "fields": [1]},
            holding("nada"),
            holding(["null", "ExecutionResult"]),
            holding({"type": "enum", "name": "E"}),
            holding({"type": "fixed", "name": "F"}),
            holding({"type": "enum", "symbols": ["A"]}),
            holding(7),
        ],
    )
    def test_a_schema_that_cannot_be_used(self, schema: Any) -> None:
        assert refused(framed(7, b"\x00"), by=Codec(Others(n7=schema))) == "invalid_schema"

    def test_items_of_no_bytes_cannot_fill_the_memory(self) -> None:
        by = Codec(Others(n7=holding({"type": "array", "items": "null"})))
        assert refused(framed(7, varint(2**40) + b"\0"), by=by) == "truncated_avro"
        assert refused(framed(7, varint(1) + b"\0\0\0"), by=by) == "invalid_avro"


def varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


BODY = avro_body("ExecutionResult", RESULT)


class TestFaults:
    @pytest.mark.parametrize("length", range(5))
    def test_a_framing_that_is_cut_off(self, length: int) -> None:
        raw = framed(4, b"")[:length]
        assert refused(raw) == ("not_json" if not raw else "truncated_avro")

    @pytest.mark.parametrize("length", range(len(BODY)))
    def test_a_body_that_is_cut_off_anywhere(self, length: int) -> None:
        assert refused(framed(4, BODY[:length])) == "truncated_avro"

    def test_a_body_that_goes_on(self) -> None:
        assert refused(framed(4, BODY + b"\0")) == "trailing_bytes"

    @pytest.mark.parametrize("number", [0, 9, 99, 2**32 - 1])
    def test_a_number_that_stands_for_nothing(self, number: int) -> None:
        assert refused(framed(number, BODY)) == "unknown_schema_id"

    def test_another_record(self) -> None:
        assert refused(codec.encode("ExecutionTicket", TICKET)) == "wrong_schema"

    @pytest.mark.parametrize(
        ("raw", "code"),
        [
            (b"", "not_json"),
            (b"nada", "not_json"),
            (b"[]", "not_an_object"),
            (b"null", "not_an_object"),
            (b'{"a":1,"a":2}', "duplicate_key"),
            (b'{"a":NaN}', "not_json"),
            (b'{"a":"\xff"}', "invalid_unicode"),
            (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", "too_deep"),
            (b'{"a":1} x', "not_json"),
        ],
    )
    def test_json_that_is_none(self, raw: bytes, code: str) -> None:
        assert refused(raw) == code

    @pytest.mark.parametrize("start", [b"\0", b"{"])
    def test_too_much(self, start: bytes) -> None:
        assert refused(start + bytes(100), by=Codec(LocalRegistry(), max_bytes=100)) == "too_large"

    def test_lengths_and_counts_are_held_against_what_is_there(self) -> None:
        text = varint(2**62)  # ticket_id of so many bytes
        assert refused(framed(4, text)) == "truncated_avro"
        assert refused(framed(4, varint(-1) + BODY[1:])) == "invalid_avro"
        logs = BODY.index(varint(len("linha")) + b"linha") - 1
        assert refused(framed(4, BODY[:logs] + varint(2**61) + BODY[logs + 1 :])) == "truncated_avro"

    @pytest.mark.parametrize("text", [b"a\0b", b"\xff\xfe"])
    def test_text_that_is_none(self, text: bytes) -> None:
        raw = framed(4, varint(len(text)) + text + BODY[37:])
        assert refused(raw) == ("nul" if 0 in text else "invalid_avro")

    def test_numbers_that_are_none(self) -> None:
        raw = codec.encode("ConsolidatedDecision", DECISION)
        at = raw.index(struct.pack("<d", 0.9))
        assert (
            refused(raw[:at] + struct.pack("<d", float("nan")) + raw[at + 8 :], "ConsolidatedDecision")
            == "invalid_avro"
        )
        assert refused(framed(4, b"\xff" * 11)) == "invalid_avro"

    def test_a_block_that_says_its_size(self) -> None:
        file = bytearray(BODY)
        at = BODY.index(varint(len("linha")) + b"linha") - 1
        file[at : at + 1] = varint(-1) + varint(6)
        assert codec.decode("ExecutionResult", framed(4, bytes(file))) == RESULT
        file[at + 1 : at + 2] = varint(5)
        assert refused(framed(4, bytes(file))) == "invalid_avro"

    @settings(max_examples=400, deadline=None)
    @given(st.binary(max_size=200), st.integers(0, 9), st.sampled_from(sorted(schemas.NUMBERS)))
    @example(varint(2**62) + b"\xff" * 50, 4, "ExecutionResult")
    def test_nothing_but_a_wire_error_comes_of_any_bytes(self, body: bytes, number: int, record: str) -> None:
        for raw in (body, framed(number, body)):
            try:
                assert isinstance(codec.decode(record, raw), dict)
            except WireError as error:
                assert error.code and len(error.detail) < 1000

    @settings(max_examples=400, deadline=None)
    @given(st.sampled_from(sorted(SAMPLES)), st.data())
    def test_nor_of_bytes_that_are_almost_right(self, record: str, data: st.DataObject) -> None:
        raw = bytearray(codec.encode(record, SAMPLES[record]))
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(5, len(raw) - 1))
            raw[at] = data.draw(st.integers(0, 255))
        try:
            found = codec.decode(record, bytes(raw))
        except WireError:
            return
        assert set(found) == set(SAMPLES[record])
        json.dumps(found, allow_nan=False)

    def test_a_few_bytes_stay_a_few(self) -> None:
        bombs = [framed(number, varint(count) * 20) for number in range(1, 8) for count in (2**62, -(2**62), 2**31)]
        tracemalloc.start()
        try:
            for raw in bombs:
                for record in SAMPLES:
                    with pytest.raises(WireError):
                        codec.decode(record, raw)
            assert tracemalloc.get_traced_memory()[1] < 5_000_000
        finally:
            tracemalloc.stop()


class TestEncoding:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"status": "REJECTED"}, "status"),
            ({"ticket_id": None}, "ticket_id"),
            ({"retry_count": 2**31}, "retry_count"),
            ({"created_at": "ontem"}, "created_at"),
            ({"parameters": {"a": 1}}, "parameters"),
            ({"sla": {"deadline": None, "timeout_ms": 1, "max_retries": 1}}, "deadline"),
            ({"surpresa": 1}, "surpresa"),
            ({"created_at": True}, "created_at"),
            ({"created_at": 1.5}, "created_at"),
            ({"dependencies": "abc"}, "dependencies"),
            ({"dependencies": ["a", 7]}, r"dependencies\.1"),
            ({"metadata": {7: "a"}}, "metadata"),
            ({"trace_id": 7}, "trace_id"),
            ({"description": "\ud800"}, "ExecutionTicket"),
        ],
    )
    def test_a_value_that_is_not_what_the_schema_says(self, change: dict[str, Any], said: str) -> None:
        with pytest.raises(WireError, match=said) as error:
            codec.encode("ExecutionTicket", {**TICKET, **change})
        assert error.value.code == "invalid_value"

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), "0.5", True])
    def test_a_number_that_is_none(self, number: Any) -> None:
        with pytest.raises(WireError, match="aggregated_risk"):
            codec.encode("ConsolidatedDecision", {**DECISION, "aggregated_risk": number})

    def test_a_field_that_is_missing(self) -> None:
        value = deepcopy(TICKET)
        del value["qos"]
        with pytest.raises(WireError, match="qos"):
            codec.encode("ExecutionTicket", value)

    def test_metadata_of_every_kind(self) -> None:
        assert codec.decode("FlowCTelemetryEvent", codec.encode("FlowCTelemetryEvent", EVENT)) == EVENT


def test_without_the_extra_json_works_and_avro_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(MissingExtraError, match=r"oraculo\[avro\]"):
        Codec(LocalRegistry(), AVRO)
    plain = Codec(LocalRegistry(), JSON)
    assert plain.decode("ExecutionResult", plain.encode("ExecutionResult", RESULT)) == RESULT
    assert refused(framed(4, BODY), by=plain) == "avro_not_supported"


def test_a_schema_of_a_folder_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    own = schemas.schema("ExecutionResult")
    own["fields"].append({"name": "region", "type": "string", "default": "sul"})
    own["fields"].append(
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None}
    )
    (tmp_path / "execution-result").mkdir()
    (tmp_path / "execution-result" / "execution-result.avsc").write_text(json.dumps(own))
    texts = folder_schemas(tmp_path)
    by = Codec(LocalRegistry(texts), written=texts)
    raw = by.encode("ExecutionResult", RESULT)
    found = fastavro.schemaless_reader(BytesIO(raw[5:]), fastavro.parse_schema(own), None)
    assert found == {**RESULT, "region": "sul", "seen": None}, "a consumer with that schema reads it"
    assert by.decode("ExecutionResult", raw) == RESULT, "so does Oráculo"
    plan = by.encode("CognitivePlan", SAMPLES["CognitivePlan"])
    assert plan == codec.encode("CognitivePlan", SAMPLES["CognitivePlan"]), "the others are as shipped"
    with pytest.raises(WireError, match="ExecutionResult"):
        by.encode("ExecutionResult", {**RESULT, "region": "norte"})


def test_a_field_that_only_the_folder_knows_and_has_no_default_is_refused(tmp_path: Path) -> None:
    own = schemas.schema("ExecutionResult")
    own["fields"].append({"name": "region", "type": "string"})
    (tmp_path / "execution-result.avsc").write_text(json.dumps(own))
    texts = folder_schemas(tmp_path)
    with pytest.raises(WireError, match="region"):
        Codec(LocalRegistry(texts), written=texts).encode("ExecutionResult", RESULT)
