"""Every place of a plan where expressions stand, with the names that are in scope there.

Paths are in Portuguese words and begin at the plan itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from oraculo.plans.faults import Path
from oraculo.plans.json_values import texts_in
from oraculo.plans.model import (
    ApprovalWait,
    Body,
    CallNode,
    ChildNode,
    InstantWait,
    Json,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    PlanDocument,
    RequestDocument,
    StagesDocument,
    TimerWait,
    TypeDocument,
    WaitNode,
)


class Wanted(Enum):
    """What the text has to become; all but `ANY` have to be one expression and nothing else."""

    ANY = "any value"
    CONDITION = "a condition"
    LIST = "a list"
    NUMBER = "a number"


@dataclass(frozen=True, slots=True)
class NameScope:
    """Names beside `entrada` and the tasks. `own`: the task may name itself; `orders`: it waits for what it names."""

    item: str | None = None
    index: bool = False
    done: bool = False
    own: bool = False
    orders: bool = True


PLAIN = NameScope()
OUTPUT = NameScope(orders=False)
ROUND = NameScope(index=True, own=True)


@dataclass(frozen=True, slots=True)
class Site:
    """One text with expressions. `task` is the one that it belongs to, "" for the output."""

    task: str
    path: Path
    text: str
    scope: NameScope = PLAIN
    wanted: Wanted = Wanted.ANY


def sites_of(document: PlanDocument) -> Iterator[Site]:
    """Every text of the plan that has expressions; those inside of children's own tasks are not its."""
    for name, node in document.tasks.items():
        yield from _of_node(name, node)
    for path, text in texts_in(document.output, ("saida",)):
        yield Site("", path, text, OUTPUT)


def _of_node(task: str, node: Node) -> Iterator[Site]:
    at: Path = ("tarefas", task)
    yield from _of_options(task, node.options, at, PLAIN)
    match node:
        case CallNode() | ChildNode():
            yield from _of_body(task, node, at, PLAIN)
        case MapNode():
            if isinstance(node.items, str):
                yield Site(task, (*at, "para_cada"), node.items, PLAIN, Wanted.LIST)
            else:
                yield from _of_value(task, node.items, (*at, "para_cada"), PLAIN)
            scope = NameScope(item=node.as_, index=True)
            yield from _of_inner(task, node.do, (*at, "faz"), scope)
        case LoopNode():
            yield from _of_inner(task, node.do, (*at, "repete", "faz"), ROUND)
            if node.stop_when:
                yield Site(task, (*at, "repete", "pare_quando"), node.stop_when, ROUND, Wanted.CONDITION)
        case WaitNode():
            yield from _of_wait(task, node, (*at, "espera"))


def _of_inner(task: str, body: Body, at: Path, scope: NameScope) -> Iterator[Site]:
    yield from _of_options(task, body.options, at, scope)
    yield from _of_body(task, body, at, scope)


def _of_body(task: str, body: Body, at: Path, scope: NameScope) -> Iterator[Site]:
    if isinstance(body, CallNode):
        yield from _of_value(task, body.params, (*at, "parametros"), scope)
    else:
        yield from _of_child(task, body.request, (*at, "filha"), scope)


def _of_child(task: str, request: RequestDocument, at: Path, scope: NameScope) -> Iterator[Site]:
    """What the parent gives to its child; the child's own tasks see none of the parent's names."""
    match request:
        case TypeDocument():
            yield from _of_value(task, request.params, (*at, "parametros"), scope)
        case PlanDocument():
            yield from _of_value(task, request.input, (*at, "entrada"), scope)
        case StagesDocument():
            for field, calls in (("coletas", request.collects), ("execucoes", request.executes)):
                for number, call in enumerate(calls):
                    yield from _of_value(task, call.params, (*at, field, number, "parametros"), scope)


def _of_wait(task: str, node: WaitNode, at: Path) -> Iterator[Site]:
    match node.wait:
        case TimerWait(str() as seconds):
            yield Site(task, (*at, "segundos"), seconds, PLAIN, Wanted.NUMBER)
        case InstantWait(until):
            yield from _of_value(task, until, (*at, "ate"), PLAIN)
        case ApprovalWait(str() as question):
            yield from _of_value(task, question, (*at, "aprovacao", "pergunta"), PLAIN)


def _of_options(task: str, options: NodeOptions, at: Path, scope: NameScope) -> Iterator[Site]:
    if isinstance(options.when, str):
        yield Site(task, (*at, "quando"), options.when, scope, Wanted.CONDITION)
    if options.undo is not None:
        undone = replace(scope, done=True, orders=False, own=True)
        yield from _of_value(task, options.undo.params, (*at, "desfaz", "parametros"), undone)


def _of_value(task: str, value: Json, at: Path, scope: NameScope) -> Iterator[Site]:
    for path, text in texts_in(value, at):
        yield Site(task, path, text, scope)
