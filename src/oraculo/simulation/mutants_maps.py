"""Mutants of the rules for maps."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from oraculo.core import blocks, consolidation, endings, fan_in, maps
from oraculo.core import events as ev
from oraculo.core.blocks import Block, Blocks
from oraculo.core.commands import Grow
from oraculo.core.fan_in import GateCount
from oraculo.core.plan import Gate
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Ending, FanIn, Phase, Status, Verdict
from oraculo.simulation import grown_results
from oraculo.simulation.mutants import Mutant, patched

_MAPS = ("maps-masked", "maps-unmasked")
_decided, _concluded, _grow, _begun, _next = maps.decided, maps.concluded, maps.grow, maps.begun, maps._next
_take_in, _by_absorption = blocks.take_in, endings._by_absorption


def nothing_never_passes() -> AbstractContextManager[None]:
    def begun(s: Orchestration, event: ev.PlanGrown) -> list[ev.Event]:
        return [one for one in _begun(s, event) if not isinstance(one, ev.FanInClosed)]

    return patched((maps, "begun", begun))


def skipped_items_count_for_a_quorum() -> AbstractContextManager[None]:
    def decided(s: Orchestration, block: Block, gate: Gate, count: GateCount) -> bool | None:
        if gate.mode is FanIn.QUORUM:
            count = replace(count, ok=count.ok + count.skipped, skipped=0)
        return _decided(s, block, gate, count)

    return patched((maps, "decided", decided))


def skipped_items_fail_a_map() -> AbstractContextManager[None]:
    def decided(s: Orchestration, block: Block, gate: Gate, count: GateCount) -> bool | None:
        return fan_in.decide(gate.mode, gate.needed, len(gate.inputs), count)

    return patched((maps, "decided", decided))


def the_window_is_one_too_wide() -> AbstractContextManager[None]:
    def following(s: Orchestration, block: Block) -> list[int]:
        wide = None if block.at_once is None else block.at_once + 1
        return _next(s, replace(block, at_once=wide))

    return patched((maps, "_next", following))


def back_off_leaves_the_window() -> AbstractContextManager[None]:
    def following(s: Orchestration, block: Block) -> list[int]:
        live = sum(1 for one in block.positions if s.tickets[one].phase in (Phase.OWED, Phase.RUNNING))
        return _next(s, replace(block, live=live))

    return patched((maps, "_next", following))


def the_next_item_starts_twice() -> AbstractContextManager[None]:
    def started(self: Blocks, positions: Any) -> None:
        for position in positions:
            block = self.of(position)
            if isinstance(block, Block):
                block.live += 1

    def following(s: Orchestration, block: Block) -> list[int]:
        room = 0 if block.at_once is None else block.at_once - block.live
        return [one for one in block.positions if s.tickets[one].phase in (Phase.WAITING, Phase.BACKOFF)][
            : max(room, 0)
        ]

    return patched((Blocks, "started", started), (maps, "_next", following))


def the_last_item_starts_first() -> AbstractContextManager[None]:
    def following(s: Orchestration, block: Block) -> list[int]:
        waiting = [one for one in block.positions if s.tickets[one].phase is Phase.WAITING]
        return waiting[-1:] if _next(s, block) else []

    return patched((maps, "_next", following))


def no_item_follows() -> AbstractContextManager[None]:
    return patched((maps, "_next", lambda _s, _block: []))


def results_in_the_order_of_arrival() -> AbstractContextManager[None]:
    right = consolidation.results

    def results(s: Orchestration, position: int) -> bytes:
        items = sorted((s.tickets[p] for p in s.items(position)), key=lambda one: one.closed_at or s.started_at)
        if right(s, position) == b"null":
            return b"null"
        return b"[" + b",".join(one.dados if one.status is Status.CONCLUIDA else b"null" for one in items) + b"]"

    return patched((consolidation, "results", results), (grown_results, "results", results))


def a_chunk_counts_twice() -> AbstractContextManager[None]:
    def grow(s: Orchestration, command: Grow) -> Any:
        known = 0 if s.blocks is None or not s.blocks.all else len(s.blocks.all[-1].positions)
        return _grow(s, replace(command, offset=known if known < command.total else command.offset))

    return patched((maps, "grow", grow))


def a_chunk_is_lost() -> AbstractContextManager[None]:
    def grow(s: Orchestration, command: Grow) -> Any:
        return ([], Verdict.APPLIED) if command.offset else _grow(s, command)

    return patched((maps, "grow", grow))


def starts_before_all_items_are_known() -> AbstractContextManager[None]:
    def begun(s: Orchestration, event: ev.PlanGrown) -> list[ev.Event]:
        if event.more and event.count:
            return [ev.TicketsDispatched([event.first], 1)]
        return _begun(s, event)

    return patched((maps, "begun", begun))


def a_failed_item_leaves_the_map_whole() -> AbstractContextManager[None]:
    def concluded(s: Orchestration, block: Block, passed: bool) -> list[ev.Event]:
        found = _concluded(s, block, passed)
        return [
            replace(one, status=Status.CONCLUIDA) if passed else one for one in found if isinstance(one, ev.MapEnded)
        ]

    return patched((maps, "concluded", concluded))


def items_outlive_their_map() -> AbstractContextManager[None]:
    return patched((maps, "rest", lambda _s, _ended: []))


def items_outlive_a_map_that_is_spare() -> AbstractContextManager[None]:
    return patched((maps, "left_behind", lambda _s, _closed, _why: []))


def a_map_is_never_out_of_time() -> AbstractContextManager[None]:
    def take_in(s: Orchestration, event: ev.PlanGrown, at: Any) -> None:
        _take_in(s, event, at)
        s.tickets[event.owner].due_at = None

    return patched((blocks, "take_in", take_in))


def failed_items_fail_the_run() -> AbstractContextManager[None]:
    def by_absorption(s: Orchestration) -> Status:
        kept, s.blocks = s.blocks, None
        try:
            return _by_absorption(s)
        finally:
            s.blocks = kept

    rules = {**endings._ENDINGS, Ending.ABSORBED: by_absorption}
    return patched((endings, "_ENDINGS", rules))


MUTANTS = [
    Mutant("a map of nothing never ends", nothing_never_passes, _MAPS, 200),
    Mutant("skipped items count for a quorum", skipped_items_count_for_a_quorum, _MAPS, 400),
    Mutant("skipped items fail a map", skipped_items_fail_a_map, _MAPS, 400),
    Mutant("the window is one too wide", the_window_is_one_too_wide, _MAPS, 200),
    Mutant("an item in back-off leaves the window", back_off_leaves_the_window, _MAPS, 100, first=900),
    Mutant("the next item starts twice", the_next_item_starts_twice, _MAPS, 400),
    Mutant("the last item starts first", the_last_item_starts_first, _MAPS, 200),
    Mutant("no item follows", no_item_follows, _MAPS, 200),
    Mutant("results in the order of arrival", results_in_the_order_of_arrival, _MAPS, 400),
    Mutant("a chunk of items counts twice", a_chunk_counts_twice, _MAPS, 400),
    Mutant("a chunk of items is lost", a_chunk_is_lost, _MAPS, 200),
    Mutant("items start before all are known", starts_before_all_items_are_known, _MAPS, 200),
    Mutant("a failed item leaves the map whole", a_failed_item_leaves_the_map_whole, _MAPS, 200),
    Mutant("items outlive their map", items_outlive_their_map, _MAPS, 400),
    Mutant("items outlive a map that is spare", items_outlive_a_map_that_is_spare, _MAPS, 800),
    Mutant("a map is never out of time", a_map_is_never_out_of_time, _MAPS, 400),
    Mutant("failed items fail the run", failed_items_fail_the_run, _MAPS, 400),
]
