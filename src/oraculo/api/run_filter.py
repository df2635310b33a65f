"""Which orchestrations are meant: the conditions of the list, and of what is done to many."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from oraculo.api.problems import invalid
from oraculo.core.vocabulary import RUN_STATUSES, Kind, Status
from oraculo.errors import WireError
from oraculo.plans.words import FIELDS_TO_PORTUGUESE, value_to_portuguese
from oraculo.ports.catalogue import Query as StoreQuery
from oraculo.wire import mensagem, names

_STATUSES = [status.value for status in RUN_STATUSES]
# Nothing began before or after; what is beyond would not fit into the numbers that stores use.
_EARLIEST, _LATEST = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class RunFilter(BaseModel):
    """The conditions that an orchestration has to meet, all of them."""

    model_config = ConfigDict(extra="forbid")
    place: ClassVar[str] = "filtro"  # how faults name it
    status: list[Annotated[str, WithJsonSchema({"type": "string", "enum": _STATUSES})]] = Field(
        default_factory=list, description=f"repeated or separated by commas; of {', '.join(_STATUSES)}, or in English"
    )
    fonte: Annotated[str, Field(pattern=names.NAME_PATTERN)] | None = None
    executador: Annotated[str, Field(pattern=names.NAME_PATTERN)] | None = None
    rotulo: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(None, description="one of its labels")
    pausada: bool | None = Field(None, description="only those that are paused, or are not")
    since: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})] | None = Field(
        None, description="began at or after; ISO 8601 with a zone"
    )
    until: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})] | None = Field(
        None, description="began before; ISO 8601 with a zone"
    )
    texto: Annotated[str, Field(max_length=128)] | None = Field(None, description="how the correlation_id begins")

    @model_validator(mode="before")
    @classmethod
    def _in_portuguese(cls, given: Any) -> Any:
        """Its words may be English ones."""
        if not isinstance(given, dict):
            return given
        return {
            name if name in cls.model_fields else FIELDS_TO_PORTUGUESE.get(name, name): given[name] for name in given
        }

    @field_validator("status", mode="before")
    @classmethod
    def _one_or_many(cls, given: Any) -> Any:
        return [given] if isinstance(given, str) else given

    def statuses(self) -> list[Status]:
        given = [value_to_portuguese("status", part.strip()) for text in self.status for part in text.split(",")]
        unknown = [part for part in given if part not in _STATUSES]
        if unknown:
            raise invalid(
                f"{self.place}.status", f"unknown status {unknown[0][:40]!r}; allowed: {', '.join(_STATUSES)}"
            )
        return [Status(part) for part in given]

    def destino(self, queues: names.QueueNames) -> str | None:
        if self.fonte is not None and self.executador is not None:
            raise invalid(f"{self.place}.executador", "give fonte or executador, not both")
        if self.executador is not None:
            return queues.of(Kind.EXECUCAO, self.executador)
        return None if self.fonte is None else queues.of(Kind.COLETA, self.fonte)

    def wanted(self, queues: names.QueueNames) -> StoreQuery:
        """As the store takes it, without a cursor."""
        return StoreQuery(
            status=self.statuses(),
            destino=self.destino(queues),
            label=self.rotulo,
            paused=self.pausada,
            since=_instant(f"{self.place}.since", self.since),
            until=_instant(f"{self.place}.until", self.until),
            text=self.texto,
        )


def _instant(name: str, given: str | None) -> datetime | None:
    if given is None:
        return None
    text = given.replace(" ", "+")  # a plus that was not percent-encoded
    try:
        mensagem.check_timestamp(name, text)
        return min(max(datetime.fromisoformat(text).astimezone(UTC), _EARLIEST), _LATEST)
    except (WireError, OverflowError):
        raise invalid(name, "allowed: ISO 8601 with a zone, like 2025-10-14T12:00:00Z") from None
