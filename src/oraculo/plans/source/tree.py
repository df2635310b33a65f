"""Events → data, and where each part of it stands. Keys that stand twice and what is too large are faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oraculo.plans import limits
from oraculo.plans.faults import FaultCode, Path, shown
from oraculo.plans.model import Json
from oraculo.plans.source.events import Part, Quoting, SourceEvent, SourceText

MERGE_KEY = "<<"


@dataclass(slots=True)
class SourceNode:
    """One value: where it and its key begin. `inner`: its parts by key or number."""

    start: int
    end: int
    quoting: Quoting = Quoting.PLAIN
    key_start: int | None = None
    inner: dict[str | int, SourceNode] = field(default_factory=dict)


@dataclass(slots=True)
class _Open:
    """An object or a list whose end has not come yet."""

    value: dict[str, Json] | list[Json]
    node: SourceNode
    path: Path
    key: SourceEvent | None = None


class TreeBuilder:
    """Builds one value. `value` and `root` are whole when `complete`."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._open: list[_Open] = []
        self._containers = self._members = 0
        self.value: Json = None
        self.root: SourceNode | None = None
        self.complete = False

    def build(self, events: Iterable[SourceEvent]) -> None:
        """Take the events up to the end, or up to what is too much."""
        for event in events:
            if event.part is Part.END:
                self._open.pop()
            elif not self._take(event):
                return
        self.complete = self.root is not None and not self._open

    def _take(self, event: SourceEvent) -> bool:
        around = self._open[-1] if self._open else None
        if around is not None and isinstance(around.value, dict) and around.key is None:
            return self._take_key(around, event)
        if event.part is Part.SCALAR:
            if event.fault is not None:
                self._source.add(event.start, *event.fault, self._path_here(around))
            self._place(around, event.value, SourceNode(event.start, event.end, event.quoting))
            return True
        if not self._fits(event):
            return False
        value: dict[str, Json] | list[Json] = {} if event.part is Part.OBJECT else []
        path = self._path_here(around)
        node = SourceNode(event.start, event.end)
        self._place(around, value, node)
        self._open.append(_Open(value, node, path))
        return True

    def _take_key(self, around: _Open, event: SourceEvent) -> bool:
        if event.part is not Part.SCALAR:
            self._source.add(event.start, FaultCode.WRONG_KIND, "a key is a text", around.path)
            return False
        self._members += 1
        if self._members > limits.SOURCE_MAX_MEMBERS:
            message = f"more than {limits.SOURCE_MAX_MEMBERS} members of objects"
            self._source.add(event.start, FaultCode.TOO_MUCH, message)
            return False
        around.key = event
        at = (*around.path, event.text[:100])
        if event.fault is not None and event.fault[0] is not FaultCode.AMBIGUOUS:
            self._source.add(event.start, *event.fault, around.path)
        elif event.text in around.node.inner:
            message = f"the key {shown(event.text)} stands here twice"
            self._source.add(event.start, FaultCode.TWICE, message, at)
        elif event.text == MERGE_KEY and event.quoting is Quoting.PLAIN:
            message = "<< does not merge here: write the keys out, or '<<' in quotes"
            self._source.add(event.start, FaultCode.AMBIGUOUS, message, at)
        return True

    def _place(self, around: _Open | None, value: Json, node: SourceNode) -> None:
        if around is None:
            self.value, self.root = value, node
        elif isinstance(around.value, list):
            around.node.inner[len(around.value)] = node
            around.value.append(value)
        elif around.key is not None:
            key, around.key = around.key, None
            node.key_start = key.start
            around.node.inner.setdefault(key.text, node)
            around.value.setdefault(key.text, value)

    def _path_here(self, around: _Open | None) -> Path:
        if around is None:
            return ()
        if isinstance(around.value, list):
            return (*around.path, len(around.value))
        return (*around.path, around.key.text[:100] if around.key else "")

    def _fits(self, event: SourceEvent) -> bool:
        self._containers += 1
        if len(self._open) >= limits.SOURCE_MAX_DEPTH:
            message = f"nested more than {limits.SOURCE_MAX_DEPTH} levels deep"
        elif self._containers > limits.SOURCE_MAX_CONTAINERS:
            message = f"more than {limits.SOURCE_MAX_CONTAINERS} lists and objects"
        else:
            return True
        self._source.add(event.start, FaultCode.TOO_MUCH, message)
        return False
