"""The orders we write and the answers we read, in every shape that workers give them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from core.given import RUN, Story, at, coleta, execucao, plan
from oraculo.core.commands import RecordResult
from oraculo.core.digests import content_of
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Kind
from oraculo.errors import WireError
from oraculo.wire import mensagem, payloads, strict_json
from wire.strategies import JSON, OBJECTS, bounded
from wire.test_mensagem import VALID

FULL = {"codigo": "http_500", "mensagem": "fora do ar", "definitivo": False}


def read(payload: dict[str, Any], *, event: str = "resultado_coleta", **more: Any) -> RecordResult:
    raw = strict_json.dumps({**VALID, "tipo_evento": event, "payload": payload, **more})
    return payloads.answer(mensagem.parse(raw), raw)


def refused(payload: dict[str, Any], **more: Any) -> str:
    with pytest.raises(WireError) as error:
        read(payload, **more)
    return error.value.code


class TestDigest:
    def test_the_same_said_in_other_bytes_has_the_same_content(self) -> None:
        first, again = (read({"dados": [1, "ç"]}, timestamp=f"2025-10-14T12:00:0{n}Z") for n in range(2))
        assert first.digest != again.digest
        assert content_of(first.digest) == content_of(again.digest) != 0

    @pytest.mark.parametrize("other", [{"dados": 2}, {"dados": 1, "status": "erro"}, {"dados": 1, "erros": ["x"]}])
    def test_something_else_has_another(self, other: dict[str, Any]) -> None:
        assert content_of(read({"dados": 1}).digest) != content_of(read(other).digest)


class TestNames:
    def test_an_executor_that_answers_like_a_collector_may_name_itself(self) -> None:
        answer = read({"executador": "relatorio", "resultado": "ok"})
        assert (answer.kind, answer.name) == (Kind.COLETA, "relatorio")
        assert read({"fonte": "youtube", "executador": "relatorio"}).name == "youtube"
        assert read({"executador": 7}).name is None

    def test_a_result_of_an_executor_is_a_free_object(self) -> None:
        assert read({"fonte": "youtube"}, event="resultado_execucao").name is None


class TestFailed:
    """Failed when `status` is `erro`, or `erros` is not empty and `status` is not `ok`."""

    @pytest.mark.parametrize(
        ("payload", "ok"),
        [
            ({}, True),
            ({"status": "ok"}, True),
            ({"status": "ok", "erros": []}, True),
            ({"status": "ok", "erros": [FULL]}, True),
            ({"status": "ok", "erros": "aviso"}, True),
            ({"status": "erro"}, False),
            ({"status": "erro", "erros": []}, False),
            ({"status": "erro", "erros": None}, False),
            ({"status": "erro", "erros": [FULL]}, False),
            ({"erros": [FULL]}, False),
            ({"erros": FULL}, False),
            ({"erros": "quebrou"}, False),
            ({"erros": ["quebrou"]}, False),
            ({"erros": [""]}, False),
            ({"erros": {}}, False),
            ({"erros": []}, True),
            ({"erros": ""}, True),
            ({"erros": None}, True),
            ({"status": None, "erros": [FULL]}, False),
            ({"status": "parcial", "erros": [FULL]}, False),
            ({"status": "parcial"}, True),
            ({"status": "ERRO"}, True),
            ({"status": 500}, True),
            ({"status": {"a": 1}, "erros": [FULL]}, False),
        ],
    )
    @pytest.mark.parametrize("event", ["resultado_coleta", "resultado_execucao"])
    def test_every_shape_of_status_and_errors(self, payload: dict[str, Any], ok: bool, event: str) -> None:
        assert read(payload, event=event).ok is ok

    @pytest.mark.parametrize(
        ("written", "kept"),
        [
            ([FULL], [FULL]),
            (FULL, [FULL]),
            ("quebrou", [{"codigo": "erro", "mensagem": "quebrou", "definitivo": False}]),
            (
                ["a", FULL],
                [{"codigo": "erro", "mensagem": "a", "definitivo": False}, FULL],
            ),
            ([{"codigo": "x"}], [{"codigo": "x", "mensagem": "", "definitivo": False}]),
            (
                [{"mensagem": "m", "extra": [1]}],
                [{"codigo": "erro", "mensagem": "m", "definitivo": False, "extra": [1]}],
            ),
        ],
    )
    def test_errors_are_kept_as_the_contract_writes_them(self, written: Any, kept: list[Any]) -> None:
        assert read({"erros": written}).erros == kept

    def test_an_error_that_says_nothing_has_no_text(self) -> None:
        answer = read({"status": "erro"})
        assert (answer.ok, answer.erros, answer.definitivo) == (False, [], False)

    @pytest.mark.parametrize("erros", [0, 5, True, False, [1], [None], [[]], [FULL, 5]])
    def test_errors_that_cannot_be_read(self, erros: Any) -> None:
        assert refused({"status": "erro", "erros": erros}) == "invalid_field"

    @pytest.mark.parametrize(
        ("erros", "definitivo"),
        [
            ([{"definitivo": True}], True),
            ([{"definitivo": False}, {"definitivo": True}], True),
            ([{"definitivo": False}], False),
            ([{}], False),
            (["x"], False),
            ([{"definitivo": "true"}], False),
            ([{"definitivo": 1}], False),
        ],
    )
    def test_definitivo_is_true_and_nothing_else(self, erros: Any, definitivo: bool) -> None:
        assert read({"status": "erro", "erros": erros}).definitivo is definitivo

    def test_a_success_is_never_definitivo(self) -> None:
        assert not read({"status": "ok", "erros": [{"definitivo": True}]}).definitivo


TICKET = ticket_id(1 << 60, 2)


class TestEcho:
    def test_in_the_envelope(self) -> None:
        answer = read({}, ticket_id="t", tentativa=2)
        assert (answer.ticket, answer.attempt) == ("t", 2)

    def test_in_the_payload(self) -> None:
        answer = read({"ticket_id": TICKET, "tentativa": 2})
        assert (answer.ticket, answer.attempt) == (TICKET, 2)

    def test_the_envelope_wins(self) -> None:
        answer = read({"ticket_id": "p", "tentativa": 9}, ticket_id="e", tentativa=1)
        assert (answer.ticket, answer.attempt) == ("e", 1)

    def test_one_of_each(self) -> None:
        answer = read({"tentativa": 3}, ticket_id="e")
        assert (answer.ticket, answer.attempt) == ("e", 3)

    def test_nothing(self) -> None:
        answer = read({"ticket_id": None, "tentativa": None})
        assert (answer.ticket, answer.attempt, answer.name) == (None, None, None)

    @pytest.mark.parametrize("payload", [{"fonte": 5}, {"fonte": []}])
    def test_names_that_cannot_be_read(self, payload: dict[str, Any]) -> None:
        assert refused(payload) == "invalid_field"

    @pytest.mark.parametrize("own", [{"ticket_id": 5}, {"ticket_id": "JIRA-12"}, {"tentativa": "um"}, {"tentativa": 0}])
    def test_a_result_may_have_a_ticket_of_its_own(self, own: dict[str, Any]) -> None:
        answer = read(own, event="resultado_execucao")
        assert (answer.ticket, answer.attempt) == (None, None)
        assert json.loads(answer.dados) == own

    def test_the_name_is_that_of_the_kind(self) -> None:
        both = {"fonte": "youtube", "executador": "relatorio"}
        assert (read(both).kind, read(both).name) == (Kind.COLETA, "youtube")
        answer = read(both, event="resultado_execucao")
        assert (answer.kind, answer.name) == (Kind.EXECUCAO, "relatorio")


class TestData:
    @given(JSON)
    @bounded
    def test_dados_of_a_collection_is_any_value(self, dados: Any) -> None:
        assert json.loads(read({"dados": dados, "outro": 1}).dados) == dados

    @given(OBJECTS)
    @bounded
    def test_the_whole_payload_of_an_execution_is_its_result(self, payload: dict[str, Any]) -> None:
        for echoed in ("ticket_id", "tentativa", "executador", "erros"):
            payload.pop(echoed, None)
        echo = {"ticket_id": TICKET, "tentativa": 1}
        assert json.loads(read({**payload, **echo}, event="resultado_execucao").dados) == payload

    def test_the_example_of_the_seeds(self) -> None:
        answer = read({"resultado": "ok", "arquivo": "relatorio.pdf"}, event="resultado_execucao")
        assert answer.ok and answer.dados == b'{"resultado":"ok","arquivo":"relatorio.pdf"}'

    def test_a_collection_without_data_gave_null(self) -> None:
        assert read({"status": "ok"}).dados == b"null"

    def test_what_a_collection_says_instead_of_data_is_kept(self) -> None:
        assert read({"fonte": "x", "status": "ok", "total": 3}).dados == b'{"total":3}'


@pytest.mark.parametrize("event", ["iniciar_coleta", "iniciar_execucao"])
def test_an_order_is_no_answer(event: str) -> None:
    assert refused({}, event=event) == "unexpected_event"


def test_the_digest_is_of_the_bytes() -> None:
    one, same, other = read({"dados": 1}), read({"dados": 1}), read({"dados": 2})
    assert one.digest == same.digest != other.digest
    assert one.digest


class TestOrders:
    def test_a_collection_field_for_field(self) -> None:
        story = Story(plan([coleta("youtube", parametros=b'{"canal":"x"}', timeout=30)], timeout=60))
        ((queue, message_id, body),) = payloads.orders(story.state, [(0, 1)], at(5))
        identity = ticket_id(RUN, 0)
        assert (queue, message_id) == ("escavador_youtube", f"{identity}.1")
        assert json.loads(body) == {
            "correlation_id": "abc123",
            "tipo_evento": "iniciar_coleta",
            "payload": {"fonte": "youtube", "parametros": {"canal": "x"}},
            "timestamp": "2025-10-14T12:00:05Z",
            "message_id": f"{identity}.1",
            "ticket_id": identity,
            "tentativa": 1,
            "prazo": "2025-10-14T12:00:35Z",
            "fila_resposta": "orquestrador_resultados",
        }

    def test_the_deadline_is_never_after_that_of_the_orchestration(self) -> None:
        story = Story(plan([coleta(timeout=30)], timeout=20))
        ((_, _, body),) = payloads.orders(story.state, [(0, 1)], at(5))
        assert json.loads(body)["prazo"] == "2025-10-14T12:00:20Z"

    def test_executions_get_what_was_collected(self) -> None:
        story = Story(plan([coleta("a"), coleta("b", attempts=1)], [execucao("r"), execucao("s")]))
        story.ok(0, b'[{"x":1}]')
        story.fail(1)
        written = list(payloads.orders(story.state, [(2, 1), (3, 1)], at(0)))
        for name, (queue, _, body) in zip("rs", written, strict=True):
            payload = json.loads(body)["payload"]
            assert queue == f"executador_{name}"
            assert payload["executador"] == name
            assert payload["dados"] == [
                {"fonte": "a", "status": "concluida", "dados": [{"x": 1}]},
                {"fonte": "b", "status": "erro", "dados": {"n": 1}},
            ]

    def test_every_attempt_has_a_message_id_of_its_own_and_the_same_ticket(self) -> None:
        story = Story(plan(1, attempts=2))
        first = json.loads(next(iter(payloads.orders(story.state, [(0, 1)], at(0))))[2])
        second = json.loads(next(iter(payloads.orders(story.state, [(0, 2)], at(0))))[2])
        assert first["ticket_id"] == second["ticket_id"] and first["message_id"] != second["message_id"]

    @given(OBJECTS, JSON)
    @bounded
    def test_whatever_was_asked_and_collected_the_order_can_be_read(
        self, parametros: dict[str, Any], dados: Any
    ) -> None:
        text = strict_json.compact(parametros)
        story = Story(plan([coleta(parametros=text)], [execucao(parametros=text)]), check=False)
        story.ok(0, strict_json.compact(dados))
        for position in (0, 1):
            ((_, _, body),) = payloads.orders(story.state, [(position, 1)], at(0))
            assert mensagem.parse_order(body).payload["parametros"] == parametros
        assert mensagem.parse_order(body).payload["dados"][0]["dados"] == dados

    def test_an_answer_as_deep_as_allowed_makes_an_order_that_can_be_read(self) -> None:
        deep = b"[" * 62 + b"]" * 62
        head = b'{"correlation_id":"a","tipo_evento":"resultado_coleta","timestamp":"2025-10-14T12:00:00Z","payload":'
        raw = head + b'{"dados":' + deep + b"}}"
        answer = payloads.answer(mensagem.parse(raw), raw)
        story = Story(plan(1, 1))
        story.ok(0, answer.dados)
        ((_, _, body),) = payloads.orders(story.state, [(1, 1)], at(0))
        assert strict_json.dumps(mensagem.parse_order(body).payload["dados"][0]["dados"]) == deep
