"""The request: what a user asks for, validated, and the plan it becomes."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oraculo.core.plan import Backoff, Notify, Plan, Task, stages
from oraculo.core.vocabulary import FanIn, Kind
from oraculo.errors import PlanError, WireError
from oraculo.wire import names, strict_json

MAX_SECONDS = 30 * 24 * 3600.0

Name = Annotated[str, Field(pattern=names.NAME_PATTERN, examples=["youtube"])]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False, strict=True)]
Attempts = Annotated[int, Field(ge=1, le=100, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Coleta(_Model):
    fonte: Name
    parametros: dict[str, Any] = Field(default_factory=dict)
    timeout_s: Seconds | None = None
    max_tentativas: Attempts | None = None


class Execucao(_Model):
    executador: Name
    parametros: dict[str, Any] = Field(default_factory=dict)
    timeout_s: Seconds | None = None
    max_tentativas: Attempts | None = None


class FanInRule(_Model):
    modo: Literal["todos", "quorum", "primeiro"] = "todos"
    minimo: Annotated[int, Field(ge=1, strict=True)] | None = None


class Notificar(_Model):
    webhook: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    fila: Annotated[str, Field(pattern=names.QUEUE_PATTERN)] | None = None


class Requisicao(_Model):
    """Either `coletas`/`execucoes`, or `tipo`, a task type that stands for them."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "coletas": [
                        {"fonte": "youtube", "parametros": {"canal": "x"}, "timeout_s": 30, "max_tentativas": 3},
                        {"fonte": "blog", "parametros": {"url": "https://example.com/feed.xml"}},
                    ],
                    "execucoes": [{"executador": "relatorio", "parametros": {}}],
                    "timeout_s": 60,
                    "fan_in": {"modo": "todos"},
                },
                {"tipo": "relatorio_semanal", "parametros": {"canal": "x"}},
            ]
        },
    )

    coletas: list[Coleta] = Field(default_factory=list)
    execucoes: list[Execucao] = Field(default_factory=list)
    tipo: Name | None = None
    parametros: dict[str, Any] | None = None
    timeout_s: Seconds | None = None
    fan_in: FanInRule | None = None
    correlation_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    notificar: Notificar | None = None


class Defaults(BaseModel):
    """What a request that does not say gets."""

    timeout_s: float = 3600.0
    ticket_timeout_s: float = 60.0
    max_tentativas: int = 3
    retry_base_s: float = 1.0
    retry_cap_s: float = 60.0


def parse(value: Any) -> Requisicao:
    """A decoded JSON value → request, or WireError that lists every fault and where it is."""
    try:
        return Requisicao.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError, code: str = "invalid_request", under: tuple[str, ...] = ()) -> WireError:
    """`under`: where in the body the value was that is not valid."""
    errors = [
        {"campo": ".".join(str(part) for part in (*under, *item["loc"])) or "(corpo)", "mensagem": item["msg"]}
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:50]
    ]
    detail = "; ".join(f"{item['campo']}: {item['mensagem']}" for item in errors[:5])
    return WireError(code, detail, errors)


def expand(request: Requisicao, template: Requisicao) -> Requisicao:
    """A request that names a task type → the template's tasks, each with the request's parameters on top of its own."""
    given = request.parametros or {}
    return template.model_copy(
        update={
            "coletas": [c.model_copy(update={"parametros": {**c.parametros, **given}}) for c in template.coletas],
            "execucoes": [e.model_copy(update={"parametros": {**e.parametros, **given}}) for e in template.execucoes],
            "tipo": request.tipo,
            "timeout_s": request.timeout_s or template.timeout_s,
            "fan_in": request.fan_in or template.fan_in,
            "correlation_id": request.correlation_id,
            "notificar": request.notificar or template.notificar,
        }
    )


def check_shape(request: Requisicao) -> None:
    """What the types alone do not say."""
    if request.tipo is not None and (request.coletas or request.execucoes):
        raise PlanError("tipo stands for coletas and execucoes; give one or the other", "tipo")
    if request.tipo is None and request.parametros is not None:
        raise PlanError("parametros at the top goes with tipo; tasks have their own", "parametros")


def plan_of(request: Requisicao, defaults: Defaults) -> Plan:
    rule = request.fan_in or FanInRule()
    notify = request.notificar or Notificar()
    return stages(
        [_task(Kind.COLETA, c.fonte, c, defaults) for c in request.coletas],
        [_task(Kind.EXECUCAO, e.executador, e, defaults) for e in request.execucoes],
        mode=FanIn(rule.modo),
        minimo=rule.minimo,
        timeout=timedelta(seconds=request.timeout_s or defaults.timeout_s),
        backoff=Backoff(timedelta(seconds=defaults.retry_base_s), timedelta(seconds=defaults.retry_cap_s)),
        notify=Notify(notify.webhook, notify.fila),
        tipo=request.tipo,
    )


def _task(kind: Kind, name: str, item: Coleta | Execucao, defaults: Defaults) -> Task:
    return Task(
        kind,
        name,
        names.queue_of(kind, name),
        _parameters(item.parametros) if item.parametros else b"{}",
        timedelta(seconds=item.timeout_s or defaults.ticket_timeout_s),
        item.max_tentativas or defaults.max_tentativas,
    )


def _parameters(parametros: dict[str, Any]) -> bytes:
    try:
        return strict_json.compact(parametros)
    except (TypeError, ValueError) as error:  # from Python only: what came as JSON can be written as JSON
        raise PlanError(f"parametros cannot be written as JSON: {error}", "parametros") from None


def fingerprint(request: Requisicao) -> str:
    """The same for the same request, whatever the order of its keys; the correlation_id does not count."""
    value = request.model_dump(mode="json", exclude={"correlation_id"}, exclude_none=True)
    return blake2b(strict_json.canonical(value), digest_size=16).hexdigest()


def request_of(plan: Plan) -> dict[str, Any]:
    """The request that makes this plan again. PlanError when no collect → execute request does."""
    rule = plan.gates[0]
    if plan.flow is not None or any(gate.mode is FanIn.TODAS_OK for gate in plan.gates):
        raise PlanError("it was made from a graph of tasks; there is no request of coletas and execucoes for it")
    request: dict[str, Any] = {
        "coletas": [_item("fonte", task) for task in plan.tasks if task.kind is Kind.COLETA],
        "execucoes": [_item("executador", task) for task in plan.tasks if task.kind is Kind.EXECUCAO],
        "timeout_s": plan.timeout.total_seconds(),
        "fan_in": {"modo": rule.mode.value},
    }
    if rule.mode is FanIn.QUORUM:
        request["fan_in"]["minimo"] = rule.needed
    notify = {name: value for name, value in (("webhook", plan.notify.webhook), ("fila", plan.notify.queue)) if value}
    return {**request, "notificar": notify} if notify else request


def _item(key: str, task: Task) -> dict[str, Any]:
    return {
        key: task.name,
        "parametros": strict_json.loads_trusted(task.parametros),
        "timeout_s": task.timeout.total_seconds(),
        "max_tentativas": task.max_attempts,
    }
