"""Plans: what a request may ask for, and graphs of any shape in linear time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.given import coleta, dag, execucao, operations, plan, seconds
from oraculo.core.plan import MAX_EDGES, MAX_TASKS, Backoff, NoticeTargets, Plan, find_cycle, graph, stages
from oraculo.core.vocabulary import FanIn, Kind
from oraculo.errors import PlanError


def build(depends: dict[str, list[str]]) -> Plan:
    return dag(depends)


class TestStages:
    def test_collections_start_at_once_and_executions_behind_the_fan_in(self) -> None:
        made = plan(2, 2)
        assert [task.after for task in made.tasks] == [None, None, 0, 0]
        assert [task.feeds for task in made.tasks] == [(0,), (0,), (1,), (1,)]
        assert made.gates[0].inputs == (0, 1) and made.gates[0].releases == (2, 3)
        assert made.gates[1].inputs == (2, 3) and made.gates[1].releases == ()

    def test_only_collections(self) -> None:
        made = plan(3)
        assert len(made.gates) == 1 and made.gates[0].releases == ()

    def test_only_executions_start_at_once_under_the_fan_in_rule(self) -> None:
        made = plan(0, 3, modo=FanIn.QUORUM, minimo=2)
        assert [task.kind for task in made.tasks] == [Kind.EXECUCAO] * 3
        assert [task.after for task in made.tasks] == [None] * 3
        assert (made.gates[0].mode, made.gates[0].needed) == (FanIn.QUORUM, 2)

    def test_nothing_to_do_is_refused(self) -> None:
        with pytest.raises(PlanError, match="both empty"):
            plan(0, 0)

    @pytest.mark.parametrize("minimo", [0, -1, 4, 2**63])
    def test_quorum_out_of_reach_is_refused(self, minimo: int) -> None:
        with pytest.raises(PlanError, match="1 to 3") as refused:
            plan(3, modo=FanIn.QUORUM, minimo=minimo)
        assert refused.value.where == "fan_in.minimo"

    @pytest.mark.parametrize("minimo", [1, 2, 3])
    def test_quorum_within_reach(self, minimo: int) -> None:
        assert plan(3, modo=FanIn.QUORUM, minimo=minimo).gates[0].needed == minimo

    def test_quorum_needs_a_minimum(self) -> None:
        with pytest.raises(PlanError, match=r"needs fan_in\.minimo"):
            plan(3, modo=FanIn.QUORUM)

    @pytest.mark.parametrize("modo", [FanIn.TODOS, FanIn.PRIMEIRO])
    def test_a_minimum_goes_with_quorum_only(self, modo: FanIn) -> None:
        with pytest.raises(PlanError, match="goes with modo quorum"):
            plan(3, modo=modo, minimo=1)

    def test_as_many_tasks_as_allowed_and_one_more(self) -> None:
        one = coleta()
        rules = {
            "mode": FanIn.TODOS, "minimo": None, "timeout": seconds(1), "backoff": Backoff(), "notify": NoticeTargets(),
        }  # fmt: skip
        assert len(stages([one] * MAX_TASKS, [], **rules).tasks) == MAX_TASKS
        with pytest.raises(PlanError, match=str(MAX_TASKS)):
            stages([one] * MAX_TASKS, [execucao()], **rules)


class TestGraph:
    def test_a_task_waits_for_what_it_depends_on(self) -> None:
        made = build({"a": [], "b": ["a"], "c": ["a", "b"]})
        gates = [(gate.mode, gate.inputs, gate.releases, gate.essential) for gate in made.gates]
        assert gates == [
            (FanIn.TODAS_OK, (0,), (1,), False),
            (FanIn.TODAS_OK, (0, 1), (2,), False),
            (FanIn.TODOS, (0, 1, 2), (), True),
        ]
        assert [task.after for task in made.tasks] == [None, 0, 1]
        assert [task.feeds for task in made.tasks] == [(0, 1, 2), (1, 2), (2,)]

    def test_tasks_with_the_same_dependencies_share_a_gate_whatever_their_order(self) -> None:
        made = build({"a": [], "b": [], "c": ["a", "b"], "d": ["b", "a"]})
        assert len(made.gates) == 2 and made.gates[0].releases == (2, 3)

    def test_a_repeated_dependency_counts_once(self) -> None:
        made = build({"a": [], "b": ["a", "a", "a"]})
        assert (made.gates[0].inputs, made.gates[0].needed) == ((0,), 1)

    def test_an_unknown_dependency_is_named(self) -> None:
        with pytest.raises(PlanError, match="'b' depends on 'ghost', which does not exist"):
            build({"a": [], "b": ["a", "ghost"]})

    def test_dependencies_of_an_unknown_task_are_named(self) -> None:
        with pytest.raises(PlanError, match="'ghost', which does not exist"):
            graph(
                {"a": execucao()}, {"ghost": ["a"]}, timeout=seconds(1), backoff=Backoff(), notify=NoticeTargets()
            )  # fmt: skip

    def test_an_empty_graph_is_refused(self) -> None:
        with pytest.raises(PlanError, match="at least one task"):
            build({})

    @pytest.mark.parametrize(
        ("depends", "cycle"),
        [
            ({"a": ["a"]}, "a → a"),
            ({"a": ["b"], "b": ["a"]}, "a → b → a"),
            ({"x": [], "a": ["x", "c"], "b": ["a"], "c": ["b"]}, "a → c → b → a"),
            ({"in": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}, "a → b → c → a"),
        ],
    )
    def test_a_cycle_is_named_in_order(self, depends: dict[str, list[str]], cycle: str) -> None:
        with pytest.raises(PlanError, match=f"form a cycle: {cycle}$"):
            build(depends)

    def test_a_diamond_is_no_cycle(self) -> None:
        assert find_cycle({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}) == []

    def test_more_tasks_or_edges_than_allowed(self) -> None:
        one = execucao()
        with pytest.raises(PlanError, match=str(MAX_TASKS)):
            graph(
                {str(n): one for n in range(MAX_TASKS + 1)}, {},
                timeout=seconds(1), backoff=Backoff(), notify=NoticeTargets(),
            )  # fmt: skip
        with pytest.raises(PlanError, match=str(MAX_EDGES)):
            build({"a": [], "b": ["a"] * (MAX_EDGES + 1)})


def chain(n: int) -> dict[str, list[str]]:
    return {str(i): [str(i - 1)] if i else [] for i in range(n)}


def backward_chain(n: int) -> dict[str, list[str]]:
    return {str(i): [str(i + 1)] if i < n - 1 else [] for i in range(n)}


def star(n: int) -> dict[str, list[str]]:
    return {"root": [], **{str(i): ["root"] for i in range(n - 1)}}


def funnel(n: int) -> dict[str, list[str]]:
    return {**{str(i): [] for i in range(n - 1)}, "last": [str(i) for i in range(n - 1)]}


def diamonds(n: int) -> dict[str, list[str]]:
    """Layers of two, each of which needs both of the layer before: 2**(n/2) paths."""
    return {f"{i}{side}": [f"{i - 1}a", f"{i - 1}b"] if i else [] for i in range(n // 2) for side in "ab"}


def dense(n: int) -> dict[str, list[str]]:
    """Each needs the ten before it: close to the limit of edges."""
    return {str(i): [str(k) for k in range(max(0, i - 10), i)] for i in range(n)}


SHAPES = [chain, backward_chain, star, funnel, diamonds, dense]


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_tasks_of_the_worst_shapes_make_a_plan(shape: Callable[[int], dict[str, list[str]]]) -> None:
    depends = shape(9_990)
    assert len(build(depends).tasks) == len(depends)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cost_of_a_plan_grows_with_its_size_and_no_faster(shape: Callable[[int], dict[str, list[str]]]) -> None:
    small, large = shape(200), shape(1_600)
    size = [len(g) + sum(map(len, g.values())) for g in (small, large)]
    cost = [operations(lambda g=g: build(g)) for g in (small, large)]
    assert cost[1] / cost[0] < 1.25 * size[1] / size[0]


def test_a_cycle_of_ten_thousand_is_found() -> None:
    ring = {str(i): [str((i + 1) % 10_000)] for i in range(10_000)}
    assert len(find_cycle(ring)) == 10_001
    with pytest.raises(PlanError, match="0 → 1 → 2"):
        build(ring)


def test_the_last_edge_of_a_large_graph_closes_the_cycle() -> None:
    almost = diamonds(9_998)
    almost["0a"] = ["4998b"]
    assert find_cycle(almost)[0] == find_cycle(almost)[-1]
