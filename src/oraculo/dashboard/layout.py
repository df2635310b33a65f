"""Where everything goes in the picture of a plan: nodes in layers from left to right, edges between them.

Computed here, once a plan, in time that grows with the size of the plan: browsers only draw. Many tickets of one queue
that wait for the same and feed the same are one node with a count; so are a map and all its items, and a loop and all
its rounds. A ticket that
undoes another stands behind it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from oraculo.core.flow.profile import specs_in
from oraculo.core.named_tasks import named_in
from oraculo.core.plan import Gate, Plan
from oraculo.core.vocabulary import FanIn
from oraculo.dashboard.timeline import ranges

UNDO = "desfaz"
TICKETS_PER_QUEUE_DRAWN = 6  # more tickets than this of one queue become one node
NODES_PER_STAGE_DRAWN = 12  # more nodes than this that wait for the same and feed the same become one
NODES_DRAWN = 1200  # more nodes than this: one a layer
NODE_WIDTH_PX, NODE_HEIGHT_PX = 236, 62
GATE_SIZE_PX = 92, 46
GAP_X_PX, GAP_Y_PX, MARGIN_PX = 64, 16, 12
DRAWINGS_CACHED = 64  # drawings in memory

_drawn: dict[tuple[int, int], dict[str, Any]] = {}  # run and its tickets → drawing, the latest used last


@dataclass(slots=True)
class Node:
    kind: str  # coleta, execucao, espera, mapa, repete, desfaz, gate
    label: str
    members: list[int] = field(default_factory=list)
    gate: int | None = None
    queues: int = 1
    layer: int = 0
    x: float = 0
    y: float = 0

    @property
    def box(self) -> tuple[int, int]:
        return GATE_SIZE_PX if self.gate is not None else (NODE_WIDTH_PX, NODE_HEIGHT_PX)


class Drawing:
    def __init__(self, plan: Plan) -> None:
        self.nodes: list[Node] = []
        self.edges: list[tuple[int, int]] = []
        self._plan = plan
        self._specs = specs_in(plan)
        named = named_in(plan)
        self._named = named
        self._planned = len(plan.tasks) if named is None else len(named.named)
        self._of = self._group()
        self._connect()
        self._layer()
        if len(self.nodes) > NODES_DRAWN:
            self._fold_layers()
        self._order()
        self._place()

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _group(self) -> list[int]:
        """Position → node."""
        stages: dict[tuple[Any, ...], dict[str, list[int]]] = {}
        growing: dict[str, list[int]] = {}  # by the name of a map or a loop: itself and its items or rounds
        undoing: dict[str, list[int]] = {}  # by the name of the task that they undo, where the plan names tasks
        for position, task in enumerate(self._plan.tasks):
            undoes = self._undoes(position)
            if undoes and self._named is not None:
                undoing.setdefault(self._name(position), []).append(position)
                continue
            if task.kind.grows or (position >= self._planned and not undoes):
                growing.setdefault(self._name(position), []).append(position)
                continue
            kind = UNDO if undoes else task.kind.value
            stage = stages.setdefault((kind, task.after, task.feeds), {})
            stage.setdefault(task.queue or task.name, []).append(position)
        of = [0] * len(self._plan.tasks)
        for (kind, _, _), queues in stages.items():
            single = sum(len(found) if len(found) <= TICKETS_PER_QUEUE_DRAWN else 1 for found in queues.values())
            if len(queues) > 1 and single > NODES_PER_STAGE_DRAWN:
                if len(queues) > NODES_PER_STAGE_DRAWN:
                    self._add(of, Node(kind, "", [p for found in queues.values() for p in found], queues=len(queues)))
                else:
                    for queue, found in queues.items():
                        self._add(of, Node(kind, queue, found))
                continue
            for queue, found in queues.items():
                if len(found) > TICKETS_PER_QUEUE_DRAWN:
                    self._add(of, Node(kind, queue, found))
                else:
                    for position in found:
                        self._add(of, Node(kind, self._name(position), [position]))
        for name, found in growing.items():
            self._add(of, Node(self._plan.tasks[found[0]].kind.value, name, found))
        for name, found in undoing.items():
            self._add(of, Node(UNDO, name, found))
        return of

    def _undoes(self, position: int) -> bool:
        if self._named is not None:
            return self._named.spec(position).undoes
        return self._undone(position) is not None

    def _undone(self, position: int) -> int | None:
        """The ticket that this one undoes."""
        return self._specs[position].compensates if self._specs else None

    def _name(self, position: int) -> str:
        """What tells it from the others: its task where the plan names tasks, else its queue."""
        undone = self._undone(position)
        if undone is not None:
            return self._name(undone)
        if self._specs:
            return self._specs[position].task_id
        return self._plan.profile.name_of(position) or self._plan.tasks[position].queue

    def _add(self, of: list[int], node: Node) -> None:
        for position in node.members:
            of[position] = len(self.nodes)
        self.nodes.append(node)

    def _connect(self) -> None:
        """A fan-in is a node of its own, unless it is the end of everything or joins one to one."""
        edges: dict[tuple[int, int], None] = {}
        for number, gate in enumerate(self._plan.gates):
            if self._counts_items(gate):
                continue
            sources = dict.fromkeys(self._of[position] for position in gate.inputs)
            released = (self._of[position] for position in gate.releases)
            targets = dict.fromkeys(
                node for node in released if node not in sources
            )  # the order inside a node is its own
            chooses = gate.mode in (FanIn.QUORUM, FanIn.PRIMEIRO)
            if not targets and not chooses:
                continue
            if len(gate.inputs) == 1 and not chooses:
                edges.update(dict.fromkeys((source, target) for source in sources for target in targets))
                continue
            self.nodes.append(Node("gate", gate.mode.value, gate=number))
            here = len(self.nodes) - 1
            edges.update(dict.fromkeys((source, here) for source in sources))
            edges.update(dict.fromkeys((here, target) for target in targets))
        for position in range(len(self._specs)):
            undone = self._undone(position)
            if undone is not None:
                edges[self._of[undone], self._of[position]] = None
        if self._named is not None:
            planned = {self._name(position): self._of[position] for position in range(self._planned)}
            undoing = [node for node in range(len(self.nodes)) if self.nodes[node].kind == UNDO]
            edges.update(dict.fromkeys((planned[self.nodes[node].label], node) for node in undoing))
        self.edges = list(edges)

    def _counts_items(self, gate: Gate) -> bool:
        """Whether a gate is that of a map, which is drawn as one node with all its items."""
        return not gate.inputs or (gate.inputs[0] >= self._planned and not self._undoes(gate.inputs[0]))

    # -- places ------------------------------------------------------------------------------------------------------

    def _layer(self) -> None:
        """The longest way from the beginning."""
        after: dict[int, list[int]] = defaultdict(list)
        waits = [0] * len(self.nodes)
        for source, target in self.edges:
            after[source].append(target)
            waits[target] += 1
        ready = deque(number for number, count in enumerate(waits) if not count)
        while ready:
            number = ready.popleft()
            for target in after[number]:
                self.nodes[target].layer = max(self.nodes[target].layer, self.nodes[number].layer + 1)
                waits[target] -= 1
                if not waits[target]:
                    ready.append(target)

    def _fold_layers(self) -> None:
        folded: dict[tuple[int, str], Node] = {}
        new: list[int] = []
        for node in self.nodes:
            key = (node.layer, node.kind)
            one = folded.get(key)
            if one is None:
                one = folded[key] = Node(node.kind, "", layer=node.layer, gate=node.gate, queues=0)
            one.members += node.members
            one.queues += 1
        index = {key: number for number, key in enumerate(folded)}
        new = [index[node.layer, node.kind] for node in self.nodes]
        pairs = ((new[source], new[target]) for source, target in self.edges)
        self.edges = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
        self.nodes = list(folded.values())

    def _order(self) -> None:
        """Each layer by the middle of what it hangs on, forwards, backwards and forwards again."""
        self._layers: list[list[int]] = [[] for _ in range(max((node.layer for node in self.nodes), default=0) + 1)]
        for number, node in enumerate(self.nodes):
            self._layers[node.layer].append(number)
        before: dict[int, list[int]] = defaultdict(list)
        behind: dict[int, list[int]] = defaultdict(list)
        for source, target in self.edges:
            before[target].append(source)
            behind[source].append(target)
        for neighbours, layers in ((before, self._layers), (behind, self._layers[::-1]), (before, self._layers)):
            rank = [0.0] * len(self.nodes)
            for layer in layers:
                for place, number in enumerate(layer):
                    near = neighbours[number]
                    rank[number] = sum(rank[one] for one in near) / len(near) if near else float(place)
                layer.sort(key=lambda number: rank[number])
                for place, number in enumerate(layer):
                    rank[number] = float(place)

    def _place(self) -> None:
        tall = [sum(self.nodes[n].box[1] + GAP_Y_PX for n in layer) - GAP_Y_PX for layer in self._layers]
        self.height = max([NODE_HEIGHT_PX, *tall]) + 2 * MARGIN_PX
        x = float(MARGIN_PX)
        for layer, height in zip(self._layers, tall, strict=True):
            width = max((self.nodes[n].box[0] for n in layer), default=0)
            y = (self.height - height) / 2
            for number in layer:
                node = self.nodes[number]
                node.x, node.y = x + (width - node.box[0]) / 2, y
                y += node.box[1] + GAP_Y_PX
            x += width + GAP_X_PX
        self.width = x - GAP_X_PX + MARGIN_PX

    def document(self) -> dict[str, Any]:
        gates = self._plan.gates
        return {
            "width": round(self.width),
            "height": round(self.height),
            "nodes": [
                {
                    "kind": node.kind,
                    "label": node.label,
                    "queues": node.queues,
                    "count": len(node.members),
                    "members": ranges(sorted(node.members)),
                    "gate": node.gate,
                    "needed": None if node.gate is None else gates[node.gate].needed,
                    "inputs": None if node.gate is None else len(gates[node.gate].inputs),
                    "from": None if node.gate is None else min(gates[node.gate].inputs),
                    "x": round(node.x),
                    "y": round(node.y),
                    "w": node.box[0],
                    "h": node.box[1],
                }
                for node in self.nodes
            ],
            "edges": self.edges,
        }


def drawing(plan: Plan) -> dict[str, Any]:
    return Drawing(plan).document()


def drawing_of(run: int, plan: Plan) -> dict[str, Any]:
    """Of an orchestration's plan, which changes only by growing."""
    key = run, len(plan.tasks)
    found = _drawn.pop(key, None) or drawing(plan)
    _drawn[key] = found
    if len(_drawn) > DRAWINGS_CACHED:
        del _drawn[next(iter(_drawn))]
    return found
