"""The request: what a user asks for, validated, and the plan it becomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from oraculo.core.fan_in import POLICIES, REQUEST_MODES
from oraculo.core.named_tasks import named_in
from oraculo.core.plan import DOUBLING, Backoff, NoticeTargets, Parent, Plan, Task, stages
from oraculo.core.vocabulary import FanIn, Kind
from oraculo.errors import PlanError, WireError
from oraculo.plans import limits, reader, writer
from oraculo.plans.faults import Fault, FaultCode
from oraculo.plans.model import NotifyTargets, PlanDocument, UniqueRule
from oraculo.plans.words import uses_english
from oraculo.wire import named_children, named_plans, names, strict_json
from oraculo.wire.unique_rules import Unica, unica_of
from oraculo.wire.unknown_fields import EXTRA_FIELD, unknown_field

MAX_SECONDS = 30 * 24 * 3600.0
NO_NOTICE = NoticeTargets()

Name = Annotated[str, Field(pattern=names.NAME_PATTERN, examples=["youtube"])]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False, strict=True)]
Label = Annotated[str, Field(min_length=1, max_length=100, examples=["cliente:acme"])]


def _all_different(labels: list[str]) -> list[str]:
    if len(set(labels)) < len(labels):
        raise PydanticCustomError("twice", "a label stands here twice")
    return labels


Labels = Annotated[list[Label], Field(max_length=limits.MAX_LABELS), AfterValidator(_all_different)]
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


if TYPE_CHECKING:
    Mode = str
else:
    Mode = Literal[REQUEST_MODES]  # the words of the policies that a request may name


class FanInRule(_Model):
    modo: Mode = FanIn.TODOS.value
    minimo: Annotated[int, Field(ge=1, strict=True)] | None = None


class Notificar(_Model):
    webhook: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    fila: Annotated[str, Field(pattern=names.QUEUE_PATTERN)] | None = None


class Requisicao(_Model):
    """`coletas`/`execucoes`; or `tarefas`, named tasks of a plan of any shape; or `tipo`, a task type that stands for
    them."""

    # The document of `tarefas`, with all that goes with them, once it is known. A private attribute of pydantic's would
    # cost every request, and few have this.
    __slots__ = ("_document",)

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
                {
                    "tarefas": {
                        "videos": {"fonte": "youtube", "parametros": {"canal": "x"}},
                        "noticias": {"fonte": "blog", "opcional": True},
                        "relatorio": {"executador": "relatorio", "depende": ["videos", "noticias"]},
                    }
                },
            ]
        },
    )

    coletas: list[Coleta] = Field(default_factory=list)
    execucoes: list[Execucao] = Field(default_factory=list)
    tarefas: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    entrada: dict[str, Any] | None = None
    saida: Any = None
    tipo: Name | None = None
    parametros: dict[str, Any] | None = None
    timeout_s: Seconds | None = None
    fan_in: FanInRule | None = None
    correlation_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    notificar: Notificar | None = None
    rotulos: Labels | None = None
    unica: Unica | None = None


class Defaults(BaseModel):
    """What a request that does not say gets."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    timeout_s: float = 3600.0
    ticket_timeout_s: float = 60.0
    max_tentativas: int = 3
    retry_base_s: float = 1.0
    retry_cap_s: float = 60.0
    retry_factor: float = DOUBLING
    queues: names.QueueNames = names.USUAL

    def within(self, tenant: str) -> Defaults:
        """The same for requests of another tenant: they go to its queues."""
        return self if tenant == self.queues.tenant else self.model_copy(update={"queues": self.queues.within(tenant)})


def parse(value: Any) -> Requisicao:
    """A decoded JSON value → request, or WireError that lists every fault and where it is, in the words that were
    sent. A request may have English words; it is kept in Portuguese ones."""
    if named_plans.is_plan(value):
        document = named_plans.load(value)
        request = _validated(writer.write(document))
        return _keep(request, document)
    try:
        return Requisicao.model_validate(value)
    except ValidationError as error:
        if not uses_english(value):
            raise invalid(error, model=Requisicao) from None
    return _validated(writer.write(reader.load(value)), value)


def _validated(value: Any, sent: Any = None) -> Requisicao:
    try:
        return Requisicao.model_validate(value)
    except ValidationError as error:
        raise invalid(error, sent=sent, model=Requisicao) from None


def _plan_document(request: Requisicao) -> PlanDocument | None:
    """The document of a request with `tarefas`, also of one that was made in Python and not read."""
    if request.tarefas is None:
        return None
    document: PlanDocument | None = getattr(request, "_document", None)
    if document is None:
        document = named_plans.load(request.model_dump(mode="json", exclude_defaults=True))
        _keep(request, document)
    return document


def _keep(request: Requisicao, document: PlanDocument) -> Requisicao:
    """The request, which knows its document now."""
    object.__setattr__(request, "_document", document)
    return request


def written(request: Requisicao) -> dict[str, Any]:
    """The request as JSON data, in Portuguese words; `parse` gives it back."""
    document = _plan_document(request)
    return request.model_dump(mode="json", exclude_none=True) if document is None else writer.write(document)


def invalid(
    error: ValidationError,
    code: str = "invalid_request",
    under: tuple[str, ...] = (),
    sent: Any = None,
    model: type[BaseModel] | None = None,
) -> WireError:
    """`under`: where in the body the value was that is not valid. `sent`: the body, when its words were translated.
    `model`: what it should have been, so that a field that it has not can be told from one that was meant."""
    faults = [
        Fault(
            (*under, *item["loc"]),
            FaultCode.WRONG_KIND,
            unknown_field(model, item["loc"]) if item["type"] == EXTRA_FIELD else item["msg"],
        )
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:50]
    ]
    places = [fault if sent is None else reader.as_sent(fault, sent) for fault in faults]
    errors = [{"campo": fault.where, "mensagem": fault.message} for fault in places]
    detail = "; ".join(f"{item['campo']}: {item['mensagem']}" for item in errors[:5])
    return WireError(code, detail, errors)


def expand(request: Requisicao, template: Requisicao) -> Requisicao:
    """A request that names a task type → the template's tasks, each with the request's parameters on top of its own."""
    given = request.parametros or {}
    document = _plan_document(template)
    if document is not None:
        return _expand_plan(request, template, document)
    return template.model_copy(
        update={
            "coletas": [c.model_copy(update={"parametros": {**c.parametros, **given}}) for c in template.coletas],
            "execucoes": [e.model_copy(update={"parametros": {**e.parametros, **given}}) for e in template.execucoes],
            "tipo": request.tipo,
            "timeout_s": request.timeout_s or template.timeout_s,
            "fan_in": request.fan_in or template.fan_in,
            "correlation_id": request.correlation_id,
            "notificar": request.notificar or template.notificar,
            "rotulos": list(_labels(template, request)) or None,
            "unica": request.unica or template.unica,
        }
    )


def _labels(*requests: Requisicao) -> tuple[str, ...]:
    """The labels of a task type and of the request that names it, each once."""
    found = tuple(dict.fromkeys(label for one in requests for label in one.rotulos or ()))
    if len(found) > limits.MAX_LABELS:
        raise PlanError(f"{len(found)} labels with those of the task type; at most {limits.MAX_LABELS}", "rotulos")
    return found


def _expand_plan(request: Requisicao, template: Requisicao, document: PlanDocument) -> Requisicao:
    if request.fan_in is not None:
        raise PlanError(f"the task type {request.tipo!r} is a plan; its tasks have fan_in of their own", "fan_in")
    notify, unique = request.notificar or template.notificar, request.unica or template.unica
    options = replace(
        document.options,
        timeout_s=request.timeout_s or template.timeout_s,
        notify=None if notify is None else NotifyTargets(notify.webhook, notify.fila),
        labels=_labels(template, request),
        unique=None if unique is None else UniqueRule(unique.modo, unique.janela_s, unique.chave),
    )
    known = {"tipo": request.tipo, "timeout_s": options.timeout_s, "notificar": notify, "unica": unique}
    expanded = template.model_copy(update=known)
    given = {**document.input, **(request.parametros or {})}  # laid over the plan's own
    return _keep(expanded, replace(document, input=given, options=options))


def check_shape(request: Requisicao) -> None:
    """What the types alone do not say."""
    if request.tipo is not None and (request.coletas or request.execucoes):
        raise PlanError("tipo stands for coletas and execucoes; give one or the other", "tipo")
    if request.tarefas is None and (request.entrada is not None or request.saida is not None):
        raise PlanError("entrada and saida go with tarefas", "entrada" if request.entrada is not None else "saida")
    if request.tipo is None and request.parametros is not None:
        raise PlanError("parametros at the top goes with tipo; tasks have their own", "parametros")


def plan_of(request: Requisicao, defaults: Defaults) -> Plan:
    document = _plan_document(request)
    if document is not None:
        return replace(named_plans.plan_of(document, defaults), tipo=request.tipo)
    rule, notify = request.fan_in, request.notificar
    return stages(
        [_task(Kind.COLETA, c.fonte, c, defaults) for c in request.coletas],
        [_task(Kind.EXECUCAO, e.executador, e, defaults) for e in request.execucoes],
        mode=FanIn.TODOS if rule is None else FanIn(rule.modo),
        minimo=None if rule is None else rule.minimo,
        timeout=_seconds(request.timeout_s or defaults.timeout_s),
        backoff=_backoff(defaults.retry_base_s, defaults.retry_cap_s, defaults.retry_factor),
        notify=NO_NOTICE if notify is None else _notice_targets(notify, defaults),
        tipo=request.tipo,
        labels=_labels(request) if request.rotulos else (),
    )


def _notice_targets(notify: Notificar, defaults: Defaults) -> NoticeTargets:
    return NoticeTargets(notify.webhook, defaults.queues.meant(notify.fila) if notify.fila else None)


@lru_cache(maxsize=1024)  # requests say the same few durations again and again
def _seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@lru_cache(maxsize=64)
def _backoff(base_s: float, cap_s: float, factor: float) -> Backoff:
    return Backoff(timedelta(seconds=base_s), timedelta(seconds=cap_s), factor)


def _task(kind: Kind, name: str, item: Coleta | Execucao, defaults: Defaults) -> Task:
    return Task(
        kind,
        name,
        defaults.queues.of(kind, name),
        _parameters(item.parametros) if item.parametros else b"{}",
        _seconds(item.timeout_s or defaults.ticket_timeout_s),
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


def child_fingerprint(request: dict[str, Any], parent: Parent) -> str:
    """Of the request of a child: no other run has it, not even of the same request."""
    whose = [parent.run, parent.position, parent.attempt]
    return blake2b(strict_json.canonical([request, whose]), digest_size=16).hexdigest()


def child_types(request: Requisicao) -> dict[str, str]:
    """The task types that children of a request are made from, and children of theirs that it says itself; each with a
    place that names it."""
    document = _plan_document(request)
    return {} if document is None else dict(named_children.types_in(document))


def request_of(plan: Plan) -> dict[str, Any]:
    """The request that makes this plan again. PlanError when none does."""
    named = named_in(plan)
    if named is not None:
        return named_plans.request_of(plan, named)
    rule = plan.gates[0]
    if not plan.profile.requestable or not all(POLICIES[gate.mode].in_requests for gate in plan.gates):
        raise PlanError("it was made from a graph of tasks; there is no request of coletas and execucoes for it")
    request: dict[str, Any] = {
        "coletas": [_item("fonte", task) for task in plan.tasks if task.kind is Kind.COLETA],
        "execucoes": [_item("executador", task) for task in plan.tasks if task.kind is Kind.EXECUCAO],
        "fan_in": {"modo": rule.mode.value},
    }
    if plan.timeout is not None:
        request["timeout_s"] = plan.timeout.total_seconds()
    if POLICIES[rule.mode].takes_minimum:
        request["fan_in"]["minimo"] = rule.needed
    notify = {name: value for name, value in (("webhook", plan.notify.webhook), ("fila", plan.notify.queue)) if value}
    unique = None if plan.unique is None else unica_of(plan.unique)
    more = {"notificar": notify, "rotulos": list(plan.labels), "unica": unique}
    return {**request, **{word: value for word, value in more.items() if value}}


def _item(key: str, task: Task) -> dict[str, Any]:
    return {
        key: task.name,
        "parametros": strict_json.loads_trusted(task.parametros),
        "timeout_s": task.timeout.total_seconds(),
        "max_tentativas": task.max_attempts,
    }
