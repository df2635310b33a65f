"""Objectives as users write them, and alerts, violations, budgets and freezes as they travel."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from oraculo.core.sla.budget import Budget
from oraculo.core.sla.slo import FreezeRule, Indicator, Slo
from oraculo.core.sla.watch import AlertKind, DeadlineAlert, alert_id
from oraculo.core.tenants import local_name
from oraculo.wire import requests, strict_json

TARGET_RULE = "more than 0 and less than 1, like 0.99; a target of 1 leaves no error budget to measure by"
_EXAMPLE: dict[str, Any] = {"indicador": "execucoes_no_prazo", "objetivo": 0.99, "tipo": "relatorio_semanal"}
ALERT, VIOLATION, BUDGET, FREEZE = "alert", "violation", "budget", "freeze"  # which topic a record goes to
_TOPIC_OF = {
    AlertKind.MISSED: VIOLATION,
    AlertKind.BUDGET_CHANGED: BUDGET,
    AlertKind.FROZEN: FREEZE,
    AlertKind.THAWED: FREEZE,
}


class Congelar(BaseModel):
    """When releases are frozen: a share of `abaixo` or less of the budget is left, until `acima` is left again."""

    model_config = ConfigDict(extra="forbid")
    abaixo: Annotated[float, Field(ge=0, lt=1)] = 0.2
    acima: Annotated[float, Field(gt=0, le=1)] = 0.5
    acoes: list[Literal["BLOCK_DEPLOY", "BLOCK_SCALE", "ALERT_ONLY"]] = ["BLOCK_DEPLOY"]

    @model_validator(mode="after")
    def _apart(self) -> Congelar:
        if self.acima <= self.abaixo:
            raise ValueError(f"acima is {self.acima:g}; it has to be above abaixo ({self.abaixo:g})")
        return self


class Objetivo(BaseModel):
    """A share of good ends over a window of days."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})
    indicador: Indicator = Field(description="what counts as good")
    objetivo: float = Field(description=TARGET_RULE)
    janela_dias: Annotated[int, Field(ge=1, le=90, strict=True)] = 30
    tipo: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(None, description="only runs of this type")
    destino: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="only tickets of this source or executor"
    )
    limite_s: Annotated[float, Field(gt=0, le=2_592_000)] | None = Field(
        None, description="the time that is good for `…_no_prazo`; else the deadline of each"
    )
    servico: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(None, description="else its name")
    congelar: Congelar | None = None

    @field_validator("objetivo", mode="before")
    @classmethod
    def _share(cls, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
            raise ValueError(f"{value!r} is no target: allowed is {TARGET_RULE}")
        return float(value)

    @model_validator(mode="after")
    def _fits(self) -> Objetivo:
        if self.destino is not None and self.indicador.of_runs:
            raise ValueError(f"destino goes with indicators of tickets, not with {self.indicador.value}")
        if self.limite_s is not None and not self.indicador.value.endswith("_no_prazo"):
            raise ValueError(f"limite_s goes with indicators in time, not with {self.indicador.value}")
        return self

    def slo(self, name: str) -> Slo:
        """`name` is the one inside, with its tenant."""
        freeze = self.congelar
        return Slo(
            name,
            self.indicador,
            self.objetivo,
            timedelta(days=self.janela_dias),
            self.servico or local_name(name),
            self.tipo,
            self.destino,
            None if self.limite_s is None else timedelta(seconds=self.limite_s),
            None if freeze is None else FreezeRule(freeze.abaixo, freeze.acima, tuple(freeze.acoes)),
        )


def parse(value: Any) -> Objetivo:
    """A decoded JSON value as an objective; WireError lists every fault and where it is."""
    try:
        return Objetivo.model_validate(value)
    except ValidationError as error:
        raise requests.invalid(error) from None


def read(body: bytes) -> Objetivo:
    """An objective that was stored."""
    return Objetivo.model_validate(strict_json.loads_trusted(body))


def written(one: Objetivo) -> dict[str, Any]:
    return one.model_dump(mode="json", exclude_none=True)


def record_of(kind: AlertKind) -> str:
    """The record that an alert travels as."""
    return _TOPIC_OF.get(kind, ALERT)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def deadline_record(alert: DeadlineAlert, now: datetime) -> dict[str, Any]:
    """A deadline that is near, at risk or missed."""
    run, time = alert.run, alert.time
    common = {"workflow_id": run.workflow_id, "correlation_id": local_name(run.name), "ticket_id": alert.ticket}
    if alert.kind is AlertKind.MISSED:
        return {
            "violation_id": alert.id,
            "event_type": "VIOLATION",
            "violation_type": alert.kind.value,
            "severity": "CRITICAL" if run.severe or alert.ticket is None else "WARNING",
            "service_name": alert.destination or run.service,
            **common,
            "sla_deadline": _ms(time.due),
            "actual_completion": _ms(alert.at),
            "delay_ms": max(0, _ms(alert.at) - _ms(time.due)),
            "budget_remaining": None,
            "metadata": {
                "status": "timeout",
                "retry_count": max(0, alert.attempts - 1),
                "duration_source": "persisted",
            },
            "timestamp": _ms(alert.at),
        }
    return {
        "alert_id": alert.id,
        "event_type": "ALERT",
        "alert_type": alert.kind.value,
        "severity": "CRITICAL" if run.severe else "WARNING",
        "service_name": alert.destination or run.service,
        "workflow_id": run.workflow_id,
        "timestamp": _ms(alert.at),
        "context": {
            **common,
            "remaining_seconds": max(0.0, round((time.due - now).total_seconds(), 3)),
            "percent_consumed": round(100 * min(1.0, max(0.0, time.used(now))), 1),
            "sla_deadline": _ms(time.due),
        },
    }


def budget_view(slo: Slo, budget: Budget) -> dict[str, Any]:
    """A budget as the API shows it; shares of 1."""
    return {
        "status": budget.status.value,
        "restante": None if budget.remaining is None else round(budget.remaining, 6),
        "bons": budget.counted.good,
        "ruins": budget.counted.bad,
        "queimas": [
            {
                "horas": one.hours,
                "taxa": None if one.rate is None else round(one.rate, 4),
                "nivel": one.level.value,
                "esgota_em_h": None if one.exhaustion_hours is None else round(one.exhaustion_hours, 2),
            }
            for one in budget.burns
        ],
        "disparos": list(budget.firing),
    }


def budget_record(slo: Slo, budget: Budget, id: str, now: datetime) -> dict[str, Any]:
    """A budget as it travels on its topic; percent, 0 to 100."""
    counted, remaining = budget.counted, budget.remaining
    ratio = counted.error_ratio
    return {
        "budget_id": id,
        "slo_id": local_name(slo.name),
        "service_name": slo.service,
        "event_type": "budget.updated",
        "calculated_at": _ms(now),
        "window_start": _ms(now - slo.window),
        "window_end": _ms(now),
        "sli_value": None if ratio is None else round(1 - ratio, 6),
        "slo_target": slo.target,
        "error_budget_total": round(100 * (1 - slo.target), 6),
        "error_budget_consumed": None if remaining is None else round(100 * (1 - remaining), 4),
        "error_budget_remaining": None if remaining is None else round(100 * remaining, 4),
        "status": budget.status.value,
        "burn_rates": [
            {
                "window_hours": one.hours,
                "rate": one.rate,
                "level": one.level.value,
                "estimated_exhaustion_hours": one.exhaustion_hours,
            }
            for one in budget.burns
        ],
        "violations_count": counted.bad,
        "metadata": {"events": counted.total},
    }


def slo_alert_record(
    slo: Slo, kind: AlertKind, id: str, budget: Budget, severity: str, now: datetime
) -> dict[str, Any]:
    """A budget that is nearly used up, or burns too fast."""
    return {
        "alert_id": id,
        "event_type": "ALERT",
        "alert_type": kind.value,
        "severity": severity,
        "service_name": slo.service,
        "workflow_id": None,
        "timestamp": _ms(now),
        "context": {
            "slo_id": local_name(slo.name),
            "service_name": slo.service,
            "budget_remaining": budget.remaining,
            "status": budget.status.value,
            "burn_rates": [{"window_hours": one.hours, "rate": one.rate} for one in budget.burns],
        },
    }


def freeze_record(slo: Slo, kind: AlertKind, id: str, since: datetime, budget: Budget, now: datetime) -> dict[str, Any]:
    """A freeze that begins or ends. `policy_id` is the same for both."""
    assert slo.freeze is not None
    active = kind is AlertKind.FROZEN
    left = budget.remaining
    share = "?" if left is None else f"{left:.0%}"
    return {
        "event_id": id,
        "policy_id": alert_id(slo.name, "freeze"),
        "event_type": "freeze.activated" if active else "freeze.resolved",
        "slo_id": local_name(slo.name),
        "service_name": slo.service,
        "action": list(slo.freeze.actions),
        "triggered_at": _ms(since),
        "resolved_at": None if active else _ms(now),
        "trigger_reason": f"{share} of the error budget of {local_name(slo.name)} is left",
        "budget_remaining_percent": None if left is None else round(100 * left, 4),
        "burn_rate": budget.burns[0].rate,
        "active": active,
    }
