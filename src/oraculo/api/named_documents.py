"""What routes of documents that users keep under a name have in common: schedules, objectives."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Path, Request

from oraculo.api import body, problems
from oraculo.api.problems import invalid
from oraculo.wire import names

NAME_MAX_CHARS = 80
_PATTERN = {"pattern": names.NAME_PATTERN, "maxLength": NAME_MAX_CHARS}
REMOVED: dict[int | str, dict[str, Any]] = {204: {"description": "Removed"}, **problems.documented(404, 422)}


def name_in_path(example: str) -> Any:
    """The parameter `nome` of a path."""
    return Path(json_schema_extra=_PATTERN, examples=[example])


def kept(stands: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that keeps a document; `stands` is the document as it stands."""
    return {
        200: {**stands, "description": "Replaced"},
        201: {**stands, "description": "Added"},
        **problems.documented(408, 413, 415, 422),
    }


async def document_for(request: Request, nome: str) -> Any:
    """The JSON value that is to be kept under a name; a problem when that is none."""
    if re.fullmatch(names.NAME_PATTERN, nome) is None or nome.endswith("\n") or len(nome) > NAME_MAX_CHARS:
        rule = f"{names.NAME_PATTERN}, with at most {NAME_MAX_CHARS} characters"
        raise invalid("path.nome", f"{nome[:40]!r} does not match {rule}")
    value, _ = await body.value(request)
    return value
