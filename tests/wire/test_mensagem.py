"""The envelope: golden messages of the seeds, field for field, and every way to get it wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.core.vocabulary import TipoEvento
from oraculo.errors import WireError
from oraculo.wire import mensagem, strict_json
from oraculo.wire.mensagem import REQUIRED, Mensagem
from wire.strategies import ENVELOPES, bounded

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
VALID: dict[str, Any] = {
    "correlation_id": "abc123",
    "tipo_evento": "iniciar_coleta",
    "payload": {"fonte": "youtube", "parametros": {"canal": "canal_exemplo"}},
    "timestamp": "2025-10-14T12:00:00Z",
}
OPTIONAL_TEXT = ["message_id", "ticket_id", "fila_resposta", "traceparent", "token"]

TIMES = [
    "2025-10-14T12:00:00Z", "2025-10-14T12:00:00+00:00", "2025-10-14T09:00:00-03:00", "2025-10-14T12:00:00.1Z",
    "2025-10-14T12:00:00.123456Z", "2025-10-14T12:00:00.123456789Z", "2024-02-29T00:00:00Z", "2000-02-29T23:59:59Z",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "2025-10-14T12:00:00-00:00",
]  # fmt: skip
NOT_TIMES: list[Any] = [
    "2025-13-01T00:00:00Z", "2025-00-01T00:00:00Z", "2025-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
    "2025-04-31T00:00:00Z", "2025-10-32T00:00:00Z", "2025-10-00T00:00:00Z", "2025-10-14T12:00:60Z",
    "2025-10-14T24:00:00Z", "2025-10-14T12:60:00Z", "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
    "2025-10-14T12:00:00+99:99", "2025-10-14T12:00:00+24:00", "2025-10-14T12:00:00+01:60", "2025-10-14T12:00:00+01:99",
    "2025-10-14T12:00:00", "2025-10-14", "2025-10-14 12:00:00Z", "2025-10-14t12:00:00z", "2025-10-14T12:00:00Z\n",
    " 2025-10-14T12:00:00Z", "2025-10-14T12:00:00.Z", "2025-10-14T12:00:00.1234567890Z", "2025-10-14T12:00Z",
    "20251014T120000Z", "2025-W42-2T12:00:00Z", "2025-10-14T12:00:00+0300", "2025-10-14T12:00:00+03",
    "２０２５-10-14T12:00:00Z", "٢٠٢٥-10-14T12:00:00Z", "-2025-10-14T12:00:00Z", "now", "", 1760443200, 1.5, None, True,
    ["2025-10-14T12:00:00Z"], {"$date": 1},
]  # fmt: skip

# Ids of part B6: all of them are texts of 1 to 128 characters, so all of them survive.
IDS = [
    "abc123", "123e4567-e89b-12d3-a456-426614174000", " ", "a b", "../../etc/passwd", "%00", "a%2Fb", "\u202eabc",
    "a\u200bb", "é", "e\u0301", "😀" * 128, "health", "' OR 1=1 --", '{"$ne":null}', "*)(uid=*", "{{7*7}}",
    "${jndi:ldap://x}", "=cmd|' /C calc'!A0", "\x1b[31mred", "a\r\nSet-Cookie: x", "x" * 128, "/", "?", "#", ".", "..",
]  # fmt: skip


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


def refusal(value: Any) -> WireError:
    with pytest.raises(WireError) as refused:
        mensagem.parse(raw(value))
    return refused.value


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_messages_field_for_field(path: Path) -> None:
    """seed_001, seed_002_padrao and seed_003 write `{...}`, which stands here as an empty object."""
    text = path.read_bytes()
    expected = json.loads(text)
    message = mensagem.parse(text)
    read = {name: getattr(message, name) for name in expected}
    assert read == expected
    assert message.extra == {}


def test_the_example_of_the_seeds_exactly() -> None:
    text = (Path(__file__).parent / "golden" / "seed_000_exemplo.json").read_bytes()
    assert mensagem.parse(text) == Mensagem(
        "abc123",
        TipoEvento.INICIAR_COLETA,
        {"fonte": "youtube", "parametros": {"canal": "canal_exemplo", "periodo": "2025-10"}},
        "2025-10-14T12:00:00Z",
    )


@pytest.mark.parametrize("name", REQUIRED)
def test_each_of_the_four_fields_is_required(name: str) -> None:
    error = refusal({key: value for key, value in VALID.items() if key != name})
    assert error.code == "missing_field" and error.errors == [{"campo": name, "mensagem": "required"}]


def test_all_that_is_missing_is_named_at_once() -> None:
    assert refusal({}).detail == "missing: correlation_id, tipo_evento, payload, timestamp"


@pytest.mark.parametrize("value", [[], "x", 1, 1.5, True, None, [VALID]])
def test_a_message_is_an_object(value: Any) -> None:
    assert refusal(value).code == "not_an_object"


@pytest.mark.parametrize("identity", IDS)
def test_any_text_is_a_correlation_id(identity: str) -> None:
    assert mensagem.parse(raw({**VALID, "correlation_id": identity})).correlation_id == identity


@pytest.mark.parametrize("identity", ["", "x" * 129, "x" * 10_000, 5, None, True, ["a"], {"a": 1}])
def test_what_is_no_correlation_id(identity: Any) -> None:
    error = refusal({**VALID, "correlation_id": identity})
    assert error.code == "invalid_field" and error.errors[0]["campo"] == "correlation_id"
    assert len(error.detail) < 200


@pytest.mark.parametrize("event", ["", "iniciar", "INICIAR_COLETA", "iniciar_coleta ", 1, None, ["iniciar_coleta"], {}])
def test_an_unknown_event_lists_the_known_ones(event: Any) -> None:
    error = refusal({**VALID, "tipo_evento": event})
    assert error.code == "unknown_event" and "resultado_execucao" in error.detail


@pytest.mark.parametrize("payload", [[], "x", 1, None, True])
def test_the_payload_is_an_object(payload: Any) -> None:
    assert refusal({**VALID, "payload": payload}).code == "invalid_field"


@pytest.mark.parametrize("time", TIMES)
def test_times(time: str) -> None:
    assert mensagem.parse(raw({**VALID, "timestamp": time, "prazo": time})).timestamp == time


@pytest.mark.parametrize("time", NOT_TIMES)
def test_what_is_no_time(time: Any) -> None:
    error = refusal({**VALID, "timestamp": time})
    assert error.code == "invalid_field" and error.errors[0]["campo"] == "timestamp"
    if time is not None:
        assert refusal({**VALID, "prazo": time}).errors[0]["campo"] == "prazo"


@pytest.mark.parametrize("name", OPTIONAL_TEXT)
def test_optional_texts(name: str) -> None:
    assert getattr(mensagem.parse(raw({**VALID, name: "x"})), name) == "x"
    assert getattr(mensagem.parse(raw({**VALID, name: None})), name) is None
    assert refusal({**VALID, name: 5}).errors[0]["campo"] == name


@pytest.mark.parametrize(("written", "read"), [(1, 1), (2**31, 2**31), (None, None), (1.0, 1), (2.0, 2)])
def test_attempts(written: Any, read: int | None) -> None:
    message = mensagem.parse(raw({**VALID, "tentativa": written}))
    assert message.tentativa == read and type(message.tentativa) is type(read)


@pytest.mark.parametrize("attempt", [0, -1, 2**31 + 1, 1.5, 1e300, True, "1", [1]])
def test_what_is_no_attempt(attempt: Any) -> None:
    assert refusal({**VALID, "tentativa": attempt}).errors[0]["campo"] == "tentativa"


def test_unknown_fields_are_kept_and_ignored() -> None:
    message = mensagem.parse(raw({**VALID, "x-tenant": {"a": [1]}, "__proto__": 1, "extra": None}))
    assert message.extra == {"x-tenant": {"a": [1]}, "__proto__": 1}


@given(ENVELOPES)
@bounded
def test_any_good_envelope_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    message = mensagem.parse(strict_json.dumps(value))
    for name, item in value.items():
        if name == "campo_desconhecido":
            assert message.extra.get(name) == item
        else:
            assert getattr(message, name) == item


@given(st.binary(max_size=300))
@bounded
def test_any_bytes_give_a_message_or_a_wire_error(text: bytes) -> None:
    try:
        mensagem.parse(text)
    except WireError as error:
        assert error.code


def test_what_is_shown_of_a_wrong_value_is_short() -> None:
    assert len(refusal({**VALID, "payload": "x" * 100_000}).detail) < 200


def test_orders_may_be_larger_and_a_little_deeper_than_what_comes_from_outside() -> None:
    deep: Any = 1
    for _ in range(strict_json.MAX_DEPTH):
        deep = [deep]
    text = raw({**VALID, "payload": {"dados": deep, "largo": "x" * strict_json.MAX_BYTES}})
    assert mensagem.parse_order(text).payload["dados"] == deep
    for limited in (raw({**VALID, "payload": {"dados": deep}}), raw({**VALID, "payload": {"a": "x" * 2**20}})):
        with pytest.raises(WireError):
            mensagem.parse(limited)


@pytest.mark.parametrize("depth", [100, 250, 300, 900])
def test_an_order_that_is_wrong_and_deep_is_a_wire_error_too(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for text in (b'{"correlation_id":%s}' % deep, raw(VALID)[:-1] + b',"ticket_id":%s}' % deep):
        with pytest.raises(WireError):
            mensagem.parse_order(text)
