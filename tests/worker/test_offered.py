"""What a worker passes over of what it is offered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from oraculo.wire.offers import OfferNote
from oraculo.worker.offered import OfferTaker
from oraculo.worker.transport import Job, Transport

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Passed:
    """The part of a transport that is told what was passed over."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def pass_over(self, offers: Sequence[Job]) -> None:
        self.bodies += [job.body for job in offers]


class Desk:
    """A worker of the queue `q` that gets offers; `now` is its clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.begun: list[bytes] = []
        self.passed = Passed()
        handlers: dict[str, Any] = {"q": object()}
        self.taker = OfferTaker(
            cast(Transport, self.passed), handlers, lambda _, job: self.begun.append(job.body), lambda: True
        )
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)

    def offer(self, body: bytes, made_s: float) -> Job:
        return Job("q", body, None, OfferNote("q", NOW + timedelta(seconds=made_s), 1.0))


@pytest.fixture
async def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    one = Desk(monkeypatch)
    await one.taker.take([one.offer(b"a", 0.0)])
    assert one.begun == [b"a"]
    return one


async def test_what_came_too_late_is_not_begun_when_it_comes_again(desk: Desk) -> None:
    desk.now = 10.0
    late = desk.offer(b"b", 2.0)
    await desk.taker.take([late, replace(late, offer=None)])
    await desk.taker.take([replace(late, offer=None)])
    assert desk.begun == [b"a"]
    assert desk.passed.bodies == [b"b"] * 3


async def test_what_was_begun_by_a_process_before_is_begun_again(desk: Desk) -> None:
    desk.now = 10.0
    await desk.taker.take([replace(desk.offer(b"b", 2.0), offer=None)])
    assert desk.begun == [b"a", b"b"]
    assert desk.passed.bodies == []
