"""What a ticket needs of the worker that does it, as its plan says."""

from __future__ import annotations

from oraculo.core.candidates import TicketNeeds
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import SecurityLevel
from oraculo.errors import WireError
from oraculo.wire import strict_json

RESOURCES_WORD = "recursos"
NO_NEEDS = TicketNeeds()


def needs_of(state: Orchestration, position: int) -> TicketNeeds:
    """Only plans of Fluxo C say any: capabilities, a level, and resources in the metadata of a task."""
    flow = flow_in(state.plan)
    if flow is None or position >= len(flow.specs):
        return NO_NEEDS
    spec = flow.specs[position]
    return TicketNeeds(frozenset(spec.capabilities), SecurityLevel(flow.security_level), _resources(spec.metadata))


def _resources(metadata: bytes) -> tuple[tuple[str, int], ...]:
    """`recursos` of the metadata of a task: an object, or its JSON in a text. Anything else asks for nothing."""
    if RESOURCES_WORD.encode() not in metadata:
        return ()
    said = strict_json.loads_trusted(metadata).get(RESOURCES_WORD)
    if isinstance(said, str):
        try:
            said = strict_json.loads(said.encode())
        except WireError:
            return ()
    if not isinstance(said, dict):
        return ()
    return tuple(sorted((name, amount) for name, amount in said.items() if type(amount) is int and amount > 0))
