"""Policies: asked for what they say of inputs, many at once. Off, inside (Rego) and OPA are adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """What one package says of one input: its whole document, or why there is none."""

    value: Any = None
    error: str = ""
    kind: str = ""  # of the error: timeout, unavailable, evaluation, missing, circuit_open


@dataclass(frozen=True, slots=True)
class PolicyEngineStatus:
    """How an engine stands: `circuit` is closed, open or half_open; always closed where there is none."""

    circuit: str = "closed"
    error: str = ""
    restarts: int = 0


class PolicyEngine(Protocol):
    """`name` says which adapter it is."""

    name: str

    @property
    def version(self) -> str:
        """What tells these policies from others; empty when that cannot be known."""
        ...

    @property
    def sources(self) -> Mapping[str, str]:
        """The modules by name; empty when they cannot be read."""
        ...

    async def open(self) -> None:
        """Make it ready. PolicyError: policies that can never be asked, such as one that does not compile."""
        ...

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        """For each input (JSON text) a document of each package. Never raises on what policies do, and is bounded in
        time."""
        ...

    def status(self) -> PolicyEngineStatus: ...

    async def close(self) -> None: ...
