"""Requests that exist once, as they say so: the rule of a request, and what it becomes."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from oraculo.core.uniqueness import DIGEST, GIVEN, UniqueMode, Uniqueness, given_key
from oraculo.plans import limits
from oraculo.wire import strict_json


class Unica(BaseModel):
    """A request that exists once: while an equal one is open (`aberta`), for `janela_s` seconds after one began
    (`janela`), or for ever (`sempre`). Without `chave`, equal requests are those that say the same."""

    model_config = ConfigDict(extra="forbid")

    modo: UniqueMode
    janela_s: Annotated[float, Field(gt=0, le=limits.WAIT_MAX_SECONDS, allow_inf_nan=False, strict=True)] | None = None
    chave: Annotated[str, Field(pattern=r"^[^\x00]{1,100}$", examples=["cliente-42"])] | None = None

    @model_validator(mode="after")
    def _window(self) -> Unica:
        if (self.modo is UniqueMode.WINDOW) is (self.janela_s is None):
            message = "needs janela_s" if self.janela_s is None else "has no janela_s"
            raise PydanticCustomError("window", f"the mode {self.modo.value} {message}")
        return self


def uniqueness(rule: Unica | None, request: BaseModel) -> Uniqueness | None:
    """That a request exists once, when it or its task type says so. `request`: as it was sent."""
    if rule is None:
        return None
    window = None if rule.janela_s is None else timedelta(seconds=rule.janela_s)
    if rule.chave is not None:
        return Uniqueness(f"{GIVEN}{rule.chave}", rule.modo, window)
    value = request.model_dump(mode="json", exclude={"correlation_id", "unica"}, exclude_none=True)
    return Uniqueness(DIGEST + blake2b(strict_json.canonical(value), digest_size=16).hexdigest(), rule.modo, window)


def unica_of(unique: Uniqueness) -> dict[str, Any]:
    """What a request said that exists once."""
    window, key = unique.window, given_key(unique)
    return {
        "modo": unique.mode.value,
        **({} if window is None else {"janela_s": window.total_seconds()}),
        **({} if key is None else {"chave": key}),
    }
