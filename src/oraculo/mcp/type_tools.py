"""Task types as tools: a name that every client takes, and a schema made of what the type has as parameters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

TOOL_NAME_MAX_CHARS = 64
PREFIX = "start_"
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def tool_name(task_type: str) -> str:
    """`start_<type>`; a type whose name does not fit, or has other characters than clients take, ends with a digest."""
    plain = PREFIX + re.sub(r"[^A-Za-z0-9_-]", "_", task_type)
    if plain == PREFIX + task_type and len(plain) <= TOOL_NAME_MAX_CHARS:
        return plain
    digest = hashlib.blake2b(task_type.encode(), digest_size=4).hexdigest()
    return f"{plain[: TOOL_NAME_MAX_CHARS - len(digest) - 1]}_{digest}"


def names_of(task_types: Iterable[str]) -> dict[str, str]:
    """Tool → task type."""
    return {tool_name(one): one for one in task_types}


def parameters_schema(template: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a type has, with their values as defaults. Others may be given too: each task gets them."""
    properties: dict[str, Any] = {}
    for name, value in _defaults(template).items():
        known = next((word for kind, word in _TYPES if isinstance(value, kind)), None)
        properties[name] = ({"type": known} if known else {}) | {"default": value}
    return {"type": "object", "properties": properties, "additionalProperties": True}


def described(task_type: str, template: Mapping[str, Any]) -> str:
    """The description of the tool: what the type does."""
    tasks = template.get("tarefas")
    if isinstance(tasks, Mapping):
        does = f"a plan of the tasks {', '.join(tasks)}"
    else:
        collects = ", ".join(one["fonte"] for one in template.get("coletas") or ())
        executes = ", ".join(one["executador"] for one in template.get("execucoes") or ())
        does = f"collects {collects or 'nothing'}" + (f", then executes {executes}" if executes else "")
    return (
        f"Start an orchestration of the task type {task_type!r}: {does}. Gives the id of the run, and its result when "
        "it ends within wait_s; otherwise ask get_run later, also in another session."
    )


def _defaults(template: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(template.get("tarefas"), Mapping):
        given = template.get("entrada")
        return dict(given) if isinstance(given, Mapping) else {}
    found: dict[str, Any] = {}
    for one in (*(template.get("coletas") or ()), *(template.get("execucoes") or ())):
        for name, value in (one.get("parametros") or {}).items():
            found.setdefault(name, value)
    return found
