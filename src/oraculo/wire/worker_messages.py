"""What workers say about themselves: that they are there, how they are, and that they go.

The same documents come over HTTP and, with `tipo` beside them, as messages of the control queue.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import orjson
from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from oraculo.core.vocabulary import SecurityLevel
from oraculo.errors import WireError
from oraculo.wire import names, strict_json

WORKER_NAME_MAX_CHARS = 128
RUNNING_MAX_TICKETS = 1000
TELEMETRY_MAX_BYTES = 4096
CONTROL_KINDS = ("registro", "batimento", "saida")

Word = Annotated[str, Field(min_length=1, max_length=100)]
Text = Annotated[str, Field(max_length=200)]
WorkerName = Annotated[str, Field(min_length=1, max_length=WORKER_NAME_MAX_CHARS)]


def _either(pt: str, en: str) -> AliasChoices:
    return AliasChoices(pt, en)


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class RunningTicket(_Said):
    """A ticket that a worker has now."""

    ticket_id: Annotated[str, Field(min_length=1, max_length=100)]
    tentativa: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(
        1, validation_alias=_either("tentativa", "attempt")
    )
    inicio: AwareDatetime | None = Field(None, validation_alias=_either("inicio", "started_at"))
    progresso: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = Field(
        None, description="percent", validation_alias=_either("progresso", "progress")
    )


class Heartbeat(_Said):
    """How a worker is. What it says about itself is shown; what it does is counted from its answers."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"examples": [{"em_andamento": 1, "executando": [{"ticket_id": "0k3…-0"}]}]},
    )
    em_andamento: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] | None = Field(
        None, description="orders that it holds", validation_alias=_either("em_andamento", "in_flight")
    )
    executando: Annotated[list[RunningTicket], Field(max_length=RUNNING_MAX_TICKETS)] = Field(
        default_factory=list, validation_alias=_either("executando", "running")
    )
    telemetria: dict[str, Any] = Field(default_factory=dict, validation_alias=_either("telemetria", "telemetry"))

    @field_validator("telemetria")
    @classmethod
    def _small(cls, value: dict[str, Any]) -> dict[str, Any]:
        size = len(orjson.dumps(value))
        if size > TELEMETRY_MAX_BYTES:
            raise ValueError(f"it has {size} bytes; at most {TELEMETRY_MAX_BYTES} are allowed")
        return value


class HostHeartbeat(Heartbeat):
    """How one of the workers of a host is, as their host says it."""

    model_config = ConfigDict(
        extra="forbid", populate_by_name=True, json_schema_extra={"examples": [{"worker": "youtube-1"}]}
    )
    worker: WorkerName


class Registration(Heartbeat):
    """A worker that is there. The same `worker` again takes its place."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "worker": "youtube-1",
                    "filas": ["escavador_youtube"],
                    "capacidades": ["python"],
                    "concorrencia": 4,
                    "recursos": {"cpu_m": 2000, "memoria_mb": 4096},
                    "versao": "1.4.0",
                    "host": "n1",
                }
            ]
        },
    )
    worker: WorkerName
    filas: Annotated[list[str], Field(max_length=200)] = Field(
        default_factory=list,
        description="queues that it takes orders from",
        validation_alias=_either("filas", "queues"),
    )
    capacidades: Annotated[list[Word], Field(max_length=100)] = Field(
        default_factory=list, validation_alias=_either("capacidades", "capabilities")
    )
    concorrencia: Annotated[int, Field(ge=1, le=100_000, strict=True)] = Field(
        1, description="orders that it works on at once", validation_alias=_either("concorrencia", "concurrency")
    )
    recursos: Annotated[dict[Word, Annotated[int, Field(ge=0)]], Field(max_length=20)] = Field(
        default_factory=dict, description="cpu_m, memoria_mb, gpu, …", validation_alias=_either("recursos", "resources")
    )
    rotulos: Annotated[dict[Word, Text], Field(max_length=50)] = Field(
        default_factory=dict, validation_alias=_either("rotulos", "labels")
    )
    versao: Text = Field("", validation_alias=_either("versao", "version"))
    host: Text = ""
    nivel: SecurityLevel = Field(
        SecurityLevel.INTERNAL,
        description="the highest level of tickets that it may do",
        validation_alias=_either("nivel", "security_level"),
    )
    cancelavel: bool = Field(
        False,
        description="it stops work that it is told to stop",
        validation_alias=_either("cancelavel", "cancellable"),
    )
    fila_propria: str | None = Field(
        None, description="a queue that it alone takes from", validation_alias=_either("fila_propria", "own_queue")
    )
    ofertas: bool = Field(
        False,
        description="over a broker: orders are offered to it in its own queue, and it takes none from others",
        validation_alias=_either("ofertas", "offers"),
    )
    timeout_s: Annotated[float, Field(ge=5, le=3600, allow_inf_nan=False)] | None = Field(
        None, description="silent for so long it is lost; ORACULO_WORKER_TIMEOUT_S when it is not given"
    )

    @field_validator("worker")
    @classmethod
    def _printable(cls, value: str) -> str:
        if not value.isprintable() or value != value.strip():
            raise ValueError("a name has printable characters only, and no blanks around it")
        return value

    @model_validator(mode="after")
    def _has_own_queue(self) -> Self:
        if self.ofertas and self.fila_propria is None:
            raise ValueError("a worker that waits for offers (`ofertas`) names its own queue (`fila_propria`)")
        return self

    @field_validator("filas", "fila_propria")
    @classmethod
    def _queues(cls, value: list[str] | str | None) -> list[str] | str | None:
        for queue in [value] if isinstance(value, str) else value or ():
            if not names.is_queue_name(queue):
                raise ValueError(f"{queue[:40]!r} is no queue: {names.QUEUE_PATTERN}")
        return value


def read_control(raw: bytes) -> tuple[str, str, Registration | Heartbeat | None]:
    """Return (kind, worker, what it says) of a message of the control queue. WireError: it cannot be read."""
    value = strict_json.loads(raw)
    if not isinstance(value, dict):
        raise WireError("invalid_control", "a control message is a JSON object")
    kind, worker = value.pop("tipo", None), value.get("worker")
    if kind not in CONTROL_KINDS:
        raise WireError("invalid_control", f"tipo is {kind!r}; allowed: {', '.join(CONTROL_KINDS)}")
    if not isinstance(worker, str) or not worker or len(worker) > WORKER_NAME_MAX_CHARS:
        raise WireError("invalid_control", "worker names who sends it")
    try:
        if kind == "registro":
            return kind, worker, Registration.model_validate(value)
        value.pop("worker")
        return kind, worker, Heartbeat.model_validate(value) if kind == "batimento" else None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise WireError("invalid_control", f"{where}: {first['msg']}") from None


def beat_json(said: Heartbeat) -> bytes:
    """What is kept of a heartbeat, as JSON."""
    return strict_json.dumps(said.model_dump(include={"em_andamento", "executando", "telemetria"}))


def registration_json(said: Registration, actor: str, over: str) -> bytes:
    """What is kept of a registration, as JSON: by whom, and how its orders come to it."""
    body = said.model_dump(exclude={"worker", "em_andamento", "executando", "telemetria", "timeout_s"})
    return strict_json.dumps({**body, "ator": actor, "transporte": over})


WORKER_BODIES: list[type[BaseModel]] = [Registration, Heartbeat, HostHeartbeat]
