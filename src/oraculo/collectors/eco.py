"""The collector `eco`: gives back what it was asked with.

It fetches nothing and needs no network, so a request to it goes through wherever Oráculo runs: for a first try, or to
check an installation.
"""

from __future__ import annotations

from typing import Any


def eco(parametros: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters as the only item."""
    return [parametros]
