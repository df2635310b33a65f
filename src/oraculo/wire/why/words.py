"""The sentences about decisions, in both languages; reasons and choices of workers have theirs in the core."""

from __future__ import annotations

from oraculo.core.policies import PolicyPoint
from oraculo.core.sentences import Language
from oraculo.core.vocabulary import Cause, FanIn, Status, UndoCause
from oraculo.core.waits import WaitEnd
from oraculo.plans.words import STATUSES

_EN, _PT = 0, 1
_SENTENCES: dict[str, tuple[str, str]] = {
    # the run
    "started": ("asked for by {actor}; tickets: {n}", "pedida por {actor}; tickets: {n}"),
    "started.unknown": ("asked for; tickets: {n}", "pedida; tickets: {n}"),
    "started.deadline": ("to end by {until}", "deve terminar até {until}"),
    "started.no-deadline": ("without a deadline", "sem prazo"),
    "started.retry": ("tries {origin} again", "tenta {origin} de novo"),
    "started.child": ("a child of {parent}", "filha de {parent}"),
    "started.policies": ("policies are asked at: {points}", "as políticas são consultadas em: {points}"),
    "started.score": ("urgency {explained}", "urgência {explained}"),
    "taken-over": ("takes over {n} results of {origin}", "aproveita {n} resultados de {origin}"),
    "cancelled": ("cancelled{by}{why}", "cancelada{by}{why}"),
    "cancelled.undo": ("what was done is undone, too", "o que foi feito é desfeito também"),
    "paused": ("paused{by}{why}: no order goes out, and deadlines stand still",
               "pausada{by}{why}: nenhuma ordem sai, e os prazos param"),
    "resumed": ("resumed{by}{why}", "retomada{by}{why}"),
    "prioritised": ("priority {n}{by}{why}", "prioridade {n}{by}{why}"),
    "approval.asked": ("a human has to agree before anything goes out",
                       "uma pessoa tem de concordar antes que algo saia"),
    "approval.given": ("approved by {who}{why}", "aprovada por {who}{why}"),
    "approval.refused": ("refused by {who}{why}", "recusada por {who}{why}"),
    "signal.taken": ("the signal {name} came{by}: {task} takes it", "o sinal {name} veio{by}: {task} o recebe"),
    "signal.kept": ("the signal {name} came{by} and is kept: nothing waits for it yet",
                    "o sinal {name} veio{by} e fica guardado: nada espera por ele ainda"),
    "undo": ("{n} tickets are undone, because {cause}", "{n} tickets são desfeitos, porque {cause}"),
    "undo.of": ("undoing {name}", "desfazer {name}"),
    "undo.order": ("in this order, as far as they depend on each other: {names}",
                   "nesta ordem, no que dependem uns dos outros: {names}"),
    "undo.ending": ("the run ends as {status} then", "a execução termina como {status} depois"),
    "ended": ("ended as {status}", "terminou como {status}"),
    "ended.gate": ("not enough for its fan-in ({mode}): {needed} of {n}",
                   "não bastou ao fan-in ({mode}): {needed} de {n}"),
    "ended.count": ("{n} × {status}", "{n} × {status}"),
    "ended.why": ("{n} × {status}: {why}", "{n} × {status}: {why}"),
    "ended.output": ("its output: {why}", "sua saída: {why}"),
    "ended.undone": ("what was done was undone, because {cause}", "o que foi feito foi desfeito, porque {cause}"),
    "notice": ("{target} was not told of the end after {n} tries: {detail}",
               "{target} não foi avisado do fim em {n} tentativas: {detail}"),
    # tickets
    "released": ("{names}: released; {why}", "{names}: liberado; {why}"),
    "released.first": ("waits for nothing else", "não espera por mais nada"),
    "released.judged": ("the policies allow it", "as políticas permitem"),
    "released.again": ("{names}: attempt {n}", "{names}: tentativa {n}"),
    "gate.passed": ("{names}: may start; {why}", "{names}: pode começar; {why}"),
    "gate.failed": ("{names}: cannot start; {why}", "{names}: não pode começar; {why}"),
    "reused": ("{names}: what an earlier run had concluded takes the place of doing it",
               "{names}: o que uma execução anterior concluiu toma o lugar de fazê-lo"),
    "restored": ("{names}: {n} items, as in the earlier run", "{names}: {n} itens, como na execução anterior"),
    "grown": ("{names}: {n} of {total} items", "{names}: {n} de {total} itens"),
    "grown.round": ("{names}: round {n}", "{names}: rodada {n}"),
    "grown.starts": ("starts at {until}", "começa em {until}"),
    "grown.idle": ("{n} do not start: {why}", "{n} não começam: {why}"),
    "grown.ended": ("{names}: ended as {status}{why}", "{names}: terminou como {status}{why}"),
    "allocated": ("{names}, attempt {n}: given to {worker} (score {score}, urgency {urgency}): {how}",
                  "{names}, tentativa {n}: dado a {worker} (nota {score}, urgência {urgency}): {how}"),
    "allocated.other": ("{worker} {score}: {why}", "{worker} {score}: {why}"),
    "allocated.more": ("others looked at: {counts}", "outros examinados: {counts}"),
    "predicted": ("predicted: half of such tasks take {half} at most, nine of ten {most}",
                  "previsto: metade das tarefas assim leva até {half}, nove de dez até {most}"),
    "estimated": ("estimated by its plan: {ms}", "estimado pelo plano: {ms}"),
    "came": ("came after {took}: {verdict}", "veio depois de {took}: {verdict}"),
    "came.inside": ("within what nine of ten take", "dentro do que nove de dez levam"),
    "came.outside": ("longer than nine of ten take", "mais do que nove de dez levam"),
    "took": ("took {took}", "levou {took}"),
    "concluded": ("{names}: attempt {n} answered{by}", "{names}: a tentativa {n} respondeu{by}"),
    "child": ("{names}: the child ended as {status}", "{names}: a filha terminou como {status}"),
    "child.ended": ("{names}: the child was ended, too", "{names}: a filha foi encerrada também"),
    "failed": ("{names}: attempt {n} failed ({cause}){by}: {error}",
               "{names}: a tentativa {n} falhou ({cause}){by}: {error}"),
    "failed.again": ("another attempt follows at {until}: {used} of {most} are used up",
                     "outra tentativa vem em {until}: {used} de {most} estão gastas"),
    "gave-up": ("{names}: failed for good with attempt {n}{by}: {error}",
                "{names}: falhou de vez na tentativa {n}{by}: {error}"),
    "gave-up.final": ("the worker said that another attempt would not help",
                      "o worker disse que outra tentativa não adiantaria"),
    "gave-up.spent": ("all of its attempts are used up: {most}", "todas as suas tentativas estão gastas: {most}"),
    "requeued": ("{names}: given attempt {n}{by}, although its own are used up",
                 "{names}: recebeu a tentativa {n}{by}, embora as suas estejam gastas"),
    "withdrawn.realocado": ("{names}: attempt {n} taken back from {worker}, which is gone{by}",
                            "{names}: tentativa {n} tirada de {worker}, que se foi{by}"),
    "withdrawn.preemptado": ("{names}: attempt {n} taken back from {worker}{by}: its place was needed for {ticket}",
                             "{names}: tentativa {n} tirada de {worker}{by}: seu lugar foi preciso para {ticket}"),
    "withdrawn.oferta_vencida": ("{names}: offer of attempt {n} withdrawn: {worker} did not take it in time",
                                 "{names}: oferta da tentativa {n} retirada: {worker} não a aceitou a tempo"),
    "withdrawn.kept": ("it uses up no attempt; goes out again {when}",
                       "não gasta nenhuma tentativa; sai de novo {when}"),
    "withdrawn.at-once": ("at once", "já"),
    "withdrawn.after": ("after {seconds} s", "depois de {seconds} s"),
    "late": ("{names}: an answer to attempt {n} came when that was over: kept, without effect",
             "{names}: uma resposta à tentativa {n} veio quando ela já acabara: guardada, sem efeito"),
    "conflicting": ("{names}: another answer to attempt {n} says something else: kept, without effect",
                    "{names}: outra resposta à tentativa {n} diz outra coisa: guardada, sem efeito"),
    "closed": ("{names}: {status}, because {why}", "{names}: {status}, porque {why}"),
    "held": ("{names}: its answer waits for the policies", "{names}: sua resposta espera pelas políticas"),
    "waits": ("{names}: waits", "{names}: espera"),
    "waits.until": ("{names}: waits until {until}", "{names}: espera até {until}"),
    "wait.ended": ("{names}: {how}; {status}", "{names}: {how}; {status}"),
    "policy": ("policies ({point}): {names} {said}", "políticas ({point}): {names} {said}"),
    "policy.plan": ("the plan", "o plano"),
    "policy.allowed": ("allowed", "permitido"),
    "policy.refused": ("refused: {text}", "recusado: {text}"),
    "policy.closed": ("refused, because they could not be asked: {text}",
                      "recusado, porque não puderam ser consultadas: {text}"),
    "policy.open": ("allowed, although they could not be asked: {text}",
                    "permitido, embora não pudessem ser consultadas: {text}"),
    "policy.warned": ("allowed, with warnings", "permitido, com avisos"),
    "policy.by": ("by {engine}, policies {version}, decision {decision}",
                  "por {engine}, políticas {version}, decisão {decision}"),
    "policy.rule": ("{policy}/{rule}: {text}", "{policy}/{rule}: {text}"),
    "policy.values": ("{field}: expected {expected}, found {actual}",
                      "{field}: esperado {expected}, encontrado {actual}"),
    # how it stands
    "now.gate": ("{names} waits for {open} of {n} ({mode}): {others}",
                 "{names} espera por {open} de {n} ({mode}): {others}"),
    "now.turn": ("{names} waits for its turn: {live} of {most} at once are under way",
                 "{names} espera a vez: {live} de {most} ao mesmo tempo estão em curso"),
    "now.start": ("{names} has not started", "{names} ainda não começou"),
    "now.asks": ("{names}: its expressions are being evaluated", "{names}: suas expressões estão sendo avaliadas"),
    "now.owed": ("{names}: attempt {n} waits to go out to {queue}",
                 "{names}: a tentativa {n} espera para sair a {queue}"),
    "now.running": ("{names}: attempt {n} is with {queue} since {since}",
                    "{names}: a tentativa {n} está com {queue} desde {since}"),
    "now.until": ("an answer is waited for until {until}", "a resposta é esperada até {until}"),
    "now.given": ("given to {worker} at {since}", "dada a {worker} em {since}"),
    "now.child": ("{names}: its child runs", "{names}: sua filha está em curso"),
    "now.backoff": ("{names}: its next attempt is due at {until} ({cause})",
                    "{names}: sua próxima tentativa é em {until} ({cause})"),
    "now.round": ("{names}: starts at {until}", "{names}: começa em {until}"),
    "now.items": ("{names}: {done} of {total} of what it does are over",
                  "{names}: {done} de {total} do que faz acabaram"),
    "now.judged": ("{names}: waits for the policies", "{names}: espera pelas políticas"),
    "now.held": ("waits for {what}", "espera por {what}"),
    "ticket.done": ("{names}: concluded with attempt {n}", "{names}: concluído na tentativa {n}"),
    "ticket.ended": ("{names}: {status}, because {why}", "{names}: {status}, porque {why}"),
    "ticket.over": ("{names}: {status}", "{names}: {status}"),
    # parts
    "by": (" by {actor}", " por {actor}"),
    "more": ("{names} and {n} more", "{names} e mais {n}"),
    "item": ("{name} #{n}", "{name} #{n}"),
}  # fmt: skip
_GATES: dict[FanIn, tuple[str, str]] = {
    FanIn.TODOS: ("all {n} that it waits for ended, and one went well at least",
                  "todos os {n} que espera terminaram, e ao menos um deu certo"),
    FanIn.QUORUM: ("{needed} of {n} concluded", "{needed} de {n} concluíram"),
    FanIn.PRIMEIRO: ("the first of {n} concluded", "o primeiro de {n} concluiu"),
    FanIn.TODAS_OK: ("all {n} that it waits for concluded", "todos os {n} que espera concluíram"),
    FanIn.FECHADAS: ("all {n} that it waits for ended", "todos os {n} que espera terminaram"),
}  # fmt: skip
_GATE_OF_ONE = (
    ("what it waits for concluded", "o que espera concluiu"),
    ("what it waits for ended", "o que espera terminou"),
)
_BARRED: dict[FanIn, tuple[str, str]] = {
    FanIn.TODOS: ("none of {n} went well", "nenhum de {n} deu certo"),
    FanIn.QUORUM: ("{needed} of {n} cannot conclude any more", "{needed} de {n} não podem mais concluir"),
    FanIn.PRIMEIRO: ("none of {n} concluded", "nenhum de {n} concluiu"),
    FanIn.TODAS_OK: ("not all {n} that it waits for concluded", "nem todos os {n} que espera concluíram"),
    FanIn.FECHADAS: ("all {n} that it waits for were skipped", "todos os {n} que espera foram ignorados"),
}
_MODES: dict[FanIn, tuple[str, str]] = {
    FanIn.TODOS: ("all", "todos"),
    FanIn.QUORUM: ("quorum", "quórum"),
    FanIn.PRIMEIRO: ("first", "primeiro"),
    FanIn.TODAS_OK: ("all ok", "todas ok"),
    FanIn.FECHADAS: ("all ended", "todas fechadas"),
}
_CAUSES: dict[Cause, tuple[str, str]] = {
    Cause.ERRO: ("error", "erro"),
    Cause.TIMEOUT: ("no answer in time", "sem resposta a tempo"),
    Cause.REALOCADO: ("its worker is gone", "seu worker se foi"),
    Cause.PREEMPTADO: ("it made room for a more urgent ticket", "deu lugar a um ticket mais urgente"),
    Cause.OFERTA_VENCIDA: (
        "the worker it was offered to did not take it in time",
        "o worker a quem foi oferecido não o aceitou a tempo",
    ),
}
_UNDOING: dict[UndoCause, tuple[str, str]] = {
    UndoCause.TASK_FAILED: ("a task failed", "uma tarefa falhou"),
    UndoCause.REFUSED: ("it was refused", "foi recusada"),
    UndoCause.OUT_OF_TIME: ("its time was over", "o prazo acabou"),
    UndoCause.CANCELLED: ("it was cancelled", "foi cancelada"),
}
_ENDS: dict[WaitEnd, tuple[str, str]] = {
    WaitEnd.SIGNALLED: ("the signal came", "o sinal veio"),
    WaitEnd.APPROVED: ("approved", "aprovado"),
    WaitEnd.REFUSED: ("refused", "recusado"),
    WaitEnd.ELAPSED: ("the time has come", "a hora chegou"),
    WaitEnd.EXPIRED: ("nothing came in time", "nada veio a tempo"),
}
_POINTS: dict[PolicyPoint, tuple[str, str]] = {
    PolicyPoint.PLAN: ("plan", "plano"),
    PolicyPoint.TICKET: ("ticket", "ticket"),
    PolicyPoint.ALLOCATION: ("allocation", "alocação"),
    PolicyPoint.RESULT: ("answer", "resposta"),
}


_PORTUGUESE_STATUSES = {"concluida": "concluída", "em_execucao": "em execução"}


def _place(language: Language) -> int:
    return _EN if language == "en" else _PT


def sentence(language: Language, word: str, **values: object) -> str:
    return _SENTENCES[word][_place(language)].format(**values)


def gate(language: Language, mode: FanIn, needed: int, inputs: int, *, passed: bool) -> str:
    """What a fan-in found that passed, or that cannot pass."""
    if passed and inputs == 1:
        return _GATE_OF_ONE[mode is FanIn.FECHADAS][_place(language)]
    return (_GATES if passed else _BARRED)[mode][_place(language)].format(needed=needed, n=inputs)


def undoing(language: Language, cause: str) -> str:
    """Why things are undone; a cause that an older journal words itself stays as it is."""
    known = _UNDOING.get(UndoCause(cause)) if cause in list(UndoCause) else None
    return cause if known is None else known[_place(language)]


def status(language: Language, one: Status) -> str:
    """A status as a sentence names it."""
    names = STATUSES if language == "en" else _PORTUGUESE_STATUSES
    return names.get(one.value, one.value)


def cause(language: Language, one: Cause) -> str:
    """Why an attempt failed or was withdrawn, in a word or two."""
    return _CAUSES[one][_place(language)]


def mode(language: Language, one: FanIn) -> str:
    """A fan-in policy as a sentence names it."""
    return _MODES[one][_place(language)]


def wait_end(language: Language, how: WaitEnd) -> str:
    return _ENDS[how][_place(language)]


def point(language: Language, one: PolicyPoint) -> str:
    return _POINTS[one][_place(language)]
