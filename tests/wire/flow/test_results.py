"""Results as workers of Fluxo C write them."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oraculo.adapters.registry.local import LocalRegistry
from oraculo.core.commands import RecordResult
from oraculo.core.digests import bytes_of
from oraculo.core.vocabulary import Kind
from oraculo.errors import WireError
from oraculo.wire.flow import results
from oraculo.wire.flow.codec import Codec
from wire.flow.samples import RESULT
from wire.strategies import OBJECTS

RAW = b"bytes"


def read(**change: Any) -> RecordResult:
    command, _ = results.answer({**RESULT, **change}, RAW)
    assert command is not None
    return command


def inner(**change: Any) -> dict[str, Any]:
    return {**RESULT["result"], **change}


def test_everything_is_read() -> None:
    command, worker = results.answer(RESULT, RAW)
    assert worker == "worker-7" and command is not None
    assert (command.ok, command.erros, command.definitivo, command.attempt) == (True, [], False, None)
    assert (command.ticket, command.kind, bytes_of(command.digest)) == (
        RESULT["ticket_id"],
        Kind.EXECUCAO,
        zlib.crc32(RAW),
    )
    assert json.loads(command.dados) == {**RESULT["result"], "agent_id": "worker-7", "actual_duration_ms": 1234}


def test_it_is_the_same_out_of_avro() -> None:
    codec = Codec(LocalRegistry())
    raw = codec.encode("ExecutionResult", RESULT)
    assert results.answer(codec.decode("ExecutionResult", raw), RAW) == results.answer(RESULT, RAW)


def test_whoever_still_works_changes_nothing() -> None:
    assert results.answer({**RESULT, "status": "RUNNING"}, RAW) == (None, "worker-7")


@pytest.mark.parametrize(
    ("change", "ok"),
    [
        ({"status": "COMPLETED"}, True),
        ({"status": "completed"}, True),
        ({"status": "FAILED"}, False),
        ({"status": "COMPLETED", "result": inner(success=False)}, False),
        ({"status": "FAILED", "result": inner(success=True)}, False),
        ({"status": "COMPLETED", "result": None}, True),
        ({"status": "COMPLETED", "error_message": "aviso"}, True),
    ],
)
def test_who_succeeded(change: dict[str, Any], ok: bool) -> None:
    assert read(**change).ok is ok


def test_what_went_wrong() -> None:
    failed = read(status="FAILED", error_message="disco cheio", result=inner(metadata={"error_type": "DiskFull"}))
    assert failed.erros == [{"codigo": "DiskFull", "mensagem": "disco cheio", "definitivo": False}]
    assert not failed.definitivo
    assert read(status="FAILED").erros == [{"codigo": "erro", "definitivo": False}]


@pytest.mark.parametrize("name", ["definitivo", "non_retryable"])
@pytest.mark.parametrize(
    ("said", "final"), [("true", True), ("TRUE", True), (True, True), ("false", False), ("", False)]
)
def test_what_is_not_tried_again(name: str, said: Any, final: bool) -> None:
    assert read(status="FAILED", result=inner(metadata={name: said})).definitivo is final
    assert not read(status="COMPLETED", result=inner(metadata={name: said})).definitivo


@pytest.mark.parametrize(
    ("said", "attempt"),
    [("2", 2), (2, 2), ("", None), ("0", None), ("x", None), ("9" * 30, None), ("0" * 11 + "1" * 5000, None)],
)
def test_the_attempt_when_it_is_echoed(said: Any, attempt: int | None) -> None:
    assert read(result=inner(metadata={"attempt": said})).attempt == attempt


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"ticket_id": None}, "ticket_id"),
        ({"ticket_id": 7}, "ticket_id"),
        ({"status": "REJECTED"}, "status"),
        ({"status": None}, "status"),
        ({"result": []}, "result"),
        ({"result": inner(success="yes")}, "result.success"),
        ({"result": inner(output=[])}, "result.output"),
        ({"actual_duration_ms": -1}, "actual_duration_ms"),
        ({"actual_duration_ms": "long"}, "actual_duration_ms"),
        ({"actual_duration_ms": 1e308}, "actual_duration_ms"),
        ({"agent_id": 7}, "agent_id"),
        ({"timestamp": "ontem"}, "timestamp"),
    ],
)
def test_what_is_refused_and_where(change: dict[str, Any], where: str) -> None:
    with pytest.raises(WireError) as error:
        results.answer({**RESULT, **change}, RAW)
    assert error.value.code == "invalid_result"
    assert [item["campo"] for item in error.value.errors] == [where]


def test_the_trace_of_the_worker() -> None:
    context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    command, _ = results.answer(RESULT, RAW, {"traceparent": context})
    assert command is not None and command.traceparent == context


@settings(max_examples=100, deadline=None)
@given(OBJECTS, st.sampled_from(sorted(RESULT)), st.sampled_from(sorted(RESULT["result"])))
def test_nothing_but_a_wire_error_comes_of_any_object(value: dict[str, Any], one: str, other: str) -> None:
    for message in (value, {**RESULT, one: value}, {**RESULT, "result": inner(**{other: value})}):
        try:
            results.answer(message, RAW)
        except WireError as error:
            assert error.code == "invalid_result"
