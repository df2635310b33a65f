"""Every fault at once, each in the words that were sent, in time that grows with the size of the plan and no faster."""

from __future__ import annotations

from typing import Any

import pytest

from oraculo.errors import WireError
from oraculo.plans.faults import FAULTS_KEPT
from oraculo.plans.reader import load, read

CALL = {"fonte": "youtube"}


def faults(tarefas: dict[str, Any], **more: Any) -> list[str]:
    return [str(fault) for fault in read({"tarefas": tarefas, **more}).faults]


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        (3, "tarefas.t: a task is an object, not 3"),
        ({}, "tarefas.t: a task is one of fonte (source), executador (executor)"),
        ({"fonte": "a", "espera": {"sinal": "s"}}, "tarefas.t.espera: a task is one of"),
        ({"source": "a b"}, "tarefas.t.source: source is a name of letters"),
        ({"fonte": None}, "tarefas.t.fonte: fonte is a name of letters"),
        ({"executor": "a", "paramz": {}}, "tarefas.t.paramz: a task has no field 'paramz'; did you mean 'params'?"),
        ({"fonte": "a", "parametros": [1]}, "tarefas.t.parametros: parametros is an object, not a list"),
        ({"fonte": "a", "parametros": {}, "params": {}}, "tarefas.t.params: params and parametros say the same"),
        ({"fonte": "a", "faz": CALL}, "tarefas.t.faz: faz goes with para_cada (for_each), not with fonte"),
        ({"fonte": "a", "timeout_s": 0}, "tarefas.t.timeout_s: timeout_s is a number above 0 and at most 2592000"),
        ({"fonte": "a", "timeout_s": float("nan")}, "tarefas.t.timeout_s: timeout_s is a number"),
        ({"fonte": "a", "max_attempts": True}, "tarefas.t.max_attempts: max_attempts is a whole number from 1 to 100"),
        ({"fonte": "a", "prioridade": 10}, "tarefas.t.prioridade: prioridade is a whole number from 1 to 9, not 10"),
        ({"fonte": "a", "opcional": 1}, "tarefas.t.opcional: opcional is true or false, not 1"),
        ({"fonte": "a", "quando": "u.ok"}, "tarefas.t.quando: quando is a condition in ${{ }}, or true or false"),
        ({"fonte": "a", "when": "${{ u.ok }}!"}, "tarefas.t.when: a condition is one expression in ${{ }}"),
        ({"fonte": "a", "depende": ["nada"]}, "tarefas.t.depende.0: task 't' depends on 'nada', which does not exist"),
        ({"fonte": "a", "needs": ["u", "u"]}, "tarefas.t.needs.1: 'u' stands here twice"),
        ({"fonte": "a", "fan_in": {"modo": "todos"}}, "tarefas.t.fan_in: fan_in counts what a task depends on"),
        (
            {"fonte": "a", "depende": ["u"], "fan_in": {"modo": "quorum", "minimo": 2}},
            "tarefas.t.fan_in.minimo: fan_in needs 2 of the 1 tasks that 't' depends on",
        ),
        (
            {"fonte": "a", "depende": ["u"], "fan_in": {"mode": "al"}},
            "tarefas.t.fan_in.mode: mode is 'al'; did you mean 'all'? allowed: todos (all)",
        ),
        ({"fonte": "a", "depende": ["u"], "fan_in": {"modo": "quorum"}}, "tarefas.t.fan_in: fan_in needs minimo"),
        ({"para_cada": "${{ u.dados }}"}, "tarefas.t: a task needs faz (do)"),
        ({"para_cada": 7, "faz": CALL}, "tarefas.t.para_cada: para_cada is a list, or an expression in ${{ }}"),
        ({"for_each": [0] * 50_001, "do": CALL}, "tarefas.t.for_each: 50001 items; a map has at most 50000"),
        ({"para_cada": [1], "faz": {"espera": {}}}, "tarefas.t.faz.espera: faz (do) has no field 'espera'"),
        ({"para_cada": [1], "faz": {**CALL, "depende": ["u"]}}, "depende belongs in the task around it"),
        ({"para_cada": [1], "faz": CALL, "como": "u"}, "tarefas.t.como: 'u' is the name of a task"),
        ({"para_cada": [1], "faz": CALL, "fan_in": {"modo": "fechadas"}}, "tarefas.t.fan_in.modo: modo is 'fechadas'"),
        ({"espera": {}}, "tarefas.t.espera: espera (wait) is one of sinal (signal)"),
        ({"espera": {"sinal": "a/b"}}, "tarefas.t.espera.sinal: sinal is a name of letters"),
        (
            {"espera": {"sinal": "s", "ao_expirar": "seguir"}},
            "ao_expirar is 'seguir'; did you mean 'segue'? allowed: falha (fail), segue (continue)",
        ),
        ({"espera": {"segundos": -1}}, "tarefas.t.espera.segundos: segundos is a number at least 0"),
        ({"espera": {"ate": "2026-01-01T00:00:00"}}, "tarefas.t.espera.ate: ate is an instant with its zone"),
        ({"wait": {"until": "soon"}}, "tarefas.t.wait.until: until is an instant with its zone"),
        ({"espera": {"segundos": 1, "timeout_s": 2}}, "tarefas.t.espera.timeout_s: timeout_s goes with sinal"),
        (
            {"espera": {"sinal": "s", "ao_recusar": "segue"}},
            "ao_recusar goes with aprovacao (approval), not with sinal",
        ),
        ({"espera": {"sinal": "s", "timeout_s": 2}, "timeout_s": 3}, "timeout_s is said of the task, too"),
        ({"espera": {"aprovacao": {"ao_recusar": "segue"}}}, "ao_recusar belongs in espera (wait), beside aprovacao"),
        ({"repete": {"faz": CALL}}, "tarefas.t.repete: repete (repeat) needs no_maximo (at_most)"),
        (
            {"repete": {"faz": CALL, "pare_quando": "${{ indice > 3 }}", "no_maximo": 10_001}},
            "tarefas.t.repete.no_maximo: no_maximo is a whole number from 1 to 10000, not 10001",
        ),
        ({"repeat": {"do": CALL, "until": "x"}}, "the condition of a loop is pare_quando (stop_when)"),
        ({"filha": {}}, "tarefas.t.filha: filha (child) has tarefas (tasks), coletas"),
        ({"filha": {"tipo": "x", "correlation_id": "y"}}, "a child has the id <correlation_id>/<task>"),
        ({"filha": {"tipo": "x", "coletas": [CALL]}}, "tarefas.t.filha.coletas: coletas does not go with tipo"),
        ({"filha": {"tarefas": {"v": {}}}}, "tarefas.t.filha.tarefas.v: a task is one of"),
        ({"fonte": "a", "desfaz": {"espera": {}}}, "tarefas.t.desfaz.espera: desfaz (undo) has no field 'espera'"),
        ({"fonte": "a", "parametros": {"x": "${{ nada.x }}"}}, "tarefas.t.parametros.x: there is no 'nada' here"),
        ({"fonte": "a", "params": {"x": "${{ u }}"}}, "tarefas.t.params.x: u is a task; ask for one of its fields"),
        ({"fonte": "a", "params": {"x": "${{ u.dado }}"}}, "task 'u' offers no 'dado'; did you mean 'dados'?"),
        ({"fonte": "a", "params": {"x": "${{ u.resultados }}"}}, "task 'u' offers no 'resultados'"),
        ({"fonte": "a", "params": {"x": "${{ indice }}"}}, "indice is there in faz (do) and pare_quando"),
        ({"fonte": "a", "params": {"x": "${{ done.x }}"}}, "done is there in desfaz (undo) only"),
        ({"fonte": "a", "params": {"x": "${{ 1 + }}"}}, "tarefas.t.params.x: a value is expected, not the end (column"),
        ({"fonte": "a", "params": {"x": "ab ${{ 1"}}, "${{ is not closed by }} (column 4)"),
        ({"fonte": "a", "params": {"x": "${{ " + "9" * 5000 + " }}"}}, "a number has at most 4096 digits"),
        ({"fonte": "a", "params": {"x": "${{ " + "1+" * 3000 + "1 }}"}}, "an expression has at most 4096 characters"),
        ({"fonte": "a", "params": {"x": object()}}, "tarefas.t.params.x: a object cannot be written as JSON"),
        ({"fonte": "a", "params": {"x": 2**64}}, "tarefas.t.params.x: the number does not fit into 64 bits"),
        ({"fonte": "a", "params": {"x": "\ud800"}}, "the text holds a character that JSON cannot carry"),
        ({"fonte": "a", "params": {1: 2}}, "tarefas.t.params: a key is a text, not 1"),
    ],
)
def test_a_fault_of_one_task(task: Any, wanted: str) -> None:
    found = faults({"u": CALL, "t": task})
    assert any(wanted in one for one in found), found


@pytest.mark.parametrize("name", ["1a", "a-b", "é", "", "a" * 65, "in", "entrada", "input", "index", "math", "true"])
def test_a_task_has_a_name_that_an_expression_can_say(name: str) -> None:
    assert "is no name for a task" in faults({name: CALL})[0]


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ([], "(corpo): a request is an object, not a list"),
        ({}, "(corpo): a request has tarefas (tasks), coletas"),
        ({"tarefas": {}}, "tarefas: 0 tasks; a plan has from 1 to 50000"),
        ({"tasks": []}, "tasks: tasks is an object, not a list"),
        ({"tarefas": {"a": CALL}, "coletas": [CALL]}, "coletas: coletas does not go with tarefas"),
        ({"tarefas": {"a": CALL}, "entrada": 3}, "entrada: entrada is an object, not 3"),
        ({"tarefas": {"a": CALL}, "saida": "${{ b.ok }}"}, "saida: there is no 'b' here"),
        (
            {"tarefas": {"a": CALL}, "output": "${{ a.datta }}"},
            "output: task 'a' offers no 'datta'; did you mean 'data'",
        ),
        ({"tarefas": {"a": CALL}, "rotulos": ["x"] * 17}, "rotulos: rotulos has 17 entries; at most 16"),
        ({"tarefas": {"a": CALL}, "notify": {"fila": "a b"}}, "notify.fila: fila is the name of a queue"),
        ({"tipo": "x", "saida": 1}, "saida: saida does not go with tipo"),
        (
            {"collects": [{"fonte": "a", "depende": []}]},
            "collects.0.depende: an entry of coletas (collects) has no field",
        ),
        ({"coletas": [], "execucoes": []}, "coletas and execucoes are both empty"),
        ({"coletas": [CALL], "fan_in": {"modo": "quorum", "minimo": 2}}, "fan_in: fan_in needs 2 of 1 tasks"),
    ],
)
def test_a_fault_of_a_request(request_: Any, wanted: str) -> None:
    found = [str(fault) for fault in read(request_).faults]
    assert any(wanted in one for one in found), found


def test_a_cycle_is_told_with_its_path() -> None:
    found = faults({
        "a": {**CALL, "depende": ["c"]},
        "b": {**CALL, "parametros": {"x": "${{ a.dados }}"}},
        "c": {**CALL, "quando": "${{ b.ok }}"},
        "d": {**CALL, "depende": ["d"]},
    })  # fmt: skip
    assert found == [
        "tarefas.a: the tasks wait for each other: a → c → b → a",
        "tarefas.d: the tasks wait for each other: d → d",
    ]


def test_every_fault_is_told_at_once_and_names_the_words_that_were_sent() -> None:
    plan = {
        "tasks": {
            "a": {"source": "x", "parametros": {"q": "${{ b.result }} ${{ 1 + }}"}, "needs": ["z"]},
            "b": {"executor": "y", "timeout_s": -1},
        },
        "output": "${{ c.ok }}",
    }
    found = {fault.where for fault in read(plan).faults}
    assert found == {"tasks.a.parametros.q", "tasks.a.needs.0", "tasks.b.timeout_s", "output"}


def test_an_error_lists_them_all() -> None:
    with pytest.raises(WireError) as caught:
        load({"tarefas": {f"t{number}": {"fonte": 3} for number in range(20)}})
    assert len(caught.value.errors) == 20
    assert caught.value.errors[0].keys() == {"campo", "mensagem", "codigo"}
    assert caught.value.detail.endswith("and 15 more")


def test_what_undoes_a_task_and_the_output_order_nothing() -> None:
    plan = {
        "tarefas": {
            "a": {
                **CALL,
                "desfaz": {"executador": "x", "parametros": {"id": "${{ feito.id }}", "b": "${{ b.dados }}"}},
            },
            "b": {**CALL, "depende": ["a"]},
        }
    }
    assert read(plan).faults == ()


def test_a_loop_knows_its_own_last_result() -> None:
    loop = {
        "faz": {"executador": "pagina", "parametros": {"cursor": "${{ paginas.resultado }}", "n": "${{ index }}"}},
        "pare_quando": "${{ paginas.resultado.fim }}",
        "no_maximo": 5,
    }
    assert faults({"paginas": {"repete": loop}}) == []


def test_children_see_their_own_names_and_are_not_nested_too_deep() -> None:
    inner = {"tarefas": {"x": {**CALL, "parametros": {"a": "${{ entrada.a }}"}}}, "entrada": {"a": "${{ u.dados }}"}}
    assert faults({"u": CALL, "c": {"filha": inner}}) == []
    leak = {"tarefas": {"x": {**CALL, "parametros": {"a": "${{ u.dados }}"}}}}
    assert "there is no 'u' here" in faults({"u": CALL, "c": {"filha": leak}})[0]
    deep: dict[str, Any] = {"tarefas": {"x": CALL}}
    for _ in range(8):
        deep = {"tarefas": {"c": {"filha": deep}}}
    assert "nested more than 8 levels deep" in str(read(deep).faults[0])


def test_the_id_of_a_child_has_to_fit() -> None:
    name = "n" * 60
    assert faults({name: {"filha": {"tipo": "x"}}}, correlation_id="i" * 60) == []
    found = faults({name: {"filha": {"tipo": "x"}, "max_tentativas": 3}}, correlation_id="i" * 66)
    assert "can have 129 characters; at most 128" in found[0]


def test_workers_that_cannot_be_told_apart_are_a_warning() -> None:
    reading = read(
        {"tarefas": {"m": {"para_cada": [1], "faz": CALL}, "a": {"executador": "x"}, "b": {"executador": "x"}}}
    )
    assert [warning.where for warning in reading.warnings] == ["tarefas.m", "tarefas.b"]


def _units(plan: dict[str, Any]) -> int:
    """Function calls that reading takes: a measure of work that no busy machine changes."""
    import sys

    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read(plan)
    finally:
        sys.setprofile(None)
    return calls


def _chain(count: int) -> dict[str, Any]:
    return {f"t{n}": {**CALL, "parametros": {"x": f"${{{{ t{n - 1}.dados }}}}" if n else 1}} for n in range(count)}


@pytest.mark.parametrize(
    "plan_of",
    [
        _chain,
        lambda count: {f"t{n}": {**CALL, "depende": [f"t{(n + 1) % count}"]} for n in range(count)},
        lambda count: {f"t{n}": {**CALL, "depende": [f"u{n}"]} for n in range(count)},
        lambda count: {f"t{n}": {**CALL, f"wrong{n}": 1} for n in range(count)},
        lambda count: {"a": {**CALL, "parametros": {"x": "${{ b.x }}" * count}}},
        lambda count: {"a": {**CALL, "parametros": {"x": "${{ " * count}}},
        lambda count: {"a": {**CALL, "depende": [f"t{n}" for n in range(count)]}},
        lambda count: {f"t{n}": {"filha": {"tarefas": {"a": {**CALL, "depende": ["b"]}}}} for n in range(count)},
        lambda count: {f"t{n}": {**CALL, "depende": [f"t{m}" for m in range(max(0, n - 9), n)]} for n in range(count)},
    ],
)  # fmt: skip
def test_work_grows_with_the_size_of_a_plan_and_no_faster(plan_of: Any) -> None:
    small, large = (_units({"tarefas": plan_of(count)}) for count in (400, 3200))
    assert large <= 8 * 1.3 * small + 20_000


def test_more_faults_than_one_can_read_are_counted() -> None:
    reading = read({"tarefas": {f"t{n}": {} for n in range(5000)}})
    assert len(reading.faults) == FAULTS_KEPT
    assert reading.fault_count == 5000


def test_a_misspelt_kind_of_task_is_one_fault_in_the_words_of_the_document() -> None:
    document = {"tasks": {"a": {"sourse": "x"}, "b": {"for_eech": [1], "do": {"source": "x"}}}, "output": "${{ a.q }}"}
    first, second = (str(fault) for fault in read(document).faults[:2])
    assert first.startswith(
        "tasks.a.sourse: a task has no field 'sourse'; did you mean 'source'? allowed: as, at_once,"
    )
    assert second.startswith("tasks.b.for_eech: a task has no field 'for_eech'; did you mean 'for_each'?")
    assert len(read({"tasks": document["tasks"]}).faults) == 2
    (fault,) = read({"tasks": {"a": {"executor": "x"}}, "output": "${{ a.dota }}"}).faults
    assert "it offers status, ok, errors, attempts, result (" in str(fault)
