"""Workers of a host beat in one request, and each of them alone as soon as that cannot be."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from api.conftest import serving, settings_for
from oraculo import Worker
from oraculo.api.app import create_app
from oraculo.errors import ApiError, ServerUnreachableError
from oraculo.service import Oraculo
from oraculo.worker import host_beats, http
from oraculo.worker.host_beats import HostBeats
from oraculo.worker.http import HttpTransport
from waiting import eventually, until

URL, KEY = "http://here", "k"
Said = dict[str, Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place with a short name: those of sockets have an end."""
    with tempfile.TemporaryDirectory() as short:
        yield Path(short, "own")


class Asked:
    """What a server is asked for many workers, and what it says."""

    def __init__(self, every: float = 30.0, error: Exception | None = None) -> None:
        self.every = every
        self.error = error
        self.rounds: list[list[str]] = []

    async def __call__(self, said: list[Said]) -> list[Said]:
        self.rounds.append([one["worker"] for one in said])
        if self.error is not None:
            raise self.error
        return [{"worker": one["worker"], "drenar": False, "proximo_s": self.every} for one in said]


@asynccontextmanager
async def host(folder: Path, asked: Asked, count: int = 3) -> AsyncIterator[list[HostBeats]]:
    """The first of them gathers."""
    some = [HostBeats(URL, KEY, asked, folder) for _ in range(count)]
    try:
        await some[0].beat({"worker": "w0"})
        yield some
    finally:
        for one in some:
            await one.close()


async def test_a_round_is_one_request_and_each_is_told_its_own(folder: Path) -> None:
    asked = Asked()
    async with host(folder, asked) as some:
        told = await asyncio.gather(*(one.beat({"worker": f"w{n}"}) for n, one in enumerate(some)))
        assert [one.gathers for one in some] == [True, False, False]
        assert [one and one["worker"] for one in told] == ["w0", "w1", "w2"]
        assert asked.rounds[0] == ["w0"] and [sorted(one) for one in asked.rounds[1:]] == [["w0", "w1", "w2"]]


async def test_one_that_comes_between_is_asked_to_come_with_the_others(folder: Path) -> None:
    asked = Asked(every=30.0)
    async with host(folder, asked, 2) as (_, late):
        told = await late.beat({"worker": "w1"})
        assert told is not None and 15 < told["proximo_s"] < 30  # when the first one comes again
        asked.every = 2.0
        other = await late.beat({"worker": "w1"})  # another interval has rounds of its own
        assert other is not None and other["proximo_s"] == 2.0


async def test_another_server_or_key_is_another_round(folder: Path) -> None:
    asked = Asked()
    async with host(folder, asked, 1):
        for url, key in ((URL, "other"), ("http://there", KEY)):
            one = HostBeats(url, key, asked, folder)
            await one.beat({"worker": "x"})
            assert one.gathers
            await one.close()


async def test_when_the_one_that_gathers_goes_another_takes_its_place(folder: Path) -> None:
    asked = Asked()
    async with host(folder, asked) as (first, second, third):
        await asyncio.gather(second.beat({"worker": "w1"}), third.beat({"worker": "w2"}))
        await first.close()

        async def told() -> bool:
            return None not in await asyncio.gather(second.beat({"worker": "w1"}), third.beat({"worker": "w2"}))

        await until(told)
        assert second.gathers != third.gathers
        assert sorted(asked.rounds[-1]) == ["w1", "w2"]
        assert await first.beat({"worker": "w0"}) is None


async def test_one_that_was_killed_leaves_its_place_free(folder: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from oraculo.worker.host_beats import HostBeats\n"
        "async def send(said): return [{'worker': one['worker'], 'proximo_s': 30.0} for one in said]\n"
        "async def main():\n"
        f"    await HostBeats({URL!r}, {KEY!r}, send, pathlib.Path(sys.argv[1])).beat({{'worker': 'dead'}})\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    command = (sys.executable, "-c", program, str(folder))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        await process.stdout.readuntil(b"ready\n")
        asked = Asked()
        one = HostBeats(URL, KEY, asked, folder)
        told = await one.beat({"worker": "w1"})
        assert told is not None and told["worker"] == "w1" and not asked.rounds
    finally:
        process.kill()
        await process.wait()
    assert await one.beat({"worker": "w1"}) is None  # it notices, and this once goes alone
    assert await one.beat({"worker": "w1"}) is not None and one.gathers and asked.rounds == [["w1"]]
    await one.close()


async def test_one_that_does_not_answer_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Held(Asked):
        async def __call__(self, said: list[Said]) -> list[Said]:
            if self.rounds:
                await asyncio.Event().wait()
            return await super().__call__(said)

    async with host(folder, Held(), 2) as (_, other):
        monkeypatch.setattr(host_beats, "ANSWER_TIMEOUT_S", 0.01)
        assert await other.beat({"worker": "w1"}) is None


@pytest.mark.parametrize(
    ("error", "again"),
    [(ApiError(404, {"title": "x"}), 0), (ServerUnreachableError(URL, "away"), 1), (ApiError(500, {"title": "x"}), 1)],
)
async def test_what_the_server_does_not_take_goes_alone(folder: Path, error: Exception, again: int) -> None:
    """A server that has no such request is not asked for it again."""
    asked = Asked(error=error)
    async with host(folder, asked, 1) as (one,):
        assert len(asked.rounds) == 1
        assert await one.beat({"worker": "w0"}) is None
        assert len(asked.rounds) == 1 + again


def _open_to_all(folder: Path) -> None:
    folder.mkdir(mode=0o755)


def _elsewhere(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize("make", [_open_to_all, _elsewhere])
def test_a_folder_of_others_is_not_used(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder)
    one = HostBeats(URL, KEY, Asked(), folder)
    assert asyncio.run(one.beat({"worker": "w"})) is None
    assert not one.gathers and list(folder.iterdir()) == []


class Counting:
    """An application, and what it was asked."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.asked: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.asked[scope["path"]] += 1
        await self.app(scope, receive, send)


async def test_python_workers_beat_together_and_one_that_is_unknown_registers_again(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder.parent))
    monkeypatch.setattr(http, "LEASE_WAIT_S", 1.0)
    oraculo = Oraculo(settings_for(tmp_path, ORACULO_WORKER_TIMEOUT_S="5"))
    app = create_app(oraculo)
    counting = Counting(app)
    counting.state = app.state  # type: ignore[attr-defined]  # `serving` ends what waits there
    async with oraculo, serving(counting) as url:
        workers = [Worker(name=f"w{n}") for n in range(4)]
        for one in workers:
            one.collector("a")(lambda params: [1])
        runs = [
            asyncio.create_task(one.run(HttpTransport(url, None, one.name, together=True), register=True))
            for one in workers
        ]
        await until(lambda: counting.asked["/api/v1/workers/heartbeats"] >= 3)
        assert oraculo.registry.counts.heartbeats >= 2 * len(workers)
        assert not [path for path in counting.asked if path.endswith("/heartbeat")], "none went alone"
        before = oraculo.registry.counts.registered
        await oraculo.registry.leave("w1")
        await until(lambda: oraculo.registry.counts.registered > before, "it was told that nobody knows it")
        for one in workers:
            one.stop()
        await asyncio.gather(*runs)
        assert [await oraculo.registry.one(one.name) for one in workers] == [None] * 4
    eventually(lambda: not list((folder.parent / "oraculo").glob("*.sock")))
