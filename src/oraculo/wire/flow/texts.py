"""Maps of texts, which is all that Avro's maps here hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oraculo.wire import strict_json


def text_of(value: Any) -> str:
    """A text is itself, nothing is empty, everything else is written as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else strict_json.dumps(value).decode()


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: text_of(value) for key, value in values.items()}
