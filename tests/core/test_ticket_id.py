"""Ticket ids hold the run and the position, and refuse what was mistyped."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.given import RUN
from oraculo.core.ticket_id import parse_ticket_id, ticket_id

RUNS = st.integers(0, 2**63 - 1)
POSITIONS = st.integers(0, 2**32 - 1)


@given(RUNS, POSITIONS)
@settings(deadline=None, derandomize=True)
def test_round_trip(run: int, position: int) -> None:
    assert parse_ticket_id(ticket_id(run, position)) == (run, position)


@given(RUNS, POSITIONS)
@settings(deadline=None, derandomize=True)
def test_it_is_a_uuid_of_version_8(run: int, position: int) -> None:
    one = uuid.UUID(ticket_id(run, position))
    assert (str(one), one.version, one.variant) == (ticket_id(run, position), 8, uuid.RFC_4122)


def test_ids_of_the_same_run_sort_by_position_and_later_runs_sort_later() -> None:
    ids = [ticket_id(run, position) for run in (RUN, RUN + 1, RUN + (1 << 20)) for position in range(3)]
    assert ids == sorted(ids)


def test_every_single_mistyped_digit_is_noticed() -> None:
    identity = ticket_id(RUN, 3)
    for place, digit in enumerate(identity):
        if digit == "-":
            continue
        for other in "0123456789abcdef":
            if other != digit:
                assert parse_ticket_id(identity[:place] + other + identity[place + 1 :]) is None


def test_random_uuids_are_not_taken_for_ours() -> None:
    draw = random.Random(7)
    assert not any(parse_ticket_id(str(uuid.UUID(int=draw.getrandbits(128), version=4))) for _ in range(10_000))


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "abc123", "-" * 36, "z" * 36, " " * 36, "0" * 36, "f" * 36, "٣" * 36,
        "123e4567-e89b-12d3-a456-426614174000", "../../../../../../etc/passwd........", "a" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_id_of_ours(text: str) -> None:
    assert parse_ticket_id(text) is None


def test_capital_letters_are_the_same_id() -> None:
    assert parse_ticket_id(ticket_id(RUN, 10).upper()) == (RUN, 10)
