"""A document → Python source that builds it with `Plan`."""

from __future__ import annotations

from collections.abc import Iterable
from pprint import pformat
from typing import Any

from oraculo.core.vocabulary import Kind
from oraculo.plans.model import (
    ITEM_NAME,
    ApprovalWait,
    Body,
    CallNode,
    ChildNode,
    InstantWait,
    JoinRule,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    Otherwise,
    PlanDocument,
    RequestDocument,
    RetryRule,
    SignalWait,
    TypeDocument,
    UndoRule,
    UniqueRule,
    Wait,
    WaitNode,
)
from oraculo.plans.reader import load
from oraculo.plans.words import Words, value_in
from oraculo.plans.writer import write

LINE_MAX_CHARS = 110
_INDENT = "    "
_METHODS = {Kind.COLETA: "collect", Kind.EXECUCAO: "execute"}
_BODIES = {Kind.COLETA: "Plan.source", Kind.EXECUCAO: "Plan.executor"}


class _Code(str):
    """Source as it is, not a text to be quoted."""

    __slots__ = ()


def to_python(request: RequestDocument, words: Words = "pt") -> str:
    """Python source that makes `plan`. `words`: those inside of expressions."""
    return "\n".join(
        ['"""A plan of Oráculo."""', "", "from oraculo import Plan", "", *_plan(load(write(request, words)))]
    )


def _plan(request: RequestDocument) -> Iterable[str]:
    if not isinstance(request, PlanDocument):
        yield "plan = " + _call("Plan.of", [write(request, "en")], {}, "")
        yield ""
        return
    options = request.options
    notify = options.notify
    first = {
        "input": request.input or None,
        "timeout_s": options.timeout_s,
        "correlation_id": options.correlation_id,
        "labels": list(options.labels) or None,
        "unique": None if options.unique is None else _unique(options.unique),
        "webhook": notify and notify.webhook,
        "queue": notify and notify.queue,
    }
    yield "plan = " + _call("Plan", [], first, "")
    for name, node in request.tasks.items():
        yield _task(name, node)
    if request.output is not None:
        yield f"plan.output = {_value(request.output, '')}"
    yield ""


def _unique(rule: UniqueRule) -> dict[str, Any]:
    found = {"mode": value_in("en", "modo", rule.mode.value), "window_s": rule.window_s, "key": rule.key}
    return {word: value for word, value in found.items() if value is not None}


def _task(name: str, node: Node) -> str:
    options = _options(node.options)
    match node:
        case CallNode():
            arguments = [name, node.destination, *([node.params] if node.params else [])]
            return _call(f"plan.{_METHODS[node.kind]}", arguments, options, "")
        case ChildNode():
            return _call("plan.child", [name, *_request(node.request)], options, "")
        case MapNode():
            more = {"as_": None if node.as_ == ITEM_NAME else node.as_, "at_once": node.at_once, **options}
            return _call("plan.for_each", [name, node.items, _body(node.do)], more, "")
        case LoopNode():
            loop = {
                "stop_when": node.stop_when,
                "at_most": node.at_most,
                "pause_s": node.pause_s,
                "on_exhaust": _otherwise("ao_esgotar", node.on_exhaust),
            }
            return _call("plan.repeat", [name, _body(node.do)], {**loop, **options}, "")
        case WaitNode():
            method, arguments, more = _wait(node.wait)
            return _call(f"plan.{method}", [name, *arguments], {**more, **options}, "")


def _wait(wait: Wait) -> tuple[str, list[Any], dict[str, Any]]:
    more: dict[str, Any]
    match wait:
        case SignalWait():
            more = {"expires_s": wait.timeout_s, "on_expire": _otherwise("ao_expirar", wait.on_expire)}
            return "wait_signal", [wait.signal], more
        case ApprovalWait():
            more = {
                "roles": list(wait.roles) or None,
                "expires_s": wait.timeout_s,
                "on_expire": _otherwise("ao_expirar", wait.on_expire),
                "on_refuse": _otherwise("ao_recusar", wait.on_refuse),
            }
            return "wait_approval", [] if wait.question is None else [wait.question], more
        case InstantWait():
            return "wait_until", [wait.until], {}
        case _:
            return "wait_seconds", [wait.seconds], {}


def _body(body: Body) -> _Code:
    options = _options(body.options)
    if isinstance(body, ChildNode):
        return _Code(_call("Plan.run", _request(body.request), options, _INDENT))
    arguments = [body.destination, *([body.params] if body.params else [])]
    return _Code(_call(_BODIES[body.kind], arguments, options, _INDENT))


def _request(request: RequestDocument) -> list[Any]:
    """The arguments of a child: a task type and its parameters, or a whole request as data."""
    if isinstance(request, TypeDocument) and set(write(request, "en")) <= {"type", "params"}:
        return [request.type, *([] if request.params is None else [request.params])]
    return [write(request, "en")]


def _options(options: NodeOptions) -> dict[str, Any]:
    return {
        "needs": list(options.needs) or None,
        "when": options.when,
        "timeout_s": options.timeout_s,
        "max_attempts": options.max_attempts,
        "retry": _retry(options.retry),
        "undo": None if options.undo is None else _undo(options.undo),
        "optional": options.optional or None,
        "priority": options.priority,
        "fan_in": _join(options.fan_in),
    }


def _undo(undo: UndoRule) -> _Code:
    options = {"timeout_s": undo.timeout_s, "max_attempts": undo.max_attempts, "retry": _retry(undo.retry)}
    arguments = [undo.destination, *([undo.params] if undo.params else [])]
    return _Code(_call(_BODIES[undo.kind], arguments, options, _INDENT))


def _retry(retry: RetryRule | None) -> dict[str, Any] | None:
    if retry is None:
        return None
    rule = {"base_s": retry.base_s, "cap_s": retry.cap_s, "not_on": list(retry.not_on) or None}
    return {key: value for key, value in rule.items() if value is not None}


def _join(rule: JoinRule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    mode = {"mode": value_in("en", "modo", rule.mode.value)}
    return mode if rule.at_least is None else {**mode, "at_least": rule.at_least}


def _otherwise(field: str, otherwise: Otherwise) -> str | None:
    return None if otherwise is Otherwise.FALHA else value_in("en", field, otherwise.value)


def _call(function: str, arguments: list[Any], named: dict[str, Any], indent: str) -> str:
    """A call on one line where it fits, otherwise with an argument on each line."""
    parts = [_value(one, indent + _INDENT) for one in arguments]
    parts += [f"{key}={_value(value, indent + _INDENT)}" for key, value in named.items() if value is not None]
    line = f"{function}({', '.join(parts)})"
    if len(indent) + len(line) <= LINE_MAX_CHARS and "\n" not in line:
        return line
    inner = "".join(f"{indent}{_INDENT}{part},\n" for part in parts)
    return f"{function}(\n{inner}{indent})"


def _value(value: Any, indent: str) -> str:
    if isinstance(value, _Code):
        return str(value)
    text = pformat(value, width=max(LINE_MAX_CHARS - len(indent), 60), sort_dicts=False)
    return text.replace("\n", f"\n{indent}") if not isinstance(value, str) else repr(value)
