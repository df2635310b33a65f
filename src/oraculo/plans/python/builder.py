"""`Plan`: the same document as in JSON or YAML, built by Python.

A plan is a mapping, the request in Portuguese words, so that whatever takes a request takes a plan:
`client.submit(plan)`. Every fault of it is told at once, when it is first read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from oraculo.errors import PlanError
from oraculo.plans.model import Params, RequestDocument
from oraculo.plans.python.expressions import PlanExpression, TaskHandle, plain
from oraculo.plans.reader import load
from oraculo.plans.words import Words
from oraculo.plans.writer import write

Values = Mapping[str, Any]
Otherwise = Literal["fail", "continue"]


class CallOptions(TypedDict, total=False):
    """What a collect or an execute inside of another task, or as its undoing, may say."""

    when: str | bool | PlanExpression
    timeout_s: float
    max_attempts: int
    retry: Values
    undo: Values
    priority: int


class TaskOptions(CallOptions, total=False):
    """What any task may say."""

    needs: Sequence[str | TaskHandle]
    optional: bool
    fan_in: Values


class PlanBuilder(Mapping[str, Any]):
    """A plan of any shape, task by task. `input` are values that every expression sees as `plan.input`; `output` is
    what the plan gives, an expression or any value with expressions in it."""

    item = PlanExpression("item")
    index = PlanExpression("indice")
    done = PlanExpression("feito")

    def __init__(
        self,
        *,
        input: Values | None = None,
        output: Any = None,
        timeout_s: float | None = None,
        correlation_id: str | None = None,
        labels: Sequence[str] = (),
        unique: Values | None = None,
        webhook: str | None = None,
        queue: str | None = None,
    ) -> None:
        notify = _given(webhook=webhook, queue=queue)
        self._tasks: dict[str, Any] = {}
        self._lines: dict[str, int] = {}
        self._input = input
        self._output = output
        self._more = _given(
            timeout_s=timeout_s,
            correlation_id=correlation_id,
            labels=list(labels) or None,
            unique=unique,
            notify=notify or None,
        )
        self._other: Params | None = None  # a request of another shape
        self._known: RequestDocument | None = None

    @classmethod
    def of(cls, request: Values) -> PlanBuilder:
        """A plan of a request that is there as data, in either vocabulary and of any shape."""
        plan = cls()
        plan._other = dict(request)
        return plan

    # -- tasks -------------------------------------------------------------------------------------------------------

    def collect(
        self, name: str, source: str, params: Values | None = None, **options: Unpack[TaskOptions]
    ) -> TaskHandle:
        """Add a task that asks the collectors of a source."""
        return self._add(name, {"source": source, "params": params}, options)

    def execute(
        self, name: str, executor: str, params: Values | None = None, **options: Unpack[TaskOptions]
    ) -> TaskHandle:
        """Add a task that asks an executor. It gets the data of the tasks in `needs`."""
        return self._add(name, {"executor": executor, "params": params}, options)

    def for_each(
        self,
        name: str,
        items: str | PlanExpression | Sequence[Any],
        do: Values,
        *,
        as_: str | None = None,
        at_once: int | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskHandle:
        """Add a map: one `do` (`Plan.source(…)`, `Plan.executor(…)` or `Plan.run(…)`) for each item of a list. Inside
        of it, `Plan.item` is the item and `Plan.index` its number."""
        return self._add(name, {"for_each": items, "as": as_, "at_once": at_once, "do": do}, options)

    def repeat(
        self,
        name: str,
        do: Values,
        *,
        stop_when: str | PlanExpression,
        at_most: int,
        pause_s: float | None = None,
        on_exhaust: Otherwise | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskHandle:
        """Add a loop: `do`, again and again, until `stop_when` is true. `Plan.task(name).result` is its last result."""
        loop = _given(do=do, stop_when=stop_when, at_most=at_most, pause_s=pause_s, on_exhaust=on_exhaust)
        return self._add(name, {"repeat": loop}, options)

    def wait_signal(
        self,
        name: str,
        signal: str,
        *,
        expires_s: float | None = None,
        on_expire: Otherwise | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskHandle:
        """Add a task that waits for a signal; its data is what came with it."""
        wait = _given(signal=signal, timeout_s=expires_s, on_expire=on_expire)
        return self._add(name, {"wait": wait}, options)

    def wait_approval(
        self,
        name: str,
        question: str | None = None,
        *,
        roles: Sequence[str] = (),
        expires_s: float | None = None,
        on_expire: Otherwise | None = None,
        on_refuse: Otherwise | None = None,
        **options: Unpack[TaskOptions],
    ) -> TaskHandle:
        """Add a task that waits for a person to approve or reject."""
        approval = _given(question=question, roles=list(roles) or None)
        wait = _given(approval=approval, timeout_s=expires_s, on_expire=on_expire, on_refuse=on_refuse)
        return self._add(name, {"wait": wait}, options)

    def wait_seconds(
        self, name: str, seconds: float | str | PlanExpression, **options: Unpack[TaskOptions]
    ) -> TaskHandle:
        """Add a task that does nothing for so many seconds."""
        return self._add(name, {"wait": {"seconds": seconds}}, options)

    def wait_until(
        self, name: str, until: datetime | str | PlanExpression, **options: Unpack[TaskOptions]
    ) -> TaskHandle:
        """Add a task that does nothing before an instant, which has a zone."""
        return self._add(name, {"wait": {"until": until}}, options)

    def child(
        self, name: str, request: str | Values, params: Values | None = None, **options: Unpack[TaskOptions]
    ) -> TaskHandle:
        """Add a task that is a run of its own: of a task type with parameters, or of a whole plan."""
        return self._add(name, self.run(request, params), options)

    @staticmethod
    def task(name: str) -> TaskHandle:
        """Return a task by its name, before or after it is added."""
        return TaskHandle(name)

    # -- what stands inside of tasks ---------------------------------------------------------------------------------

    @staticmethod
    def source(source: str, params: Values | None = None, **options: Unpack[CallOptions]) -> Params:
        """Return a collect for `do` or `undo`."""
        return _task({"source": source, "params": params}, options)

    @staticmethod
    def executor(executor: str, params: Values | None = None, **options: Unpack[CallOptions]) -> Params:
        """Return an execute for `do` or `undo`."""
        return _task({"executor": executor, "params": params}, options)

    @staticmethod
    def run(request: str | Values, params: Values | None = None, **options: Unpack[CallOptions]) -> Params:
        """Return a run of its own for `do`: of a task type with parameters, or of a whole plan."""
        if isinstance(request, str):
            return _task({"child": _given(type=request, params=params)}, options)
        if params is not None:
            raise PlanError("params go with the name of a task type; a whole plan has its input")
        inner = request.data() if isinstance(request, PlanBuilder) else request
        return _task({"child": inner}, options)

    # -- what it comes to --------------------------------------------------------------------------------------------

    @property
    def input(self) -> PlanExpression:
        """The values that the plan is given."""
        return PlanExpression("entrada")

    @property
    def output(self) -> Any:
        """What the plan gives."""
        return self._output

    @output.setter
    def output(self, value: Any) -> None:
        self._output = value
        self._known = None

    def data(self) -> Params:
        """Return the request as it was built, unchecked and in mixed words; `to_dict` is what is handed in."""
        if self._other is not None:
            return plain(self._other)  # type: ignore[no-any-return]
        shape = _given(input=self._input or None, tasks=self._tasks, output=self._output)
        return plain({**shape, **self._more})  # type: ignore[no-any-return]

    def document(self) -> RequestDocument:
        """Return the typed document; WireError with every fault when there are any."""
        if self._known is None:
            self._known = load(write(load(self.data()), "pt"))
        return self._known

    def to_dict(self, words: Words = "pt") -> Params:
        """Return the request as JSON data in one vocabulary; WireError with every fault when there are any."""
        return write(self.document(), words)

    def to_json(self, words: Words = "pt") -> str:
        """Return the request as the text of a JSON file."""
        return json.dumps(self.to_dict(words), ensure_ascii=False, indent=2) + "\n"

    def to_yaml(self, words: Words = "pt") -> str:
        """Return the request as the text of a YAML file; needs the extra `yaml`."""
        from oraculo.plans.source.yaml_writer import to_yaml

        return to_yaml(self.to_dict(words))

    def line_of(self, task: str) -> int | None:
        """Return the line of the Python file that added a task."""
        return self._lines.get(task)

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __bool__(self) -> bool:
        return True  # also while it has faults

    def __repr__(self) -> str:
        return f"<Plan of {len(self._tasks)} tasks>" if self._other is None else "<Plan>"

    def _add(self, name: str, kind: Values, options: Mapping[str, Any]) -> TaskHandle:
        if self._other is not None:
            raise PlanError(f"task {name!r} cannot be added to a request that was given whole", name)
        if name in self._tasks:
            raise PlanError(f"there is a task {name!r} already", name)
        needs = options.get("needs")
        if isinstance(needs, str | TaskHandle):
            raise TypeError(f"needs is a list of tasks, not {needs!r}")
        names = [need.name if isinstance(need, TaskHandle) else need for need in needs or ()]
        self._tasks[name] = _task(kind, {**options, "needs": names or None})
        self._lines[name] = sys._getframe(2).f_lineno
        self._known = None
        return TaskHandle(name)


Plan = PlanBuilder


def _given(**values: Any) -> dict[str, Any]:
    """The values that were given."""
    return {key: value for key, value in values.items() if value is not None}


def _task(kind: Values, options: Mapping[str, Any]) -> Params:
    return _given(**kind, **options)
