"""`Plan`: the same document as in JSON and YAML, and clear errors where Python would guess."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from oraculo import OraculoError, Plan
from oraculo.expressions import compile_expression
from oraculo.plans.reader import load
from oraculo.plans.source.source_reader import SourceFormat, read_text

YAML = """\
entrada: {canal: x}
tarefas:
  videos: {fonte: youtube, parametros: {canal: "${{ entrada.canal }}"}, max_tentativas: 2}
  top: {executador: ranking, parametros: {itens: "${{ videos.dados }}"}, opcional: true, prioridade: 9}
  resumos:
    para_cada: ${{ top.resultado.itens }}
    como: um
    ao_mesmo_tempo: 50
    faz: {executador: resumo, parametros: {item: "${{ um.texto }}", n: "${{ indice }}"}, timeout_s: 3}
    fan_in: {modo: quorum, minimo: 2}
  paginas:
    repete: {faz: {fonte: site, parametros: {c: "${{ paginas.resultado.c }}"}}, pare_quando: "${{ paginas.resultado.fim == true }}",
             no_maximo: 9, pausa_s: 1, ao_esgotar: segue}
  ok: {espera: {sinal: revisao, timeout_s: 60, ao_expirar: segue}, depende: [resumos]}
  sim: {espera: {aprovacao: {pergunta: "Pagar ${{ entrada.canal }}?", papeis: [admin]}, ao_recusar: segue}}
  dorme: {espera: {segundos: "${{ entrada.s }}"}}
  natal: {espera: {ate: "2026-12-24T18:00:00+00:00"}}
  paga:
    executador: banco
    parametros: {lista: ["${{ sim.ok }}", 1]}
    desfaz: {executador: estorno, parametros: {id: "${{ feito.id }}"}}
    retentativa: {base_s: 1, nao_em: [http_404]}
    quando: ${{ (sim.dados.aprovado && (!(top.resultado.n > 3))) || (ok.status == "concluida") }}
  tipo: {filha: {tipo: semanal, parametros: {a: "${{ videos.dados[0]['x y'] }}"}}}
  outro: {filha: {entrada: {v: "${{ videos.dados }}"}, tarefas: {x: {fonte: y, parametros: {v: "${{ entrada.v }}"}}}}}
saida: {r: "${{ resumos.resultados }}", total: "${{ resumos.total + 1 }}"}
rotulos: [a]
notificar: {webhook: "https://example.com", fila: f}
timeout_s: 90
correlation_id: abc
"""  # noqa: E501


def built() -> Plan:
    plan = Plan(
        input={"canal": "x"}, timeout_s=90, correlation_id="abc", labels=["a"], webhook="https://example.com", queue="f"
    )
    videos = plan.collect("videos", "youtube", {"canal": plan.input.canal}, max_attempts=2)
    top = plan.execute("top", "ranking", {"itens": videos.data}, optional=True, priority=9)
    um = Plan.task("um")
    one = Plan.executor("resumo", {"item": f"${{{{ {um.name}.texto }}}}", "n": Plan.index}, timeout_s=3)
    quorum = {"mode": "quorum", "at_least": 2}
    resumos = plan.for_each("resumos", top.result.itens, one, as_="um", at_once=50, fan_in=quorum)
    last = Plan.task("paginas").result
    page = Plan.source("site", {"c": last.c})
    plan.repeat("paginas", page, stop_when=last.fim == True, at_most=9, pause_s=1, on_exhaust="continue")  # noqa: E712
    ok = plan.wait_signal("ok", "revisao", expires_s=60, on_expire="continue", needs=[resumos])
    sim = plan.wait_approval("sim", f"Pagar {plan.input.canal}?", roles=["admin"], on_refuse="continue")
    plan.wait_seconds("dorme", plan.input.s)
    plan.wait_until("natal", datetime(2026, 12, 24, 18, tzinfo=UTC))
    plan.execute(
        "paga",
        "banco",
        {"lista": (sim.ok, 1)},
        undo=Plan.executor("estorno", {"id": Plan.done.id}),
        retry={"base_s": 1, "not_on": ["http_404"]},
        when=(sim.data.aprovado & ~(top.result.n > 3)) | (ok.status == "concluida"),
    )
    plan.child("tipo", "semanal", {"a": videos.data[0]["x y"]})
    inner = Plan(input={"v": videos.data})
    inner.collect("x", "y", {"v": inner.input.v})
    plan.child("outro", inner)
    plan.output = {"r": resumos.results, "total": resumos.total + 1}
    return plan


def test_the_same_plan_in_yaml_json_and_python_is_the_same_document() -> None:
    reading = read_text(YAML.encode(), SourceFormat.YAML)
    assert [str(one) for one in reading.faults] == []
    plan = built()
    assert plan["tarefas"]["tipo"]["filha"]["parametros"] == {"a": '${{ videos.dados[0]["x y"] }}'}
    quoted = YAML.replace("['x y']", '[\\"x y\\"]')
    assert plan.document() == read_text(quoted.encode(), SourceFormat.YAML).request
    assert read_text(plan.to_json("en").encode(), SourceFormat.JSON).request is not None
    for text, format in ((plan.to_json(), SourceFormat.JSON), (plan.to_yaml(), SourceFormat.YAML)):
        assert read_text(text.encode(), format).request == plan.document()


def test_a_plan_is_a_request_for_whatever_takes_one() -> None:
    plan = Plan(labels=["x"])
    plan.collect("a", "youtube")
    assert dict(plan) == {"tarefas": {"a": {"fonte": "youtube"}}, "rotulos": ["x"]}
    assert plan.to_dict("en") == {"tasks": {"a": {"source": "youtube"}}, "labels": ["x"]}
    assert Plan.of({"collects": [{"source": "a"}]}).to_dict() == {"coletas": [{"fonte": "a"}]}


def test_what_was_read_once_is_read_again_after_a_change() -> None:
    plan = Plan()
    a = plan.collect("a", "x")
    assert len(plan["tarefas"]) == 1
    plan.execute("b", "y", needs=[a])
    plan.output = a.data
    assert plan["tarefas"]["b"] == {"executador": "y", "depende": ["a"]} and plan["saida"] == "${{ a.dados }}"


@pytest.mark.parametrize(
    ("made", "source"),
    [
        (Plan.task("a").data, "a.dados"),
        (Plan.task("a").result.x.y, "a.resultado.x.y"),
        (Plan.task("a").result["x"], "a.resultado.x"),
        (Plan.task("a").result["x-y"], 'a.resultado["x-y"]'),
        (Plan.task("a").result["in"], 'a.resultado["in"]'),
        (Plan.task("a").results[Plan.index], "a.resultados[indice]"),
        (Plan.task("a").ok & Plan.task("b").ok, "a.ok && b.ok"),
        (~Plan.task("a").ok, "!a.ok"),
        (Plan.item.n + 1 <= 3, "(item.n + 1) <= 3"),
        ("é" + Plan.item.n, '"é" + item.n'),
        (Plan.item == 'it\'s "x"\n', 'item == "it\'s \\"x\\"\\n"'),
        ((Plan.item != [1, None, True]) | True, "(item != [1, null, true]) || true"),
        ((Plan.item.a + Plan.item.b).size, "(item.a + item.b).size"),
        (Plan.task("a").failures, "a.falhas"),
        (Plan.task("a").errors, "a.erros"),
        (Plan.task("a").attempts, "a.tentativas"),
    ],
)
def test_expressions_are_written_in_the_language_of_plans(made: Any, source: str) -> None:
    assert str(made) == f"${{{{ {source} }}}}"
    compile_expression(source)


def test_python_does_not_guess_what_is_known_only_when_the_plan_runs() -> None:
    plan = Plan()
    a = plan.collect("a", "x")
    with pytest.raises(TypeError, match="join conditions by"):
        _ = a.ok and a.ok
    with pytest.raises(TypeError, match=r"use plan\.for_each"):
        _ = [one for one in a.data]
    with pytest.raises(TypeError, match="ask for what it offers"):
        plan.execute("b", "y", {"a": a}) and plan.to_dict()
    with pytest.raises(TypeError, match="needs is a list of tasks"):
        plan.execute("c", "y", needs=a)  # type: ignore[arg-type]


def test_faults_are_told_all_at_once_and_a_name_is_given_once() -> None:
    plan = Plan()
    plan.collect("a", "you tube")
    plan.execute("b", "y", when="${{ nada.ok }}", needs=["c"])
    with pytest.raises(OraculoError) as error:
        plan.to_dict()
    assert all(part in str(error.value) for part in ("tasks.a.source", "tasks.b.when", "tasks.b.needs.0"))
    with pytest.raises(OraculoError, match="there is a task 'a' already"):
        plan.collect("a", "x")
    with pytest.raises(OraculoError, match="a whole plan has its input"):
        plan.child("d", {"tipo": "x"}, {"a": 1})
    with pytest.raises(OraculoError, match="given whole"):
        Plan.of({"tipo": "x"}).collect("a", "x")


def test_what_python_builds_is_what_the_reader_reads() -> None:
    assert load(built().data()) is not None
