"""Plans and commands by chance, for properties that must hold whatever the world does."""

from __future__ import annotations

from hypothesis import strategies as st

from core.given import RUN, dag, plan
from oraculo.core.commands import Cancel, Command, ConfirmDispatch, RecordDelivery, RecordResult, Wake
from oraculo.core.plan import Plan
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import FanIn, Kind

PLANS = st.one_of(
    st.builds(
        lambda c, e, modo, minimo, attempts, timeout, hook: plan(
            c if c + e else 1, e, modo=modo, attempts=attempts, timeout=timeout,
            minimo=min(minimo, c or e or 1) if modo is FanIn.QUORUM else None,
            webhook="https://example.com" if hook else None,
        ),
        st.integers(0, 4), st.integers(0, 3), st.sampled_from([FanIn.TODOS, FanIn.QUORUM, FanIn.PRIMEIRO]),
        st.integers(1, 4), st.integers(1, 3), st.sampled_from([20, 200]), st.booleans(),
    ),
    st.sampled_from(
        [{"a": [], "b": ["a"], "c": ["a", "b"]}, {"a": [], "b": [], "c": ["a"], "d": ["b"], "e": ["c", "d"]}]
    ).map(lambda depends: dag(depends, attempts=2)),
)  # fmt: skip

POSITION = st.integers(0, 8)
COMMANDS = st.one_of(
    st.just(Wake()),
    st.just(Wake()),
    st.builds(Cancel, st.just("chega")),
    st.builds(
        ConfirmDispatch, st.lists(st.tuples(POSITION, st.integers(1, 3)), min_size=1, max_size=6)
    ),
    st.builds(
        RecordResult,
        ok=st.booleans(), dados=st.just(b"[1]"), erros=st.just([]), definitivo=st.booleans(),
        ticket=st.one_of(st.none(), POSITION.map(lambda p: ticket_id(RUN, p))),
        attempt=st.one_of(st.none(), st.integers(1, 4)), kind=st.sampled_from((Kind.COLETA, Kind.EXECUCAO)),
        name=st.one_of(st.none(), st.sampled_from(["fonte0", "exec0", "a", "ghost"])), digest=st.integers(1, 5),
    ),
    st.builds(
        RecordDelivery, notice=st.integers(-1, 2), attempt=st.integers(1, 3), delivered=st.booleans(),
        final=st.booleans(),
    ),
)  # fmt: skip

HAPPENINGS = st.lists(st.tuples(COMMANDS, st.floats(0, 15)), max_size=40)  # a command, seconds after the one before


def fitted(command: Command, wanted: Plan) -> Command:
    """Confirmations come from ourselves, so they name tickets that exist."""
    if isinstance(command, ConfirmDispatch):
        return ConfirmDispatch([(p % len(wanted.tasks), attempt) for p, attempt in command.tickets])
    return command
