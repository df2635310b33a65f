"""Stories in virtual time, told to the core alone: what would take hours, or a rare order of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from core.given import T0, Retry, Story, at, coleta, dag, execucao, plan, seconds
from oraculo.core.allocations import Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.commands import (
    AllocateTicket,
    Approve,
    ConfirmCancel,
    Judge,
    PauseRun,
    Prioritise,
    RequeueTicket,
    ResumeRun,
    Signal,
    Wake,
    WithdrawTicket,
)
from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.plan import Backoff, NoticeTargets, Plan
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicySource, PolicyViolation
from oraculo.core.vocabulary import Cause, FanIn, Kind, Priority, RiskBand, Status
from oraculo.runtime.evaluation import evaluate_inline
from oraculo.wire import requests


def flow(
    *nodes: TaskNode, band: RiskBand = RiskBand.LOW, notify: NoticeTargets = NoticeTargets(), **more: object
) -> Plan:
    order = tuple(node.task_id for node in nodes)
    wanted = CognitivePlan("plan-1", "intent-1", nodes, order, band, "decision-1", document=b'{"de":"fora"}', **more)
    return plan_of(wanted, FlowRules(), T0, lambda worker: f"executador_{worker}", name="abc123", notify=notify)


DIAMOND = (
    TaskNode("a", "BUILD", "constrói", metadata=b'{"m":"1"}', parameters=b'{"p":1}'),
    TaskNode("b", "DEPLOY", dependencies=("a",), max_retries=0, required_capabilities=("helm",)),
    TaskNode("c", "TEST", "testa", dependencies=("a",), max_retries=0),
    TaskNode("d", "QUERY", dependencies=("b", "c")),
)


def everything_of_a_request() -> Story:
    story = Story(plan(4, 2, modo=FanIn.QUORUM, minimo=2, attempts=2, webhook="https://example.com", fila="avisos"))
    story.confirm(0, 1, 2)
    story.do(story.bare(Kind.COLETA, "fonte3"), 1)
    story.fail(0, when=2)
    story.wake(4)
    story.wake(30)
    story.ok(1, attempt=1, when=31)
    story.wake(33)
    story.fail(2, definitivo=True, when=34)
    story.ok(0, when=35)
    story.ok(1, attempt=2, when=36)
    story.confirm(when=36)
    story.fail(4, when=37)
    story.ok(5, when=38)
    story.wake(45)
    story.ok(4, when=46)
    story.told(0, 1, detail="503", retry_after=timedelta(seconds=7))
    story.told(1, 1, final=True, detail="410")
    story.wake(60)
    story.told(0, 2, delivered=True, detail="200")
    return story


def _given_up(wanted: Plan, tries: int) -> Story:
    story = Story(wanted)
    story.confirm()
    story.ok(0, when=1)
    for attempt in range(1, tries + 1):
        story.told(0, attempt, detail=f"{attempt}: 503")
        due = story.state.notices[0].due_at
        if due is not None:
            story.wake((due - T0).total_seconds())
    return story


def a_notice_that_is_given_up() -> Story:
    return _given_up(plan([coleta("a", attempts=1)], webhook="https://example.com/gancho"), 10)


def a_notice_of_fluxo_c_that_is_given_up() -> Story:
    return _given_up(flow(TaskNode("a", "EXECUTE"), notify=NoticeTargets("https://example.com/gancho")), 13)


def a_plan_of_the_first_rules_has_no_quick_tries() -> Story:
    old = replace(flow(TaskNode("a", "EXECUTE"), notify=NoticeTargets("https://example.com/gancho")), rules=1)
    return _given_up(old, 10)


def a_graph_whose_dependency_fails() -> Story:
    story = Story(dag({"a": (), "b": ("a",), "c": ("b",), "d": ()}))
    story.confirm()
    story.ok(3, when=1)
    story.fail(0, when=2)
    return story


def the_deadline_closes_running_and_waiting_tickets() -> Story:
    story = Story(plan(2, 1, timeout=20))
    story.confirm(0)
    story.wake(20)
    return story


def out_of_attempts_by_silence() -> Story:
    slow = [coleta("lenta", timeout=1.5, attempts=2), execucao("outra")]
    story = Story(plan(slow[:1], slow[1:], backoff=Backoff(seconds(2), seconds(4))))
    story.confirm()
    for when in (1.5, 6.0):
        story.wake(when)
        story.confirm(when=when)
    story.wake(8)
    return story


def failures_in_every_branch_are_undone() -> Story:
    story = Story(flow(*DIAMOND, band=RiskBand.CRITICAL, priority=Priority.LOW))
    story.confirm()
    story.ok(0, when=5)
    story.confirm(when=5)
    story.fail(1, when=6)
    story.fail(2, when=7)
    assert story.state is not None and story.state.undoes == 4
    story.confirm(when=8)
    story.ok(4, when=9)
    story.wake(128)
    while story.state.closed_at is None and story.now < 2000:
        story.confirm(when=story.now + 1) if story.state.owed else story.wake(story.now + 10)
    assert story.status is Status.ERRO
    return story


def undoing_is_cut_short_by_a_cancel() -> Story:
    story = Story(flow(*DIAMOND))
    story.confirm()
    story.ok(0, when=5)
    story.confirm(when=5)
    story.fail(1, when=6)
    story.fail(2, when=7)
    story.cancel("basta", when=8)
    return story


def a_plan_that_asks_not_to_be_undone() -> Story:
    story = Story(flow(*DIAMOND, compensate=False))
    story.confirm()
    story.fail(0, definitivo=True, when=5)
    return story


def approved_after_hours() -> Story:
    story = Story(flow(*DIAMOND[:2], requires_approval=True, band=RiskBand.HIGH))
    story.wake(60)
    story.do(Approve(True, "ana", "revisado"), 7200)
    story.confirm()
    story.ok(0, when=7201)
    story.confirm(when=7201)
    story.ok(1, when=7300)
    return story


def refused_by_nobody_in_particular() -> Story:
    story = Story(flow(*DIAMOND[:2], requires_approval=True))
    story.do(Approve(False), 5)
    return story


def an_approval_that_expires() -> Story:
    story = Story(flow(*DIAMOND[:2], requires_approval=True))
    story.wake(4 * 3600)
    return story


def a_late_answer_of_what_was_undone() -> Story:
    story = Story(flow(TaskNode("a", "VALIDATE", timeout_ms=1000, max_retries=0), TaskNode("b", "TRANSFORM")))
    story.confirm()
    story.ok(1, when=0.5)
    story.wake(1)
    story.confirm(when=1.5)
    story.ok(0, attempt=1, when=2)
    story.ok(2, when=3)
    return story


def answers_that_disagree() -> Story:
    """A forged answer comes first and the honest one second; a failure is told otherwise while it is tried again."""
    story = Story(plan([coleta("banco"), coleta("blog", attempts=2)], [execucao("relatorio", attempts=1)]))
    story.confirm()
    story.do(story.bare(Kind.COLETA, "banco", dados=b'{"saldo":1000000}'), 1)
    story.ok(0, b'{"saldo":1}', when=2)
    story.fail(1, when=3)
    story.ok(1, attempt=1, when=3)
    story.wake(8)
    story.ok(1, attempt=2, when=9)
    story.fail(1, definitivo=True, attempt=2, when=10)
    story.confirm(when=11)
    story.do(story.bare(Kind.COLETA, "relatorio"), 12)
    story.ok(2, b'"outro"', when=13)
    return story


def an_exhausted_order_is_requeued() -> Story:
    story = Story(plan([coleta("a", attempts=2), coleta("b", timeout=20, attempts=1), coleta("c", timeout=300)], 1))
    story.confirm()
    story.fail(0, when=1)
    story.wake(4)
    story.fail(0, when=5)
    story.wake(20)
    story.do(RequeueTicket(0, 2, "key:ana"), 21)
    story.do(RequeueTicket(1, 1), 22)
    story.confirm(when=23)
    story.ok(0, when=24)
    story.wake(43)
    story.ok(2, when=50)
    story.ok(3, when=51)
    return story


def workers_are_chosen() -> Story:
    story = Story(plan([coleta("a", attempts=2), coleta("b")], 1))
    best = Candidate("w1", 0.91, 1.0, 0.9, 1.0, 0.5, 1.1, 1200, 1)
    slow = Candidate("w2", 0.4, 0.6, 0.5, 0.1, 1.0, 1.0, 12000, 0, NotChosen.SLOWER)
    busy = Candidate("w3", 0.3, 1.0, 0.9, 0.5, 0.0, 1.0, None, 4, NotChosen.NO_ROOM)
    refused = {NotChosen.SLOWER: 1, NotChosen.NO_ROOM: 3}
    chosen = Allocation("w1", AllocationMethod.BEST, 0.625, 0.91, (best, slow, busy), refused)
    story.do(AllocateTicket(0, 1, chosen), 1)
    story.confirm()
    story.fail(0, when=2)
    story.do(AllocateTicket(0, 1, chosen), 3)
    story.wake(10)
    turn = Allocation("w2", AllocationMethod.TURN, 0.7, 0.4, (replace(slow, reason=None),))
    story.do(AllocateTicket(0, 2, turn), 11)
    story.ok(0, attempt=2, when=12)
    story.ok(1, when=13)
    story.ok(2, when=14)
    return story


def an_attempt_is_withdrawn() -> Story:
    story = Story(plan([coleta("a", attempts=1), coleta("b", timeout=20, attempts=2), coleta("c", timeout=300)], 1))
    story.confirm()
    story.do(WithdrawTicket(0, 1, Cause.REALOCADO, "w1", None, "key:ana"), 1)
    story.do(WithdrawTicket(1, 1, Cause.REALOCADO, "w1", timedelta(seconds=5)), 2)
    story.ok(0, attempt=1, when=3)
    story.wake(7)
    story.fail(1, attempt=1, when=8)
    story.fail(1, attempt=2, when=9)
    story.wake(15)
    story.ok(1, attempt=3, when=16)
    story.ok(2, when=50)
    story.ok(3, when=51)
    return story


def policies_are_asked() -> Story:
    """A ticket that is refused, an answer that waits for its verdict and counts, one that does not, a plan."""
    points = (PolicyPoint.PLAN, PolicyPoint.TICKET, PolicyPoint.RESULT)
    story = Story(replace(plan([coleta("a"), coleta("b"), coleta("c")], 1), policies=points))
    source = PolicySource("teste", "v1", "d-1", "abc")
    rule = PolicyViolation("limites", "prazo", "longo demais", "high", "sla.timeout_ms", "10", "20")
    story.do(Judge(PolicyPoint.PLAN, [(THE_PLAN, 0)], [], source))
    refused = PolicyFinding(1, False, [rule])
    story.do(Judge(PolicyPoint.TICKET, [(0, 0), (1, 0), (2, 0)], [refused], source), 1)
    story.confirm(0, 2)
    story.do(story.answer(0, dados=b'{"n":7}'), 2)
    story.do(story.answer(2), 3)
    story.do(Judge(PolicyPoint.RESULT, [(0, 1)], [], source), 4)
    unreachable = PolicyFinding(2, False, [], error="OPA não responde")
    story.do(Judge(PolicyPoint.RESULT, [(2, 1)], [unreachable], source), 5)
    return story


def _evaluated(story: Story) -> None:
    while commands := evaluate_inline(story.state):
        for command in commands:
            story.do(command)


def named_tasks_with_expressions() -> Story:
    """An if and an else that meet again, a failure that is absorbed, an expression without a value, an output."""
    body = {
        "entrada": {"canal": "x"},
        "tarefas": {
            "videos": {"fonte": "youtube", "parametros": {"canal": "${{ entrada.canal }}"}},
            "blog": {"fonte": "blog", "opcional": True, "retentativa": {"base_s": 2, "nao_em": ["http_500"]}},
            "muitos": {"executador": "ranking", "quando": "${{ videos.dados.n > 1 }}"},
            "poucos": {"executador": "vazio", "quando": "${{ videos.dados.n <= 1 }}", "depende": ["blog"]},
            "falta": {"executador": "x", "opcional": True, "parametros": {"x": "${{ videos.dados.falta }}"}},
            "fim": {"executador": "email", "depende": ["muitos", "poucos"], "fan_in": {"modo": "todos"}},
        },
        "saida": {"texto": "${{ videos.dados.n }} vídeos", "fim": "${{ fim.status }}"},
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    _evaluated(story)
    story.confirm()
    story.fail(1, when=2)
    story.ok(0, b'{"n":3}', when=3)
    _evaluated(story)
    story.confirm(when=4)
    story.ok(2, b'{"top":[1,2]}', when=5)
    story.confirm(when=6)
    story.ok(5, b'"enviado"', when=7)
    _evaluated(story)
    assert story.state.status is Status.PARCIAL
    return story


def an_output_without_a_value() -> Story:
    body = {"tarefas": {"a": {"fonte": "a"}}, "saida": "${{ a.dados.falta }}"}
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    story.confirm()
    story.ok(0, b'{"n":3}', when=3)
    _evaluated(story)
    assert story.state.status is Status.PARCIAL
    return story


def a_saga_out_of_time() -> Story:
    """A task, a map and its items are undone in reverse, with a priority, a window, an expression without a value."""
    undo = {"executador": "desfaz", "parametros": {"id": "${{ feito.id }}"}}
    faz = {"executador": "quarto", "desfaz": {"executador": "libera", "parametros": {"x": "${{ [item, indice] }}"}}}
    body = {
        "tarefas": {
            "voo": {"executador": "voo", "desfaz": undo, "prioridade": 9},
            "quartos": {"para_cada": [7, 8], "ao_mesmo_tempo": 1, "faz": faz, "depende": ["voo"], "desfaz": undo},
            "cobra": {"executador": "cobra", "depende": ["quartos"], "desfaz": {"executador": "estorna"}},
        },
        "timeout_s": 30,
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    story.confirm()
    story.ok(0, b'{"id":"v1"}', when=1)
    _evaluated(story)
    for position in (3, 4):
        story.confirm(when=2)
        story.ok(position, b'"ok"', when=3)
    story.confirm(when=4)
    story.wake(30)
    while story.state.closed_at is None:
        _evaluated(story)
        story.confirm(when=31)
        for position, ticket in enumerate(story.state.tickets):
            if ticket.running:
                story.ok(position, b'"desfeito"', when=32)
    assert story.state.status is Status.TIMEOUT and len(story.state.undone) == 5
    return story


def maps_of_every_fan_in() -> Story:
    """A window, an item that is skipped, one without a value, one that fails; a quorum, no items, a list that is none,
    and one that is out of time."""
    faz = {"executador": "resumo", "parametros": {"n": "${{ item.n }}", "canal": "${{ entrada.canal }}"}}
    body = {
        "entrada": {"canal": "x", "lista": [{"n": 1}, {"n": 2}, {}, {"n": 0}, {"n": 3}]},
        "tarefas": {
            "todos": {
                "para_cada": "${{ entrada.lista }}",
                "ao_mesmo_tempo": 1,
                "faz": {**faz, "quando": "${{ !has(item.n) || item.n > 0 }}", "max_tentativas": 1},
            },
            "dois": {
                "para_cada": [1, 2, 3],
                "como": "v",
                "fan_in": {"modo": "quorum", "minimo": 2},
                "faz": {"fonte": "blog", "parametros": {"v": ["${{ v }}", "${{ indice }}"]}},
            },
            "nada": {"para_cada": [], "faz": {"fonte": "blog"}},
            "nenhuma": {"para_cada": "${{ entrada }}", "faz": {"fonte": "blog"}, "opcional": True},
            "lento": {"para_cada": [1], "timeout_s": 5, "faz": {"fonte": "blog"}, "opcional": True},
            "fim": {"executador": "fim", "depende": ["todos", "dois"], "parametros": {"t": "${{ todos.resultados }}"}},
        },
        "saida": "${{ todos.total }}",
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    _evaluated(story)
    story.confirm(when=1)
    by_item = {name: story.state.items(position) for position, name in enumerate(story.state.plan.profile.names)}
    first, second = by_item["todos"][0], by_item["dois"]
    story.ok(second[2], b'"c"', when=2)
    story.ok(second[0], b'"a"', when=2)
    story.ok(second[1], b'"b"', when=3)
    story.ok(first, b'"um"', when=3)
    story.confirm(when=3)
    story.fail(first + 1, when=4)
    story.ok(first + 4, b'"tres"', when=4)
    _evaluated(story)
    story.wake(6)
    story.ok(5, b'"fim"', when=7)
    _evaluated(story)
    assert story.status is Status.PARCIAL
    return story


def _waits() -> Story:
    body = {
        "tarefas": {
            "cedo": {"espera": {"sinal": "revisao"}, "depende": ["videos"]},
            "videos": {"fonte": "youtube"},
            "pagar": {"espera": {"aprovacao": {"pergunta": "pagar?", "papeis": ["aprovador"]}}, "depende": ["cedo"]},
            "pausa": {"espera": {"segundos": "${{ 60 * 60 }}"}, "depende": ["cedo"]},
            "nada": {"espera": {"sinal": "outro", "timeout_s": 30, "ao_expirar": "segue"}},
            "fim": {"executador": "email", "depende": ["pagar", "pausa"]},
        }
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    story.do(Signal("k1", "revisao", b'{"nota":7}', "kana"), 1)
    story.confirm(when=2)
    story.ok(1, when=3)
    _evaluated(story)
    story.wake(30)
    return story


def waits_for_signals_decisions_and_time() -> Story:
    """An early signal, an approval, an hour, a wait that expires well."""
    story = _waits()
    story.do(Approve(True, "ana", "visto", "kana", 2), 40)
    story.wake(3603)
    story.confirm(when=3604)
    story.ok(5, when=3605)
    assert story.state.status is Status.CONCLUIDA
    return story


def a_wait_that_is_refused() -> Story:
    story = _waits()
    story.do(Approve(False, "rui", "caro", "krui", 2), 40)
    story.wake(3603)
    assert story.state.status is Status.CANCELADA
    return story


def a_run_that_is_paused_twice() -> Story:
    """A failure, an answer and an instant during the pauses; the rest goes out after them."""
    tasks = {
        "a": {"executador": "x", "max_tentativas": 2},
        "b": {"espera": {"ate": at(40).isoformat()}},
        "c": {"espera": {"segundos": 30}},
        "d": {"executador": "y", "depende": ["b"]},
    }
    wanted = requests.plan_of(requests.parse({"tarefas": tasks, "timeout_s": 300}), requests.Defaults())
    story = Story(wanted)
    _evaluated(story)
    story.confirm(0, when=1)
    story.do(PauseRun("a fonte está fora", "ana"), 10)
    story.fail(0, when=20)
    story.do(Wake(), 40)
    story.do(ResumeRun("voltou", "ana"), 100)
    story.do(Wake(), 120)
    story.do(PauseRun(), 121)
    story.do(ResumeRun(), 130)
    for position in (0, 3):
        story.ok(position, when=131)
    story.do(Wake(), 149)
    assert story.state.status is Status.CONCLUIDA
    return story


def loops_of_every_ending() -> Story:
    """A condition that becomes true behind pauses, one that never does (twice), a round that fails, and one that is out
    of time."""
    faz = {"executador": "pagina", "parametros": {"n": "${{ indice }}", "canal": "${{ entrada.canal }}"}}

    def loop(name: str, stop: str, at_most: int, **more: object) -> dict[str, object]:
        inner = {**faz, "executador": name, "max_tentativas": 1}
        return {"repete": {"faz": inner, "pare_quando": f"${{{{ {stop} }}}}", "no_maximo": at_most, **more}}

    body = {
        "entrada": {"canal": "x"},
        "tarefas": {
            "para": loop("a", "para.resultado.n == 2", 5, pausa_s=10),
            "esgota": {**loop("b", "false", 2), "opcional": True},
            "segue": loop("c", "false", 2, ao_esgotar="segue"),
            "falha": {**loop("d", "true", 2), "opcional": True},
            "tarde": {**loop("e", "indice > 3", 9), "timeout_s": 20, "opcional": True},
        },
        "saida": {"n": "${{ para.resultado.n }}", "segue": "${{ segue.resultado }}"},
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    _evaluated(story)
    answers = {"a": 3, "b": 2, "c": 2, "e": 1}
    while story.state.closed_at is None:
        if story.state.owed:
            story.confirm()
        for position in [p for p, one in enumerate(story.state.tickets) if one.running]:
            name = story.state.plan.tasks[position].name
            if name == "d":
                story.fail(position)
            elif answers[name]:
                answers[name] -= 1
                story.ok(position, b'{"n":%d}' % (3 - answers[name] - 1))
            _evaluated(story)
        due = story.state.wake_at()
        if not story.state.owed and due is not None and story.state.closed_at is None:
            story.wake((due - T0).total_seconds())
            _evaluated(story)
    return story


def a_retry_takes_over_tasks_items_and_signals() -> Story:
    item = {"executador": "x", "max_tentativas": 1, "quando": "${{ i != 12 }}", "parametros": {"n": "${{ i }}"}}
    tasks = {
        "a": {"fonte": "f"},
        "m": {"para_cada": "${{ a.dados }}", "como": "i", "ao_mesmo_tempo": 1, "faz": item},
        "ok": {"espera": {"sinal": "s"}, "depende": ["m"]},
        "b": {"executador": "y", "max_tentativas": 1, "depende": ["ok"]},
    }
    story = Story(requests.plan_of(requests.parse({"tarefas": tasks, "rotulos": ["x:y"]}), requests.Defaults()))
    _to_the_end(story, fails={5, 3})
    retry = Retry(story)
    _to_the_end(retry, fails=set())
    return retry


def _to_the_end(story: Story, fails: set[int]) -> None:
    while story.state.closed_at is None:
        for command in evaluate_inline(story.state):
            story.do(command)
        story.confirm() if story.state.owed else None
        running = [p for p, one in enumerate(story.state.tickets) if one.running]
        if not running:
            story.do(Signal("1", "s", b'"sim"'), story.now + 1)
            continue
        position = running[0]
        if position in fails:
            story.fail(position, when=story.now + 1)
        else:
            story.ok(position, b"[10,11,12]" if position == 0 else b"%d" % position, when=story.now + 1)


def children_of_every_ending() -> Story:
    """One that goes through, one in part, one that fails and is begun again, one whose id is taken, one for each item;
    and one that has to end with its parent."""
    child = {"filha": {"tipo": "relatorio", "parametros": {"n": "${{ entrada.n }}"}}}
    plan_ = {"entrada": {"i": "${{ item }}"}, "tarefas": {"x": {"fonte": "x", "quando": "${{ entrada.i > 1 }}"}}}
    body = {
        "entrada": {"n": 3},
        "tarefas": {
            "boa": child,
            "parte": child,
            "de_novo": {**child, "max_tentativas": 2, "retentativa": {"base_s": 0}},
            "ocupada": {**child, "opcional": True},
            "itens": {"para_cada": [1, 2], "faz": {"filha": plan_}},
            "tarde": {**child, "timeout_s": 9, "opcional": True},
            "aberta": {**child, "depende": ["boa"]},
        },
        "timeout_s": 60,
    }
    story = Story(requests.plan_of(requests.parse(body), requests.Defaults()))
    _evaluated(story)

    def end(position: int, status: str, attempt: int = 1, code: str = "", final: bool = False) -> None:
        good = status in ("concluida", "parcial")
        erros = [] if good else [{"codigo": code or status, "mensagem": status, "definitivo": final}]
        answer = story.answer(position, dados=b'{"n":%d}' % position)
        answer = replace(answer, ok=good, erros=erros, definitivo=final, ticket=None, position=position)
        answer = replace(answer, attempt=attempt, child=Status(status) if good else None)
        story.do(answer if good else replace(answer, dados=b"null"))
        _evaluated(story)

    story.confirm()
    end(0, "concluida")
    end(1, "parcial")
    end(2, "erro")
    story.wake(1)
    end(2, "concluida", 2)
    end(3, "erro", code="id_ocupado", final=True)
    end(7, "concluida")
    end(8, "cancelada")
    story.wake(9)
    story.do(ConfirmCancel([(5, 1)]))
    story.confirm()
    story.cancel("chega", when=10)
    story.do(ConfirmCancel([(6, 1)]))
    return story


def a_run_becomes_more_urgent() -> Story:
    """Twice, once while an attempt is under way; the same again is nothing."""
    story = Story(plan(2, 1, attempts=2))
    story.do(Prioritise(9, "cliente espera", "ana"), 1)
    story.confirm(0, 1, when=2)
    story.fail(0, when=3)
    story.do(Prioritise(9), 4)
    story.do(Prioritise(2, "já não urge", "ana"), 5)
    story.ok(1, when=6)
    story.wake(60)
    story.ok(0, attempt=2, when=61)
    story.ok(2, when=62)
    return story


def workers_say_how_long_it_took() -> Story:
    """Some do, of what they did and of what went wrong; others say nothing of it."""
    story = Story(plan(3, 0, attempts=2))
    story.confirm()
    story.do(replace(story.answer(0), work_ms=1500), 7)
    story.do(replace(story.answer(1, ok=False), work_ms=0), 8)
    story.ok(2, when=9)
    story.wake(60)
    story.confirm()
    story.do(replace(story.answer(1, ok=False), work_ms=250), 61)
    return story


STORIES: tuple[Callable[[], Story], ...] = (
    an_exhausted_order_is_requeued,
    an_attempt_is_withdrawn,
    workers_are_chosen,
    policies_are_asked,
    everything_of_a_request,
    a_notice_that_is_given_up,
    a_notice_of_fluxo_c_that_is_given_up,
    a_plan_of_the_first_rules_has_no_quick_tries,
    a_graph_whose_dependency_fails,
    the_deadline_closes_running_and_waiting_tickets,
    out_of_attempts_by_silence,
    failures_in_every_branch_are_undone,
    undoing_is_cut_short_by_a_cancel,
    a_plan_that_asks_not_to_be_undone,
    approved_after_hours,
    refused_by_nobody_in_particular,
    an_approval_that_expires,
    a_late_answer_of_what_was_undone,
    answers_that_disagree,
    named_tasks_with_expressions,
    an_output_without_a_value,
    a_saga_out_of_time,
    maps_of_every_fan_in,
    loops_of_every_ending,
    children_of_every_ending,
    waits_for_signals_decisions_and_time,
    a_wait_that_is_refused,
    a_run_that_is_paused_twice,
    a_run_becomes_more_urgent,
    workers_say_how_long_it_took,
    a_retry_takes_over_tasks_items_and_signals,
)
