"""Mutants of what the whole engine does for children: beginning, ending, telling their parents."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from oraculo.core import effects
from oraculo.core.commands import ConfirmDispatch
from oraculo.core.effects import Begin, Effect, EndChildren
from oraculo.core.plan import Parent
from oraculo.core.state import Orchestration
from oraculo.ports.notifier import Outcome, Receipt
from oraculo.ports.work import Work
from oraculo.runtime.effects.children import ChildRequest, ChildRuns, Report
from oraculo.runtime.kernel import recovery
from oraculo.simulation.mutants import Mutant, patched

_KINDS = ("plans-unmasked", "plans-masked")
_tell, _try_begin = ChildRuns.tell, ChildRuns._try_begin


def a_child_goes_on_after_its_parent() -> AbstractContextManager[None]:
    async def cancel(_self: ChildRuns, _name: str, _parent: Parent) -> None:
        return

    return patched((ChildRuns, "_cancel", cancel))


def a_child_is_confirmed_before_it_begins() -> AbstractContextManager[None]:
    async def try_begin(self: ChildRuns, wanted: Sequence[ChildRequest], report: Report) -> list[ChildRequest]:
        for parent in (one.parent for one in wanted):
            report([Work(ConfirmDispatch([(parent.position, parent.attempt)]), run=parent.run)])
        return await _try_begin(self, wanted, report)

    return patched((ChildRuns, "_try_begin", try_begin))


def a_parent_is_told_once() -> AbstractContextManager[None]:
    """Whether it heard or not."""

    async def tell(self: ChildRuns, parent: Parent, name: str, body: bytes, has_output: bool) -> Receipt:
        receipt = await _tell(self, parent, name, body, has_output)
        return Receipt(Outcome.DELIVERED, receipt.detail)

    return patched((ChildRuns, "tell", tell))


def _forgets(kind: type[Any]) -> AbstractContextManager[None]:
    """A process that starts does not take up effects of this kind."""

    def owed(state: Orchestration, *rest: Any) -> list[Effect]:
        return [one for one in effects.owed_effects(state, *rest) if not isinstance(one, kind)]

    return patched((recovery, "owed_effects", owed))


def recovery_begins_no_child() -> AbstractContextManager[None]:
    return _forgets(Begin)


def recovery_ends_no_child() -> AbstractContextManager[None]:
    return _forgets(EndChildren)


MUTANTS = [
    Mutant("a child goes on after its parent was told", a_child_goes_on_after_its_parent, _KINDS, 100),
    Mutant("a child is confirmed before it begins", a_child_is_confirmed_before_it_begins, _KINDS, 40),
    Mutant("a parent is told once, heard or not", a_parent_is_told_once, _KINDS, 20, 335),
    Mutant("recovery begins no child", recovery_begins_no_child, _KINDS, 100),
    Mutant("recovery ends no child", recovery_ends_no_child, _KINDS, 20, 70),
]
