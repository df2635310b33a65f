"""The shapes of answers about keys, for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from oraculo.core.access import AccessRole, PrincipalKind, Scope


class ShownLimits(BaseModel):
    """How much a key may ask for; null: as much as it likes."""

    abertas: int | None
    por_segundo: float | None


class ShownKey(BaseModel):
    """A key without its secret. `situacao` is `ativa`, `expirada` or `revogada`."""

    id: str = Field(examples=["k7qmz2c4tb5x"])
    role: AccessRole
    tenant: str
    queues: list[str]
    nota: str
    public_key: str | None = Field(description="of the pair that its owner signs messages with")
    limites: ShownLimits
    criada_em: datetime
    criada_por: str
    expira_em: datetime | None
    revogada_em: datetime | None
    usada_em: datetime | None
    situacao: Literal["ativa", "expirada", "revogada"]


class MadeKey(ShownKey):
    """A key with its text, which is shown this once."""

    key: str = Field(examples=["orc_k7qmz2c4tb5x_" + "A" * 43])


class ShownKeys(BaseModel):
    keys: list[ShownKey]


class WhoAmI(BaseModel):
    ator: str
    tipo: PrincipalKind
    tenant: str
    scopes: list[Scope]
    queues: list[str] | None


KEY_MODELS: list[type[BaseModel]] = [ShownKey, MadeKey, ShownKeys, WhoAmI]
