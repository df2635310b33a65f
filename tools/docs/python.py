"""The reference part of docs/python.md, made from signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

import oraculo
from oraculo import errors
from oraculo.client import results
from oraculo.plans.python import builder

CLIENT_FIRST = ("submit", "submit_many", "result", "stream", "get", "list", "cancel", "decide", "events", "ticket")
WORKER = ("collector", "executor", "ticket", "run", "run_forever", "stop", "queues", "busy")
PLAN_FIRST = (
    "collect",
    "execute",
    "for_each",
    "repeat",
    "wait_signal",
    "wait_approval",
    "wait_seconds",
    "wait_until",
    "child",
)
PLAN_REST = ("source", "executor", "run", "task", "input", "output", "of", "to_dict", "to_json", "to_yaml", "document")
EMBEDDED = ("submit", "submit_many", "result", "cancel", "events", "stream")


def client() -> str:
    """Every method of the client, the usual ones first."""
    methods = [name for name in vars(oraculo.Client) if not name.startswith("_")]
    others = sorted(set(methods) - set(CLIENT_FIRST))
    return _members(oraculo.Client, [*CLIENT_FIRST, *others])


def worker() -> str:
    return _members(oraculo.Worker, WORKER)


def embedded() -> str:
    return _members(oraculo.Oraculo, EMBEDDED)


def plan() -> str:
    """The methods of a plan, and what every task may say."""
    options = ", ".join(f"`{name}: {_type(hint)}`" for name, hint in _option_types().items())
    return f"{_members(oraculo.Plan, (*PLAN_FIRST, *PLAN_REST))}\n\n#### Options of a task\n\n{options}"


def _option_types() -> dict[str, object]:
    return {
        name: hint.__forward_arg__
        for kind in (builder.CallOptions, builder.TaskOptions)
        for name, hint in kind.__annotations__.items()
    }


def answers() -> str:
    """A table of the fields of every typed answer."""
    rows = ["| type | fields |", "|---|---|"]
    for name, kind in vars(results).items():
        if not is_typeddict(kind) or name.startswith("_"):
            continue
        hints = get_type_hints(kind, include_extras=True)
        fields = ", ".join(f"`{key}`{'?' if get_origin(hint) is NotRequired else ''}" for key, hint in hints.items())
        rows.append(f"| `{name}` — {_doc(kind)} | {fields} |")
    return "\n".join(rows)


def raised() -> str:
    """A table of the errors that are exported."""
    rows = ["| error | kind of | when |", "|---|---|---|"]
    for kind in (getattr(errors, name) for name in oraculo.__all__ if hasattr(errors, name)):
        text = _doc(kind).replace("\n\n", " ")
        rows.append(f"| `{kind.__name__}` | `{kind.__base__.__name__}` | {text} |")
    return "\n".join(rows)


PARTS: dict[str, Callable[[], str]] = {
    "client": client,
    "worker": worker,
    "embedded": embedded,
    "plan": plan,
    "answers": answers,
    "errors": raised,
}


def _members(kind: type, names: Iterable[str]) -> str:
    return "\n\n".join(f"#### `{_shown(name, vars(kind)[name])}`\n\n{_doc(vars(kind)[name])}" for name in names)


def _shown(name: str, member: Any) -> str:
    if isinstance(member, property):
        return f"{name}: {_type(inspect.signature(member.fget).return_annotation)}" if member.fget else name
    bound = isinstance(member, staticmethod)
    signature = inspect.signature(member.__func__ if isinstance(member, staticmethod | classmethod) else member)
    parts: list[str] = []
    for parameter in list(signature.parameters.values())[0 if bound else 1 :]:
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {_type(parameter.annotation)}{default}")
    return f"{name}({', '.join(parts)}) -> {_type(signature.return_annotation)}"


def _type(annotation: object) -> str:
    """An annotation as it is written, without the name of the module that holds the answers."""
    shown = str(annotation).replace("r.Page[r.", "Page[").replace("r.", "").replace("dict[str, Any]", "dict")
    shown = shown.replace("PlanBuilder", "Plan")
    return {"RunEvents": "list[RunEvent]", "Submissions": "list[Submitted]"}.get(shown, shown)


def _doc(thing: object) -> str:
    """A docstring in one paragraph, its paragraphs kept apart."""
    text = inspect.getdoc(thing)
    if not text:
        raise ValueError(f"{thing} has no docstring")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
