"""Requests: what may be asked, how faults are told, and that whatever is accepted makes a plan or a clear refusal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.core.plan import Backoff, Plan
from oraculo.core.vocabulary import FanIn, Kind
from oraculo.errors import PlanError, WireError
from oraculo.wire import requests
from oraculo.wire.requests import Defaults
from wire.strategies import JSON, NAMES, OBJECTS, SCALARS, TEXT, bounded

DEFAULTS = Defaults(timeout_s=3600, ticket_timeout_s=45, max_tentativas=4, retry_base_s=2, retry_cap_s=90)
ONE: dict[str, Any] = {"coletas": [{"fonte": "youtube"}]}
CONTRACT: dict[str, Any] = {
    "coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}, "timeout_s": 30, "max_tentativas": 3}],
    "execucoes": [{"executador": "relatorio", "parametros": {}}],
    "timeout_s": 60,
    "fan_in": {"modo": "todos"},
    "correlation_id": "opcional",
    "notificar": {"webhook": "https://example.com/x", "fila": "minha_fila"},
}


def made(value: Any) -> Plan:
    request = requests.parse(value)
    requests.check_shape(request)
    return requests.plan_of(request, DEFAULTS)


def faults(value: Any) -> list[str]:
    with pytest.raises(WireError) as error:
        requests.parse(value)
    assert error.value.code == "invalid_request"
    return [item["campo"] for item in error.value.errors]


class TestValid:
    def test_the_request_of_the_contract(self) -> None:
        plan = made(CONTRACT)
        collect, execute = plan.tasks
        assert (collect.kind, collect.name, collect.queue) == (Kind.COLETA, "youtube", "escavador_youtube")
        assert (collect.parametros, collect.timeout, collect.max_attempts) == (
            b'{"canal":"x"}',
            timedelta(seconds=30),
            3,
        )
        assert (execute.kind, execute.queue, execute.parametros) == (Kind.EXECUCAO, "executador_relatorio", b"{}")
        assert plan.timeout == timedelta(seconds=60)
        assert (plan.notify.webhook, plan.notify.queue) == ("https://example.com/x", "minha_fila")

    def test_what_is_not_said_comes_from_the_defaults(self) -> None:
        plan = made(ONE)
        assert plan.timeout == timedelta(hours=1)
        assert (plan.tasks[0].timeout, plan.tasks[0].max_attempts) == (timedelta(seconds=45), 4)
        assert plan.backoff == Backoff(timedelta(seconds=2), timedelta(seconds=90))
        assert (plan.gates[0].mode, plan.notify.webhook, plan.notify.queue) == (FanIn.TODOS, None, None)

    @pytest.mark.parametrize(
        "value",
        [
            {"execucoes": [{"executador": "x"}]},
            {**ONE, "execucoes": []},
            {**ONE, "fan_in": {}},
            {**ONE, "fan_in": {"modo": "primeiro"}},
            {**ONE, "fan_in": {"modo": "quorum", "minimo": 1}},
            {**ONE, "timeout_s": 0.5},
            {**ONE, "timeout_s": 2592000},
            {**ONE, "notificar": {}},
            {**ONE, "correlation_id": "../ ? #"},
            {**ONE, "tipo": None, "timeout_s": None, "fan_in": None, "notificar": None, "correlation_id": None},
            {"coletas": [{"fonte": "a.b-C_9", "max_tentativas": 100}] * 3},
        ],
    )  # fmt: skip
    def test_others(self, value: Any) -> None:
        assert made(value).tasks


class TestInvalid:
    @pytest.mark.parametrize("value", [None, [], "x", 5, True])
    def test_a_request_is_an_object(self, value: Any) -> None:
        assert faults(value) == ["(corpo)"]

    @pytest.mark.parametrize(
        ("value", "where"),
        [
            ({**ONE, "novo": 1}, "novo"),
            ({"coletas": [{"fonte": "a", "novo": 1}]}, "coletas.0.novo"),
            ({"coletas": {"fonte": "a"}}, "coletas"),
            ({"coletas": None}, "coletas"),
            ({"coletas": [{}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": ""}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": "a b"}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": "a\n"}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": "../a"}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": "x" * 101}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": 5}]}, "coletas.0.fonte"),
            ({"coletas": [{"fonte": "a", "parametros": []}]}, "coletas.0.parametros"),
            ({"coletas": [{"fonte": "a", "parametros": None}]}, "coletas.0.parametros"),
            ({"coletas": [{"fonte": "a", "timeout_s": 0}]}, "coletas.0.timeout_s"),
            ({"coletas": [{"fonte": "a", "timeout_s": -1}]}, "coletas.0.timeout_s"),
            ({"coletas": [{"fonte": "a", "timeout_s": 2**63}]}, "coletas.0.timeout_s"),
            ({"coletas": [{"fonte": "a", "timeout_s": "5"}]}, "coletas.0.timeout_s"),
            ({"coletas": [{"fonte": "a", "timeout_s": True}]}, "coletas.0.timeout_s"),
            ({"coletas": [{"fonte": "a", "max_tentativas": 0}]}, "coletas.0.max_tentativas"),
            ({"coletas": [{"fonte": "a", "max_tentativas": 10**9}]}, "coletas.0.max_tentativas"),
            ({"coletas": [{"fonte": "a", "max_tentativas": 1.5}]}, "coletas.0.max_tentativas"),
            ({"coletas": [{"fonte": "a", "max_tentativas": "3"}]}, "coletas.0.max_tentativas"),
            ({"execucoes": [{"fonte": "a"}]}, "execucoes.0.executador"),
            ({**ONE, "timeout_s": 0}, "timeout_s"),
            ({**ONE, "timeout_s": float("inf")}, "timeout_s"),
            ({**ONE, "timeout_s": float("nan")}, "timeout_s"),
            ({**ONE, "fan_in": {"modo": "todas_ok"}}, "fan_in.modo"),
            ({**ONE, "fan_in": {"modo": "maioria"}}, "fan_in.modo"),
            ({**ONE, "fan_in": {"modo": "quorum", "minimo": 0}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"modo": "quorum", "minimo": "2"}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"modo": "quorum", "minimo": 1, "x": 1}}, "fan_in.x"),
            ({**ONE, "correlation_id": ""}, "correlation_id"),
            ({**ONE, "correlation_id": "x" * 129}, "correlation_id"),
            ({**ONE, "correlation_id": 5}, "correlation_id"),
            ({**ONE, "notificar": {"fila": "a b"}}, "notificar.fila"),
            ({**ONE, "notificar": {"webhook": ""}}, "notificar.webhook"),
            ({**ONE, "notificar": {"email": "x"}}, "notificar.email"),
            ({"tipo": "a b"}, "tipo"),
            ({"tipo": "a", "parametros": []}, "parametros"),
        ],
    )
    def test_the_fault_is_named(self, value: Any, where: str) -> None:
        assert where in faults(value)

    def test_every_fault_is_listed_and_the_list_is_bounded(self) -> None:
        assert faults({"coletas": [{"fonte": ""}, {"fonte": "a", "x": 1}], "y": 1}) == [
            "coletas.0.fonte",
            "coletas.1.x",
            "y",
        ]
        assert len(faults({"coletas": [{"fonte": ""}] * 1000})) == 50

    @pytest.mark.parametrize(
        ("value", "where"),
        [
            ({}, "coletas"),
            ({"coletas": [], "execucoes": []}, "coletas"),
            ({**ONE, "fan_in": {"modo": "quorum"}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"modo": "quorum", "minimo": 2}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"modo": "todos", "minimo": 1}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"modo": "primeiro", "minimo": 1}}, "fan_in.minimo"),
            ({**ONE, "fan_in": {"minimo": 1}}, "fan_in.minimo"),
            ({**ONE, "tipo": "x"}, "tipo"),
            ({**ONE, "parametros": {}}, "parametros"),
            ({"coletas": [{"fonte": "a"}] * 50_001}, "coletas"),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_well_formed_but_no_plan(self, value: Any, where: str) -> None:
        with pytest.raises(PlanError) as error:
            made(value)
        assert error.value.where == where

    @pytest.mark.parametrize("parametros", [{"a": object()}, {"\ud800": 1}, {"a": "\ud800"}, {"a": 2**70}])
    def test_python_values_that_are_no_json_are_a_plan_error(self, parametros: dict[str, Any]) -> None:
        with pytest.raises(PlanError, match="cannot be written as JSON"):
            made({"coletas": [{"fonte": "a", "parametros": parametros}]})


class TestTaskTypes:
    TEMPLATE = requests.parse(
        {
            "coletas": [{"fonte": "youtube", "parametros": {"canal": "padrão", "limite": 5}}, {"fonte": "blog"}],
            "execucoes": [{"executador": "relatorio", "parametros": {"formato": "pdf"}}],
            "timeout_s": 120,
            "fan_in": {"modo": "quorum", "minimo": 1},
            "notificar": {"fila": "avisos"},
        }
    )

    def test_each_task_gets_the_parameters_on_top_of_its_own(self) -> None:
        request = requests.parse({"tipo": "semanal", "parametros": {"canal": "x"}, "correlation_id": "c"})
        expanded = requests.expand(request, self.TEMPLATE)
        assert [c.parametros for c in expanded.coletas] == [{"canal": "x", "limite": 5}, {"canal": "x"}]
        assert expanded.execucoes[0].parametros == {"formato": "pdf", "canal": "x"}
        assert (expanded.tipo, expanded.correlation_id, expanded.timeout_s) == ("semanal", "c", 120)
        plan = requests.plan_of(expanded, DEFAULTS)
        assert (plan.tipo, plan.gates[0].needed, plan.notify.queue) == ("semanal", 1, "avisos")

    def test_the_request_may_say_otherwise(self) -> None:
        request = requests.parse(
            {"tipo": "semanal", "timeout_s": 5, "fan_in": {"modo": "primeiro"}, "notificar": {"fila": "outra"}}
        )
        plan = requests.plan_of(requests.expand(request, self.TEMPLATE), DEFAULTS)
        assert (plan.timeout, plan.gates[0].mode, plan.notify.queue) == (timedelta(seconds=5), FanIn.PRIMEIRO, "outra")

    def test_the_template_is_not_changed(self) -> None:
        before = self.TEMPLATE.model_dump()
        requests.expand(requests.parse({"tipo": "t", "parametros": {"z": 1}}), self.TEMPLATE)
        assert self.TEMPLATE.model_dump() == before


class TestFingerprint:
    def of(self, value: Any) -> str:
        return requests.fingerprint(requests.parse(value))

    def test_the_order_of_keys_and_the_correlation_id_do_not_count(self) -> None:
        turned = {key: CONTRACT[key] for key in reversed(CONTRACT)}
        assert self.of(CONTRACT) == self.of(turned) == self.of({**CONTRACT, "correlation_id": "outro"})

    def test_it_is_stable_between_versions(self) -> None:
        """Stored in databases: a change here makes every repeated request a conflict."""
        assert self.of(ONE) == "04a589f328907ab9146151e9940ef8ad"

    @pytest.mark.parametrize(
        "other",
        [
            {**ONE, "timeout_s": 1},
            {"coletas": [{"fonte": "youtube"}, {"fonte": "youtube"}]},
            {"coletas": [{"fonte": "Youtube"}]},
            {"execucoes": [{"executador": "youtube"}]},
            {"coletas": [{"fonte": "youtube", "parametros": {"a": None}}]},
            {"coletas": [{"fonte": "youtube", "parametros": {"a": 1}}]},
            {"coletas": [{"fonte": "youtube", "parametros": {"a": "1"}}]},
            {"coletas": [{"fonte": "youtube", "parametros": {"a": [1, 2]}}]},
            {"coletas": [{"fonte": "youtube", "parametros": {"a": [2, 1]}}]},
        ],
    )
    def test_another_body_is_another_fingerprint(self, other: Any) -> None:
        assert self.of(other) != self.of(ONE)

    @given(OBJECTS)
    @bounded
    def test_of_any_parameters(self, parametros: dict[str, Any]) -> None:
        value = {"coletas": [{"fonte": "a", "parametros": parametros}]}
        turned = {"coletas": [{"parametros": dict(reversed(parametros.items())), "fonte": "a"}]}
        assert self.of(value) == self.of(turned)


SECONDS = st.one_of(st.floats(0.001, 2592000), st.integers(1, 2592000), SCALARS)
TASK = {
    "parametros": st.one_of(OBJECTS, JSON),
    "timeout_s": SECONDS,
    "max_tentativas": st.one_of(st.integers(0, 101), SCALARS),
}
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "coletas": st.lists(
            st.fixed_dictionaries({"fonte": st.one_of(NAMES, TEXT)}, optional=TASK), max_size=4
        ),
        "execucoes": st.lists(st.fixed_dictionaries({"executador": NAMES}, optional=TASK), max_size=4),
        "timeout_s": SECONDS,
        "fan_in": st.fixed_dictionaries(
            {}, optional={"modo": st.sampled_from(["todos", "quorum", "primeiro", "x"]), "minimo": st.integers(-1, 6)}
        ),
        "correlation_id": st.one_of(TEXT, st.none()),
        "notificar": st.fixed_dictionaries({}, optional={"fila": st.one_of(NAMES, TEXT), "webhook": TEXT}),
        "tipo": st.one_of(st.none(), NAMES),
        "parametros": st.one_of(st.none(), OBJECTS),
    },
)  # fmt: skip
GOOD_TASK = {"parametros": OBJECTS, "timeout_s": st.floats(1e-9, 2592000), "max_tentativas": st.integers(1, 100)}
GOOD_REQUESTS = st.fixed_dictionaries(
    {"coletas": st.lists(st.fixed_dictionaries({"fonte": NAMES}, optional=GOOD_TASK), max_size=4)},
    optional={
        "execucoes": st.lists(st.fixed_dictionaries({"executador": NAMES}, optional=GOOD_TASK), max_size=4),
        "timeout_s": st.floats(1e-9, 2592000),
        "fan_in": st.fixed_dictionaries(
            {"modo": st.sampled_from(["todos", "quorum", "primeiro"])}, optional={"minimo": st.integers(1, 6)}
        ),
    },
)


@given(st.one_of(REQUESTS, GOOD_REQUESTS, JSON))
@bounded
def test_whatever_is_asked_makes_a_plan_or_a_refusal_that_says_why(value: Any) -> None:
    try:
        request = requests.parse(value)
    except WireError as error:
        assert error.errors and error.detail
        return
    requests.fingerprint(request)
    try:
        requests.check_shape(request)
        plan = requests.plan_of(request, DEFAULTS)
    except PlanError as error:
        assert error.detail and error.where
        return
    assert len(plan.tasks) == len(request.coletas) + len(request.execucoes) > 0
