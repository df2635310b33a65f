"""The document of a schedule as users write it, and where a schedule stands, as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from oraculo.core.schedules import Overlap, ScheduleRule, ScheduleState
from oraculo.errors import WireError
from oraculo.wire import requests, strict_json

WEEK_S = 7 * 24 * 3600
INTERVAL_MAX_S = 366 * 24 * 3600
CATCH_UP_DEFAULT_S = 3600
_EXAMPLE: dict[str, Any] = {
    "cron": "0 6 * * 1-5",
    "fuso": "America/Sao_Paulo",
    "requisicao": {"tipo": "relatorio_semanal"},
    "sobreposicao": "pular",
}


class Agenda(BaseModel):
    """What is started when. Instants are those of `cron` (minute hour day month weekday) in the time zone `fuso`, or of
    `intervalo_s`, counted from 1970-01-01T00:00:00Z."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})
    cron: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    intervalo_s: Annotated[int, Field(ge=1, le=INTERVAL_MAX_S, strict=True)] | None = None
    fuso: Annotated[str, Field(min_length=1, max_length=100)] = "UTC"
    requisicao: dict[str, Any] = Field(description="a request, without correlation_id")
    sobreposicao: Overlap = Field(Overlap.PULAR, description="at an instant while the run of an earlier one is open")
    recuperar_s: Annotated[int, Field(ge=0, le=INTERVAL_MAX_S, strict=True)] = Field(
        CATCH_UP_DEFAULT_S, description="how late an instant may still fire"
    )
    jitter_s: Annotated[int, Field(ge=0, le=WEEK_S, strict=True)] = Field(0, description="put off by up to so long")
    fim: datetime | None = Field(
        None, description="no instant after it fires", validation_alias=AliasChoices("fim", "ended_at")
    )

    @model_validator(mode="after")
    def _one_calendar(self) -> Agenda:
        if (self.cron is None) == (self.intervalo_s is None):
            raise ValueError("give cron or intervalo_s, one of them")
        if self.fim is not None and self.fim.tzinfo is None:
            raise ValueError("fim has no zone; ISO 8601 with a zone is allowed, like 2026-12-31T00:00:00Z")
        return self

    def rule(self, name: str) -> ScheduleRule:
        end = None if self.fim is None else self.fim.astimezone(UTC)
        catch_up, jitter = timedelta(seconds=self.recuperar_s), timedelta(seconds=self.jitter_s)
        return ScheduleRule(name, self.sobreposicao, catch_up, jitter, end)


def parse(value: Any) -> Agenda:
    """A decoded JSON value as the document of a schedule; WireError lists every fault and where it is."""
    try:
        return Agenda.model_validate(value)
    except ValidationError as error:
        raise requests.invalid(error) from None


def fault(where: str, message: str) -> WireError:
    """One fault of one field."""
    return WireError("invalid_request", f"{where}: {message}", [{"campo": where, "mensagem": message}])


def read(body: bytes) -> Agenda:
    """The document of a schedule that was stored."""
    return Agenda.model_validate(strict_json.loads_trusted(body))


def written(agenda: Agenda) -> dict[str, Any]:
    return agenda.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True, slots=True)
class SchedulePause:
    """Who paused a schedule, when and why."""

    at: datetime
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """Where a schedule stands, and whose it is. `error` is why the latest instant could not be started."""

    state: ScheduleState
    actor: str
    changed_at: datetime
    paused: SchedulePause | None = None
    error: str | None = None
    counts: dict[str, int] = field(default_factory=dict)  # outcome → instants

    def counted(self, outcome: str, number: int = 1) -> ScheduleRecord:
        if not number:
            return self
        return replace(self, counts={**self.counts, outcome: self.counts.get(outcome, 0) + number})


def encode(record: ScheduleRecord) -> bytes:
    return strict_json.dumps(record)


def decode(body: bytes) -> ScheduleRecord:
    value = strict_json.loads_trusted(body)
    paused = value["paused"]
    return ScheduleRecord(
        _state(value["state"]),
        value["actor"],
        datetime.fromisoformat(value["changed_at"]),
        None if paused is None else SchedulePause(datetime.fromisoformat(paused["at"]), paused["by"], paused["reason"]),
        value["error"],
        value["counts"],
    )


def _state(value: dict[str, Any]) -> ScheduleState:
    return ScheduleState(
        datetime.fromisoformat(value["after"]),
        _instant(value["last"]),
        tuple(datetime.fromisoformat(one) for one in value["firing"]),
        _instant(value["cancel"]),
        tuple(datetime.fromisoformat(one) for one in value["waiting"]),
    )


def _instant(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
