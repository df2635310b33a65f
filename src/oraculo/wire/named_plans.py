"""A plan of any shape: the document that a user wrote → the plan that runs, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from oraculo.core.named_tasks import LoopSpec, MapSpec, NamedTask, NamedTasks, UndoSpec
from oraculo.core.plan import ALL_OK, Backoff, Join, NoticeTargets, Plan, Task, graph
from oraculo.core.vocabulary import Ending, FanIn, Kind
from oraculo.expressions import Expression, parse_template
from oraculo.plans import reader, writer
from oraculo.plans.graph import dependencies
from oraculo.plans.json_values import texts_in
from oraculo.plans.model import (
    Body,
    CallNode,
    ChildNode,
    JoinRule,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    NotifyTargets,
    Otherwise,
    PlanDocument,
    RetryRule,
    TypeDocument,
    WaitNode,
)
from oraculo.wire import named_children, named_waits, strict_json

if TYPE_CHECKING:
    from oraculo.wire.requests import Defaults


NO_REQUEST = TypeDocument("x")  # stands for the request of a child, which its profile holds


def is_plan(value: Any) -> bool:
    """Whether a request says `tarefas`, in either vocabulary."""
    return isinstance(value, dict) and ("tarefas" in value or "tasks" in value)


def load(value: Any) -> PlanDocument:
    """The document of a request with `tarefas`; WireError with every fault."""
    document = reader.load(value)
    assert isinstance(document, PlanDocument)
    return document


def _notice_targets(notify: NotifyTargets, defaults: Defaults) -> NoticeTargets:
    return NoticeTargets(notify.webhook, defaults.queues.meant(notify.queue) if notify.queue else None)


def plan_of(document: PlanDocument, defaults: Defaults) -> Plan:
    """The plan that runs what a document asks for."""
    nodes = document.tasks
    index = {name: number for number, name in enumerate(nodes)}
    base, cap = timedelta(seconds=defaults.retry_base_s), timedelta(seconds=defaults.retry_cap_s)
    backoff = Backoff(base, cap, defaults.retry_factor)
    notify = document.options.notify
    made = graph(
        {name: _task(node, defaults) for name, node in nodes.items()},
        dependencies(document),
        timeout=_timeout(document, defaults),
        backoff=backoff,
        notify=NoticeTargets() if notify is None else _notice_targets(notify, defaults),
        joins={
            name: ALL_OK if isinstance(node, MapNode) else _join(node.options.fan_in) for name, node in nodes.items()
        },
        closing=None,
    )
    named = tuple(_named(name, node, index, backoff, defaults) for name, node in nodes.items())
    profile = NamedTasks(
        named,
        _without_params(document),
        strict_json.compact(document.input),
        strict_json.compact(document.output),
    )
    return replace(made, ending=Ending.ABSORBED, profile=profile, labels=document.options.labels)


def _timeout(document: PlanDocument, defaults: Defaults) -> timedelta | None:
    """A plan that waits and does not say how long it may take may take as long as it takes."""
    said = document.options.timeout_s
    if said is None and any(isinstance(node, WaitNode) for node in document.tasks.values()):
        return None
    return timedelta(seconds=said or defaults.timeout_s)


def _task(node: Node, defaults: Defaults) -> Task:
    """Of a map or a loop: what stands for all of its items or rounds, with their destination."""
    if isinstance(node, WaitNode):
        return named_waits.task_of(node)
    if isinstance(node, ChildNode):
        return named_children.task_of(node)
    if isinstance(node, MapNode | LoopNode):
        body, kind = _task(node.do, defaults), Kind.MAPA if isinstance(node, MapNode) else Kind.REPETE
        return Task(kind, body.name, body.queue, b"{}", timedelta(seconds=node.options.timeout_s or 0), 1)
    return Task(
        node.kind,
        node.destination,
        defaults.queues.of(node.kind, node.destination),
        strict_json.compact(node.params) if node.params else b"{}",
        timedelta(seconds=node.options.timeout_s or defaults.ticket_timeout_s),
        node.options.max_attempts or defaults.max_tentativas,
    )


def _join(rule: JoinRule | None) -> Join:
    return ALL_OK if rule is None else Join(FanIn(rule.mode.value), rule.at_least)


def _named(name: str, node: Node, index: dict[str, int], default: Backoff, defaults: Defaults) -> NamedTask:
    if isinstance(node, CallNode | ChildNode):
        return _named_body(name, node, index, default, defaults)
    options = node.options
    undo = _undo(name, options, default, defaults)
    needs = tuple(index[need] for need in options.needs)
    when = strict_json.compact(options.when)
    if isinstance(node, WaitNode):
        asks = options.when is not None or named_waits.has_expressions(node)
        wait = named_waits.wait_of(node)
        return NamedTask(
            name, needs, options.optional, when=when, asks=asks, wait=wait, priority=options.priority, undo=undo
        )
    if isinstance(node, LoopNode):
        loop = _loop(name, node, default, defaults)
        return NamedTask(
            name, needs, options.optional, when=when, asks=True, loop=loop, priority=options.priority, undo=undo
        )
    made = _map(name, node, default, defaults)
    return NamedTask(
        name, needs, options.optional, when=when, asks=True, map=made, priority=options.priority, undo=undo
    )


def _map(name: str, node: MapNode, default: Backoff, defaults: Defaults) -> MapSpec:
    rule, limit = node.options.fan_in, node.options.timeout_s
    return MapSpec(
        strict_json.compact(node.items),
        node.as_,
        _task(node.do, defaults),
        _item(name, node, default, defaults),
        Join(FanIn.TODOS) if rule is None else _join(rule),
        node.at_once,
        None if limit is None else timedelta(seconds=limit),
    )


def _loop(name: str, node: LoopNode, default: Backoff, defaults: Defaults) -> LoopSpec:
    limit = node.options.timeout_s
    return LoopSpec(
        _task(node.do, defaults),
        _item(name, node, default, defaults),
        strict_json.compact(node.stop_when),
        node.at_most,
        timedelta(seconds=node.pause_s or 0),
        node.on_exhaust is Otherwise.SEGUE,
        None if limit is None else timedelta(seconds=limit),
    )


def _item(name: str, node: MapNode | LoopNode, default: Backoff, defaults: Defaults) -> NamedTask:
    """What is said of each item or round; its priority is that of the whole unless it has its own."""
    item_name = node.as_ if isinstance(node, MapNode) else None
    item = _named_body(name, node.do, {}, default, defaults, item_name)
    return replace(item, priority=node.options.priority) if item.priority is None else item


def _named_body(
    name: str, node: Body, index: dict[str, int], default: Backoff, defaults: Defaults, item: str | None = None
) -> NamedTask:
    """What is said of a collect, an execute or a child. `item`: what an item is called, of a map."""
    options = node.options
    params = node.params if isinstance(node, CallNode) else named_children.given(node.request)
    needs = tuple(index[need] for need in options.needs)
    when = strict_json.compact(options.when)
    return NamedTask(
        name,
        needs,
        options.optional,
        _backoff(options.retry, default),
        () if options.retry is None else options.retry.not_on,
        when,
        options.when is not None or any(texts_in(params, ())),
        priority=options.priority,
        undo=_undo(name, options, default, defaults, item),
        child=named_children.spec_of(node) if isinstance(node, ChildNode) else None,
    )


def _backoff(retry: RetryRule | None, default: Backoff) -> Backoff | None:
    """The waits of a task that says something about them."""
    if retry is None or (retry.base_s is None and retry.cap_s is None):
        return None
    base = default.base if retry.base_s is None else timedelta(seconds=retry.base_s)
    return Backoff(base, default.cap if retry.cap_s is None else timedelta(seconds=retry.cap_s), default.factor)


def _undo(
    name: str, options: NodeOptions, default: Backoff, defaults: Defaults, item: str | None = None
) -> UndoSpec | None:
    """What undoes a task; it is as urgent as the task."""
    rule = options.undo
    if rule is None:
        return None
    own = NodeOptions(timeout_s=rule.timeout_s, max_attempts=rule.max_attempts)
    texts = [text for _, text in texts_in(rule.params, ())]
    codes = () if rule.retry is None else rule.retry.not_on
    return UndoSpec(
        _task(CallNode(rule.kind, rule.destination, rule.params, own), defaults),
        NamedTask(
            name,
            backoff=_backoff(rule.retry, default),
            final_codes=codes,
            asks=bool(texts),
            priority=options.priority,
            undoes=True,
        ),
        item is not None and any(item in expression.names for text in texts for expression in _expressions(text)),
    )


def _expressions(text: str) -> Sequence[Expression]:
    template = parse_template(text)
    return () if template is None else template.expressions


def _without_params(document: PlanDocument) -> bytes:
    tasks: dict[str, Node] = {
        name: replace(node, params={}) if isinstance(node, CallNode) else _without_items(node)
        for name, node in document.tasks.items()
    }
    kept = replace(document.options, correlation_id=None)
    written = writer.write(replace(document, tasks=tasks, input={}, output=None, options=kept))
    return strict_json.compact(written)


def _without_items(node: Node) -> Node:
    """A map or a loop without what its profile holds itself; of a child, all of it."""
    if isinstance(node, ChildNode):
        return replace(node, request=NO_REQUEST)
    if not isinstance(node, MapNode | LoopNode):
        return node
    do = replace(node.do, params={}) if isinstance(node.do, CallNode) else replace(node.do, request=NO_REQUEST)
    return replace(node, items=[], do=do) if isinstance(node, MapNode) else replace(node, do=do)


def request_of(plan: Plan, profile: NamedTasks) -> dict[str, Any]:
    """The request that makes this plan again, in Portuguese words."""
    request: dict[str, Any] = strict_json.loads_trusted(profile.document)
    for word, text in (("entrada", profile.input), ("saida", profile.output)):
        if text not in (b"{}", b"null"):
            request[word] = strict_json.loads_trusted(text)
    for one, task in zip(profile.named, plan.tasks, strict=False):  # items stand behind
        if one.wait is not None:
            continue  # the document has all of it
        said = request["tarefas"][one.name]
        if one.map is not None:
            said["para_cada"] = strict_json.loads_trusted(one.map.items)
            said, task = said["faz"], one.map.task
        elif one.loop is not None:
            said, task = said["repete"]["faz"], one.loop.task
        body = one.map or one.loop
        child = one.child if body is None else body.item.child
        if child is not None:
            said["filha"] = named_children.request_of(child, task.parametros)
            continue
        parameters = strict_json.loads_trusted(task.parametros)
        if parameters:
            said["parametros"] = parameters
    return request
