"""What workers declare about the parameters of their orders, as the API shows it."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field


class DeclaredSchema(BaseModel):
    fila: str
    parametros: dict[str, Any]


class ParameterSchema(BaseModel):
    """The JSON Schema of the parameters of a queue's orders."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"parametros": {"type": "object", "properties": {"canal": {"type": "string"}}}}]
        },
    )
    parametros: dict[str, Any] = Field(
        description="JSON Schema; references stay inside of it; at most 64 KiB",
        validation_alias=AliasChoices("parametros", "params"),
    )
