"""Children of a plan: what a user wrote → the task that is a child, and the request that it makes.

What a parent gives to its child (`parametros`, `entrada`, or those of each collect and execute) is the only part in
which the parent's expressions stand. It is kept as the parameters of the task; the rest of the request is kept apart,
with the expressions of the child's own tasks as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from oraculo.core.named_tasks import ChildSpec
from oraculo.core.plan import Task
from oraculo.core.vocabulary import Kind
from oraculo.plans import writer
from oraculo.plans.model import (
    CallNode,
    ChildNode,
    Json,
    LoopNode,
    MapNode,
    PlanDocument,
    RequestDocument,
    StagesDocument,
    TypeDocument,
)
from oraculo.wire import strict_json

_WITHIN: dict[type, str] = {MapNode: "faz.", LoopNode: "repete.faz."}  # where the child of a task stands


def task_of(node: ChildNode) -> Task:
    """The task itself: no queue, one attempt unless more are asked for, and no limit of its own."""
    options, request = node.options, node.request
    name = request.type if isinstance(request, TypeDocument) else ""
    limit = timedelta(seconds=options.timeout_s or 0)
    return Task(Kind.FILHA, name, "", strict_json.compact(given(request)), limit, options.max_attempts or 1)


def spec_of(node: ChildNode) -> ChildSpec:
    return ChildSpec(strict_json.compact(writer.write(_without(node.request))))


def given(request: RequestDocument) -> dict[str, Json]:
    """What the parent gives."""
    match request:
        case TypeDocument():
            return {} if request.params is None else {"parametros": request.params}
        case PlanDocument():
            return {"entrada": request.input} if request.input else {}
        case StagesDocument():
            calls = (("coletas", request.collects), ("execucoes", request.executes))
            return {word: [call.params for call in found] for word, found in calls if any(c.params for c in found)}


def _without(request: RequestDocument) -> RequestDocument:
    match request:
        case TypeDocument():
            return replace(request, params=None)
        case PlanDocument():
            return replace(request, input={})
        case StagesDocument():
            return replace(
                request, collects=tuple(map(_bare, request.collects)), executes=tuple(map(_bare, request.executes))
            )


def _bare(call: CallNode) -> CallNode:
    return replace(call, params={})


def request_of(spec: ChildSpec, parameters: bytes) -> dict[str, Any]:
    """The request of a child with what its parent gives it, in Portuguese words."""
    request: dict[str, Any] = strict_json.loads_trusted(spec.request)
    for word, value in strict_json.loads_trusted(parameters).items():
        if word in ("coletas", "execucoes"):
            for call, params in zip(request[word], value, strict=True):
                if params:
                    call["parametros"] = params
        else:
            request[word] = value
    return request


def children_of(document: PlanDocument) -> Iterator[tuple[str, ChildNode]]:
    """The children of a plan by the names of their tasks, those of maps and loops included; not theirs in turn."""
    for name, node in document.tasks.items():
        body = node.do if isinstance(node, MapNode | LoopNode) else node
        if isinstance(body, ChildNode):
            yield name, body


def types_in(document: RequestDocument) -> Iterator[tuple[str, str]]:
    """Every task type that a request names, in children of children too, and where."""
    stack = [(document, "")]
    while stack:
        one, at = stack.pop()
        if isinstance(one, TypeDocument):
            yield one.type, f"{at}tipo"
        elif isinstance(one, PlanDocument):
            for name, child in children_of(one):
                stack.append((child.request, f"{at}tarefas.{name}.{_WITHIN.get(type(one.tasks[name]), '')}filha."))
