"""The words that travel: spelled the same in code, on the wire and in the database."""

from __future__ import annotations

from enum import StrEnum


class TipoEvento(StrEnum):
    INICIAR_COLETA = "iniciar_coleta"
    RESULTADO_COLETA = "resultado_coleta"
    INICIAR_EXECUCAO = "iniciar_execucao"
    RESULTADO_EXECUCAO = "resultado_execucao"


class Status(StrEnum):
    """Of a ticket and of an orchestration; only an orchestration can be `parcial`."""

    PENDENTE = "pendente"
    EM_EXECUCAO = "em_execucao"
    CONCLUIDA = "concluida"
    PARCIAL = "parcial"
    ERRO = "erro"
    TIMEOUT = "timeout"
    CANCELADA = "cancelada"

    @property
    def final(self) -> bool:
        return self not in (Status.PENDENTE, Status.EM_EXECUCAO)


class Kind(StrEnum):
    """What a task does; it picks the event type of its messages."""

    COLETA = "coleta"
    EXECUCAO = "execucao"

    @property
    def order(self) -> TipoEvento:
        return TipoEvento.INICIAR_COLETA if self is Kind.COLETA else TipoEvento.INICIAR_EXECUCAO

    @property
    def answer(self) -> TipoEvento:
        return TipoEvento.RESULTADO_COLETA if self is Kind.COLETA else TipoEvento.RESULTADO_EXECUCAO


class FanIn(StrEnum):
    """When a gate closes: `todos`, every input closed (one success is enough to pass); `quorum` and `primeiro`,
    as soon as enough inputs succeeded; `todas_ok`, every input succeeded, failing at the first that did not."""

    TODOS = "todos"
    QUORUM = "quorum"
    PRIMEIRO = "primeiro"
    TODAS_OK = "todas_ok"


class Cause(StrEnum):
    """Why an attempt failed. An attempt n+1 exists only when attempt n has one of these."""

    ERRO = "erro"
    TIMEOUT = "timeout"


class Phase(StrEnum):
    """Where a ticket is inside; the public status follows from it."""

    WAITING = "waiting"  # its gate is not open yet
    OWED = "owed"  # released: the message must be published, no broker has confirmed it yet
    RUNNING = "running"  # a broker confirmed the message of this attempt
    BACKOFF = "backoff"  # the last attempt failed, the next one is due later
    CLOSED = "closed"


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
    IDLE = "idle"  # nothing to do: a stale timer, a confirmation that came after the answer
    AMBIGUOUS = "ambiguous"
    UNKNOWN_TICKET = "unknown_ticket"
    WRONG_ATTEMPT = "wrong_attempt"

    @property
    def refused(self) -> bool:
        """The message cannot be used: it belongs in quarantine, with this verdict as the reason."""
        return self in (Verdict.AMBIGUOUS, Verdict.UNKNOWN_TICKET, Verdict.WRONG_ATTEMPT)
