"""Wrong credentials: an address has a number of them, then it waits; who cannot be guessing is never locked out."""

from __future__ import annotations

import pytest

from api.conftest import API, Start, assert_problem
from oraculo.api.guessing import ADDRESSES_MAX, FAILURES_MAX, WINDOW_S, GuessLimiter

LONG = "k" * 32


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_window_begins_with_the_last_failure_that_is_allowed() -> None:
    time = Time()
    guesses = GuessLimiter(time)
    for _ in range(FAILURES_MAX):
        assert guesses.wait_s("10.0.0.1") == 0
        guesses.failed("10.0.0.1")
        time.now += 1
    assert guesses.wait_s("10.0.0.1") == WINDOW_S - 1
    assert guesses.wait_s("10.0.0.2") == 0
    guesses.failed("10.0.0.1")  # does not make it longer
    time.now += WINDOW_S - 1
    assert guesses.wait_s("10.0.0.1") == 0
    guesses.failed("10.0.0.1")
    assert guesses.wait_s("10.0.0.1") == 0  # begins anew


def test_failures_far_apart_are_forgotten() -> None:
    time = Time()
    guesses = GuessLimiter(time)
    for _ in range(FAILURES_MAX * 3):
        guesses.failed("10.0.0.1")
        time.now += WINDOW_S / (FAILURES_MAX - 2)
        assert guesses.wait_s("10.0.0.1") == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "10.0.0.1", False),
    ],
)
def test_what_counts_as_one_address(one: str, other: str, same: bool) -> None:
    guesses = GuessLimiter()
    for _ in range(FAILURES_MAX):
        guesses.failed(one)
    assert (guesses.wait_s(other) > 0) is same


def test_many_addresses_take_little_room() -> None:
    guesses = GuessLimiter()
    for number in range(ADDRESSES_MAX + 10):
        guesses.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(guesses._failures) == ADDRESSES_MAX


async def test_a_key_that_could_be_guessed_waits_with_the_guesser(started: Start) -> None:
    async with started(ORACULO_API_KEY="curta") as client:
        for _ in range(FAILURES_MAX):
            assert_problem(await client.get(f"{API}/workers", headers={"X-API-Key": "x"}), 401, "unauthorized")
        for key in ("x", "curta"):
            answer = await client.get(f"{API}/workers", headers={"X-API-Key": key})
            assert_problem(answer, 429, "too_many_failures")
            assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert (await client.post("/login", data={"key": "curta"})).status_code == 429
        assert (await client.get("/health")).status_code == 200


async def test_a_long_key_is_not_locked_out(started: Start) -> None:
    async with started(ORACULO_API_KEY=LONG) as client:
        for _ in range(FAILURES_MAX):
            assert (await client.post("/login", data={"key": "errada"})).status_code == 403
        assert_problem(await client.get(f"{API}/workers", headers={"X-API-Key": "x"}), 429, "too_many_failures")
        assert (await client.post("/login", data={"key": "errada"})).status_code == 429
        assert (await client.get(f"{API}/workers", headers={"X-API-Key": LONG})).status_code == 200
        assert (await client.post("/login", data={"key": LONG})).status_code == 303


async def test_no_credential_is_no_guess(started: Start) -> None:
    async with started(ORACULO_API_KEY="curta") as client:
        for _ in range(FAILURES_MAX + 1):
            assert_problem(await client.get(f"{API}/workers"), 401, "unauthorized")
        assert (await client.get(f"{API}/workers", headers={"X-API-Key": "curta"})).status_code == 200
