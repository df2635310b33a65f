"""Portuguese ⇄ English: the one table of words, and the only module that knows both.

Messages on queues and the journal keep the Portuguese words. Requests may use either, word by word; answers are
translated when the caller asks. Only structural words are translated, by place: a key as a field, a text as the value
of a field that has words of its own. What is inside `OPAQUE` fields belongs to users and workers and stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Words = Literal["pt", "en"]

_FIELD_PAIRS = """
    coletas collects            execucoes executes          fonte source
    executador executor         parametros params           dados data
    resultado result            erros errors                tentativas attempts
    max_tentativas max_attempts duracao_ms duration_ms      inicio started_at
    fim ended_at                notificar notify            fila queue
    tipo type                   modo mode                   minimo at_least
    entrada input               saida output                tarefas tasks
    depende needs               quando when                 para_cada for_each
    como as                     ao_mesmo_tempo at_once      faz do
    espera wait                 sinal signal                aprovacao approval
    segundos seconds            ate until                   filha child
    repete repeat               no_maximo at_most           desfaz undo
    opcional optional           prioridade priority         rotulos labels
    resultados results          mensagem message            codigo code
    definitivo final            indice index                itens items
    feito done                  papeis roles                pergunta question
    ao_expirar on_expire        ao_recusar on_refuse        ao_esgotar on_exhaust
    pausa_s pause_s             retentativa retry           teto_s cap_s
    nao_em not_on               tarefa task                 origem origin
    falhas failures             pare_quando stop_when       aprovado approved
    pausada paused              unica unique                janela_s window_s
    chave key                   juntada merged              juntadas merges
    recentes recent
"""
_STATUS_PAIRS = """
    pendente pending  em_execucao running  concluida completed  parcial partial
    erro failed  cancelada cancelled  ignorada skipped  pausada paused
"""


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


FIELDS: Mapping[str, str] = _pairs(_FIELD_PAIRS)  # Portuguese field → English field
STATUSES: Mapping[str, str] = _pairs(_STATUS_PAIRS)
MODES: Mapping[str, str] = {
    "todos": "all",
    "primeiro": "first",
    "aberta": "open",
    "janela": "window",
    "sempre": "forever",
}
OTHERWISE: Mapping[str, str] = {"falha": "fail", "segue": "continue"}
# Portuguese field → the words of its values.
VALUES: Mapping[str, Mapping[str, str]] = {
    "status": STATUSES,
    "modo": MODES,
    "ao_expirar": OTHERWISE,
    "ao_recusar": OTHERWISE,
    "ao_esgotar": OTHERWISE,
    "de": {"inicio": "start", "falhas": "failures"},
}
OPAQUE = frozenset({"parametros", "dados", "resultado", "resultados", "entrada", "saida"})
NAMED = frozenset({"tarefas"})  # fields whose keys are names that users gave

# Of answers. What else is not looked into, and what else has names as its keys: those of types, queues, outcomes.
_OPAQUE_IN_ANSWERS = OPAQUE | {"para_cada", "cabecalhos"}
_NAMED_IN_ANSWERS = NAMED | {"task_types", "aguardando", "situacoes", "checks"}
_VALUES_IN_ANSWERS = {**VALUES, "desfecho": STATUSES, "desfeita": STATUSES}
_WAITS = {word: FIELDS[word] for word in ("sinal", "aprovacao", "segundos", "ate")}
_KINDS = {"coleta": "collect", "execucao": "execute", "mapa": "map", "espera": "wait", "filha": "child"}
_KINDS |= {"repete": "repeat"}

# Names and first-level fields inside `${{ }}`.
EXPRESSION_NAMES = ("entrada", "indice", "feito")
OFFERED = ("dados", "resultado", "resultados", "erros", "tentativas", "falhas")

FIELDS_TO_PORTUGUESE: Mapping[str, str] = {english: portuguese for portuguese, english in FIELDS.items()}


def field_in(words: Words, portuguese: str) -> str:
    """The word for a field in one of the vocabularies."""
    return FIELDS.get(portuguese, portuguese) if words == "en" else portuguese


def value_in(words: Words, field: str, portuguese: str) -> str:
    """The word for a value of a field, which is named in Portuguese, in one of the vocabularies."""
    return VALUES[field].get(portuguese, portuguese) if words == "en" and field in VALUES else portuguese


def value_to_portuguese(field: str, word: str) -> str:
    """The Portuguese word for a value of a field that was written in either vocabulary."""
    return next((one for one, english in VALUES.get(field, {}).items() if english == word), word)


def name_to_portuguese(name: str) -> str:
    """The Portuguese spelling of `entrada`, `indice` and `feito` inside an expression; other names as they are."""
    known = FIELDS_TO_PORTUGUESE.get(name, name)
    return known if known in EXPRESSION_NAMES else name


def offered_to_portuguese(field: str) -> str:
    """The Portuguese spelling of a field that a task offers; other fields as they are."""
    known = FIELDS_TO_PORTUGUESE.get(field, field)
    return known if known in OFFERED else field


def uses_english(request: object) -> bool:
    """Whether a request has an English word where its structure has words: a field, or a value that is one."""
    stack = [request]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            for word, value in one.items():
                field = FIELDS_TO_PORTUGUESE.get(word, word)
                if field != word or (isinstance(value, str) and value_to_portuguese(field, value) != value):
                    return True
                if field not in OPAQUE:
                    stack.append(value)
    return False


def in_english(answer: Any) -> Any:
    """An answer in Portuguese words with its structural words in English ones; what has no English word, and what is
    inside fields of users and workers, stays as it is."""
    if isinstance(answer, list):
        return [in_english(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    kinds = _KINDS if "ticket_id" in answer else {}
    return {FIELDS.get(word, word): _value_in_english(word, value, kinds) for word, value in answer.items()}


def _value_in_english(field: str, value: Any, kinds: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        words = kinds if field == "tipo" else _VALUES_IN_ANSWERS.get(field)
        return words.get(value, value) if words else value
    if field in _OPAQUE_IN_ANSWERS or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        return in_english(value)
    if field in _NAMED_IN_ANSWERS:
        return {name: in_english(one) for name, one in value.items()}
    if field == "mensagem":  # of a queue
        return value
    shown = in_english(value)
    if field == "espera" and isinstance(value.get("tipo"), str):
        shown["type"] = _WAITS.get(value["tipo"], value["tipo"])
    return shown
