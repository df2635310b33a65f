"""Reading `parametros`: what a request may say, and one clear refusal for everything else.

Every refusal is a definitive `WorkError` with the code `parametro_invalido`: asking again cannot help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oraculo.collectors.dates import is_period
from oraculo.errors import WorkError

MAX_FEEDS = 200
MAX_TIMEOUT_S = 300.0


def invalid(message: str) -> WorkError:
    """The refusal, ready to raise."""
    return WorkError(message, codigo="parametro_invalido", definitivo=True)


def names(parametros: Mapping[str, Any], one: str, many: str) -> list[str]:
    """The text in `parametros[one]` and those in the list `parametros[many]`, in order, each once."""
    found: list[Any] = []
    if parametros.get(one) is not None:
        found.append(parametros[one])
    if parametros.get(many) is not None:
        several = parametros[many]
        if not isinstance(several, list):
            raise invalid(f"'{many}' deve ser uma lista de textos")
        found.extend(several)
    if not all(isinstance(name, str) and name.strip() for name in found):
        raise invalid(f"'{one}' e os elementos de '{many}' devem ser textos não vazios")
    unique = list(dict.fromkeys(name.strip() for name in found))
    if not unique:
        raise invalid(f"falta o parâmetro '{one}' (ou '{many}', uma lista)")
    if len(unique) > MAX_FEEDS:
        raise invalid(f"'{many}' tem {len(unique)} elementos; o máximo é {MAX_FEEDS}")
    return unique


def limit(parametros: Mapping[str, Any]) -> int | None:
    """`limite`: at most this many items per feed."""
    value = parametros.get("limite")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid("'limite' deve ser um inteiro maior que zero")
    return value


def period(parametros: Mapping[str, Any]) -> str | None:
    """`periodo`: a year, a month or a day."""
    value = parametros.get("periodo")
    if value is None:
        return None
    if not isinstance(value, str) or not is_period(value.strip()):
        raise invalid('\'periodo\' deve ser um ano, mês ou dia: "2025", "2025-10" ou "2025-10-14"')
    return value.strip()


def timeout_s(parametros: Mapping[str, Any]) -> float | None:
    """`timeout_s`: the longest that one feed may take."""
    value = parametros.get("timeout_s")
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise invalid("'timeout_s' deve ser um número de segundos")
    if not 0 < value <= MAX_TIMEOUT_S:
        raise invalid(f"'timeout_s' deve estar entre 0 e {MAX_TIMEOUT_S:g}")
    return float(value)


def text(parametros: Mapping[str, Any], name: str) -> str | None:
    """An optional text; blank counts as absent."""
    value = parametros.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise invalid(f"'{name}' deve ser um texto")
    return value.strip() or None
