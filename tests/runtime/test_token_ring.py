"""Keys of tokens in a store, and what answers are judged by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from oraculo.adapters.signing import ed25519
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.bootstrap.adapters import token_ring
from oraculo.core.commands import RecordResult
from oraculo.core.ticket_id import ticket_id
from oraculo.errors import WireError
from oraculo.runtime import token_ring as module
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.token_ring import TokenRing
from oraculo.wire import strict_json
from oraculo.wire.ticket_tokens import HEADER, TicketClaim, signed

TICKET, OTHER = ticket_id(77, 0), ticket_id(77, 1)
CLAIM = TicketClaim(TICKET, 2, "abc123")


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 11, 18, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def not_before(self, at: datetime) -> None:
        raise NotImplementedError


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(str(tmp_path / "o.db")) as store:
        yield store


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def opened(store: SqliteStore, clock: Clock, *, required: bool = True) -> TokenRing:
    ring = token_ring(store, clock, required=required)
    await ring.open()
    return ring


def result(ticket: str | None = TICKET, attempt: int | None = 2) -> RecordResult:
    return RecordResult(True, b"1", [], ticket=ticket, attempt=attempt)


def refused(ring: TokenRing, answer: RecordResult, token: str | None, name: str | None = "abc123") -> str:
    with pytest.raises(WireError) as raised:
        ring.judge(answer, name, token)
    assert raised.value.code == "unauthenticated"
    return raised.value.detail


@pytest.mark.parametrize("fresh", [True, False], ids=["another process", "the process that issued it"])
async def test_only_the_token_of_its_attempt_lets_an_answer_count(
    store: SqliteStore, clock: Clock, fresh: bool
) -> None:
    issuer = await opened(store, clock)
    token, other = issuer.issue(CLAIM), issuer.issue(TicketClaim(OTHER, 2, "abc123"))
    first = issuer.issue(TicketClaim(TICKET, 1, "abc123"))
    ring = await opened(store, clock) if fresh else issuer
    assert ring.judge(result(), "abc123", token) is False
    assert "does not echo" in refused(ring, result(), None)
    assert "another ticket" in refused(ring, result(), other)
    assert "attempt 1" in refused(ring, result(), first)
    assert "another orchestration" in refused(ring, result(), token, "abc124")
    assert "none of this orchestrator" in refused(ring, result(), token[:-1])
    assert "none of this orchestrator" in refused(ring, result(), "ç☃")


async def test_a_token_says_what_the_answer_does_not(store: SqliteStore, clock: Clock) -> None:
    ring = await opened(store, clock)
    answer = result(None, None)
    assert ring.judge(answer, "abc123", ring.issue(CLAIM)) is True
    assert (answer.ticket, answer.attempt) == (TICKET, 2)
    loud = result(TICKET.upper(), 2)
    ring.judge(loud, None, ring.issue(CLAIM))
    assert loud.ticket == TICKET


async def test_accepting_takes_no_token_but_no_wrong_one(store: SqliteStore, clock: Clock) -> None:
    ring = await opened(store, clock, required=False)
    assert ring.judge(result(), "abc123", None) is False
    refused(ring, result(), "")
    refused(ring, result(attempt=1), ring.issue(CLAIM))


async def test_a_rotation_with_its_overlap(store: SqliteStore, clock: Clock) -> None:
    """Another process knows the new key before it signs, and takes tokens of the old one until their time is over."""
    ring, other = await opened(store, clock), await opened(store, clock)
    (first,) = ring.public_keys
    old = ring.issue(CLAIM)
    made = await ring.rotate(timedelta(days=1))
    assert ring.issue(CLAIM) == old  # not yet
    await other.reload()
    assert [key.kid for key in other.public_keys] == [made.kid, first.kid]
    clock.at = made.signs_from
    await ring.reload()
    new = ring.issue(TicketClaim(OTHER, 1, "abc123"))
    assert other.judge(result(OTHER, 1), "abc123", new) is False
    assert other.judge(result(), "abc123", old) is False
    clock.at += timedelta(days=1)
    for one in (ring, other):
        await one.reload()
        assert [key.kid for key in one.public_keys] == [made.kid]
        assert "its key is over" in refused(one, result(), old)


async def test_tokens_that_are_forgotten_are_still_right(
    store: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 10)
    ring = await opened(store, clock)
    claims = [TicketClaim(ticket_id(5, position), 1, "a") for position in range(50)]
    tokens = [ring.issue(claim) for claim in claims]
    assert len(ring._issued) + len(ring._issued_before) <= 10
    for claim, token in zip(claims, tokens, strict=True):
        assert ring.judge(result(claim.ticket, 1), "a", token) is False and ring.issue(claim) == token


async def test_what_is_secret_of_a_key_is_not_shown(store: SqliteStore, clock: Clock) -> None:
    await opened(store, clock)
    (key,) = await store.token_keys()
    assert "secret" not in repr(key) and "sign=" not in repr(ed25519.key_of(key.secret))


@pytest.mark.parametrize("place", ["envelope", "payload", "header"])
async def test_a_token_is_found_where_workers_put_it(store: SqliteStore, clock: Clock, place: str) -> None:
    ring = await opened(store, clock)
    token = ring.issue(CLAIM)
    message = {
        "correlation_id": "abc123", "tipo_evento": "resultado_execucao", "timestamp": "2025-10-14T12:00:00Z",
        "payload": {"arquivo": "r.pdf", **({"token": token} if place == "payload" else {})},
        **({"token": token} if place == "envelope" else {}),
    }  # fmt: skip
    headers = {HEADER: token} if place == "header" else {}
    work = AnswerReader(ring)(strict_json.dumps(message), "q", headers)
    assert work.dead is None and work.fixed and isinstance(work.command, RecordResult)
    assert (work.command.ticket, work.command.attempt, work.command.dados) == (TICKET, 2, b'{"arquivo":"r.pdf"}')
    work = AnswerReader(ring)(strict_json.dumps({**message, "correlation_id": "outra"}), "q", headers)
    assert work.dead is not None and work.dead.reason == "unauthenticated" and work.dead.correlation_id == "outra"


async def test_a_token_of_the_result_itself_is_left_alone(store: SqliteStore, clock: Clock) -> None:
    message = {
        "correlation_id": "abc123", "tipo_evento": "resultado_execucao", "timestamp": "2025-10-14T12:00:00Z",
        "payload": {"token": "de outra coisa"},
    }  # fmt: skip
    work = AnswerReader(await opened(store, clock, required=False))(strict_json.dumps(message), "q")
    assert isinstance(work.command, RecordResult) and work.command.dados == b'{"token":"de outra coisa"}'


async def test_many_tokens_are_signed_beside_the_event_loop(store: SqliteStore, clock: Clock) -> None:
    asked: list[int] = []

    def sign_many(secret: bytes, header: bytes, texts: Sequence[bytes]) -> list[str]:
        asked.append(len(texts))
        if len(asked) > 1:
            raise OSError("gone")
        return [signed(header, text, ed25519.private_key(secret).sign).decode() for text in texts]

    ring = token_ring(store, clock, required=True, sign_many=sign_many)
    await ring.open()
    few, many = (
        [TicketClaim(ticket_id(run, position), 1, "a") for position in range(n)] for run, n in ((5, 9), (6, 99))
    )
    assert ring.prepare(few) is None
    waiting = ring.prepare(many)
    assert waiting is not None
    await waiting
    assert ring.prepare(many) is None and asked == [99]  # they are there
    other = await opened(store, clock)
    assert [ring.issue(claim) for claim in (*few, *many)] == [other.issue(claim) for claim in (*few, *many)]
    more = [TicketClaim(ticket_id(7, position), 1, "a") for position in range(50)]
    waiting = ring.prepare(more)
    assert waiting is not None
    await waiting  # it fails, and nothing is lost by it
    assert [ring.issue(claim) for claim in more] == [other.issue(claim) for claim in more]
    assert ring.prepare(TicketClaim(ticket_id(8, position), 1, "a") for position in range(50)) is None
