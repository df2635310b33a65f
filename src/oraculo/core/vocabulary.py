"""The words that travel: spelled the same in code, on the wire and in the database."""

from __future__ import annotations

from enum import StrEnum


class TipoEvento(StrEnum):
    INICIAR_COLETA = "iniciar_coleta"
    RESULTADO_COLETA = "resultado_coleta"
    INICIAR_EXECUCAO = "iniciar_execucao"
    RESULTADO_EXECUCAO = "resultado_execucao"


class Status(StrEnum):
    """Of a ticket and of an orchestration; only a ticket can be `ignorada`; of tickets only maps, loops and children
    can be `parcial`."""

    PENDENTE = "pendente"
    EM_EXECUCAO = "em_execucao"
    CONCLUIDA = "concluida"
    PARCIAL = "parcial"
    ERRO = "erro"
    TIMEOUT = "timeout"
    CANCELADA = "cancelada"
    IGNORADA = "ignorada"

    @property
    def final(self) -> bool:
        return self not in (Status.PENDENTE, Status.EM_EXECUCAO)


RUN_STATUSES = tuple(status for status in Status if status is not Status.IGNORADA)  # of orchestrations


class Kind(StrEnum):
    """What a task does; it picks the event type of its messages. Maps and loops have none: their items and rounds have.
    A task that waits has none: no worker gets it; nor has a child, which is an orchestration of its own."""

    COLETA = "coleta"
    EXECUCAO = "execucao"
    MAPA = "mapa"
    ESPERA = "espera"
    REPETE = "repete"
    FILHA = "filha"

    @property
    def is_sent(self) -> bool:
        """True when a worker does it."""
        return self is Kind.COLETA or self is Kind.EXECUCAO

    @property
    def grows(self) -> bool:
        """True when others do it: items or rounds, which it gets while it runs."""
        return self is Kind.MAPA or self is Kind.REPETE

    @property
    def key(self) -> str:
        """The word beside which documents name the destination of a task, or what it waits for. Maps and loops are
        named by what their items and rounds do."""
        return _KEYS[self]

    @property
    def offers(self) -> str:
        """The word under which a task offers what came of it."""
        return _OFFERS[self]

    @property
    def order(self) -> TipoEvento:
        return TipoEvento.INICIAR_COLETA if self is Kind.COLETA else TipoEvento.INICIAR_EXECUCAO

    @property
    def answer(self) -> TipoEvento:
        return TipoEvento.RESULTADO_COLETA if self is Kind.COLETA else TipoEvento.RESULTADO_EXECUCAO


_KEYS = {Kind.COLETA: "fonte", Kind.EXECUCAO: "executador", Kind.ESPERA: "espera", Kind.FILHA: "filha"}
_OFFERS = {
    Kind.COLETA: "dados",
    Kind.EXECUCAO: "resultado",
    Kind.MAPA: "resultados",
    Kind.ESPERA: "dados",
    Kind.REPETE: "resultado",
    Kind.FILHA: "resultado",
}


class FanIn(StrEnum):
    """When a gate closes: `todos`, every input closed (one success is enough to pass); `quorum` and `primeiro`,
    as soon as enough inputs succeeded; `todas_ok`, every input succeeded, failing at the first that did not;
    `fechadas`, every input closed, however it ended. Inputs that were skipped count neither way."""

    TODOS = "todos"
    QUORUM = "quorum"
    PRIMEIRO = "primeiro"
    TODAS_OK = "todas_ok"
    FECHADAS = "fechadas"


class Ending(StrEnum):
    """How an orchestration ends whose tickets are all closed: `essential`, well unless an essential gate failed or a
    ticket did; `majority`, by how many of its tickets concluded; `absorbed`, by whether a fan-in that went through took
    in what failed."""

    ESSENTIAL = "essential"
    MAJORITY = "majority"
    ABSORBED = "absorbed"


class Cause(StrEnum):
    """Why an attempt failed or was withdrawn. An attempt n+1 exists only when attempt n has one of these."""

    ERRO = "erro"
    TIMEOUT = "timeout"
    REALOCADO = "realocado"  # its worker is gone, or an operator took it away: no failure, and none is used up
    PREEMPTADO = "preemptado"  # its worker's place was needed for a more urgent ticket: no failure either
    OFERTA_VENCIDA = "oferta_vencida"  # the worker that it was offered to did not take it in time: no failure either

    @property
    def is_failure(self) -> bool:
        """True when the attempt is one of those that a ticket may use up."""
        return self is Cause.ERRO or self is Cause.TIMEOUT


class UndoCause(StrEnum):
    """Why what was done is undone."""

    TASK_FAILED = "task_failed"
    REFUSED = "refused"
    OUT_OF_TIME = "out_of_time"
    CANCELLED = "cancelled"


class Phase(StrEnum):
    """Where a ticket is inside; the public status follows from it."""

    WAITING = "waiting"  # its gate is not open yet
    OWED = "owed"  # released: the message must be published, no broker has confirmed it yet
    RUNNING = "running"  # a broker confirmed the message of this attempt
    BACKOFF = "backoff"  # the last attempt failed, the next one is due later
    CLOSED = "closed"
    GROWN = "grown"  # a map or a loop whose items or rounds are under way
    HELD = "held"  # it waits for a signal, an approval or an instant
    JUDGED = "judged"  # its release, or the answer to its last attempt, waits for a verdict of the policies


class RiskBand(StrEnum):
    """Of a cognitive plan; it drives retries, quality of service and priority (Fluxo C)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Priority(StrEnum):
    LOW = "LOW"
    NORMAL = "NORMAL"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


class TaskType(StrEnum):
    """What a ticket of Fluxo C asks a worker to do."""

    BUILD = "BUILD"
    DEPLOY = "DEPLOY"
    TEST = "TEST"
    VALIDATE = "VALIDATE"
    EXECUTE = "EXECUTE"
    COMPENSATE = "COMPENSATE"
    QUERY = "QUERY"
    TRANSFORM = "TRANSFORM"


class SecurityLevel(StrEnum):
    PUBLIC = "PUBLIC"
    INTERNAL = "INTERNAL"
    CONFIDENTIAL = "CONFIDENTIAL"
    RESTRICTED = "RESTRICTED"


class TicketStatus(StrEnum):
    """Of a ticket as Fluxo C writes it; there is no other value."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    COMPENSATING = "COMPENSATING"
    COMPENSATED = "COMPENSATED"


class Verdict(StrEnum):
    """What became of a command. Everything received is exactly one of these."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    LATE = "late"
    CONFLICTING = "conflicting_answer"  # kept beside the answer that it disagrees with
    IDLE = "idle"  # nothing to do: a stale timer, a confirmation that came after the answer
    AMBIGUOUS = "ambiguous"
    UNKNOWN_TICKET = "unknown_ticket"
    WRONG_ATTEMPT = "wrong_attempt"
    RUN_ENDED = "run_ended"  # a further attempt for a ticket of an orchestration that is over
    ALREADY_DECIDED = "already_decided"  # … of a ticket whose end a fan-in has counted, or that did not fail
    TOO_MANY_ANSWERS = "too_many_answers"  # a conflicting answer to a ticket that holds as many as it may
    UNKNOWN_SIGNAL = "unknown_signal"  # no wait of the plan has this name
    TOO_MANY_SIGNALS = "too_many_signals"  # as many are kept as may be
    SIGNAL_REUSED = "signal_reused"  # the id of an earlier signal with another name or other data

    @property
    def refused(self) -> bool:
        """The message cannot be used: it belongs in quarantine, or stays there, with this verdict as the reason."""
        return self in _REFUSED


_REFUSED = frozenset(
    (
        Verdict.AMBIGUOUS,
        Verdict.UNKNOWN_TICKET,
        Verdict.WRONG_ATTEMPT,
        Verdict.TOO_MANY_ANSWERS,
        Verdict.RUN_ENDED,
        Verdict.ALREADY_DECIDED,
    )
)
