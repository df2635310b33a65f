"""A Worker in one process with the in-process broker: what a function may do, and what becomes of it."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.errors import ServerUnreachableError, WorkError
from oraculo.ports.broker import Outgoing
from oraculo.wire import mensagem, names, payloads
from oraculo.worker.transport import WorkerNews
from oraculo.worker.worker import BrokerTransport, Job, Worker
from waiting import DEADLINE_S, until


class Bench:
    """One worker on a broker of its own; orders in, answers out."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.broker = MemoryBroker()

    async def order(self, queue: str, **more: Any) -> None:
        body = {
            "correlation_id": "c",
            "tipo_evento": "iniciar_coleta",
            "payload": {"parametros": more.pop("parametros", {})},
            "timestamp": "2025-10-14T12:00:00Z",
            "ticket_id": "t",
            "tentativa": 1,
            **more,
        }
        await self.broker.publish([Outgoing(queue, orjson.dumps(body), "m")])

    async def answer(self) -> dict[str, Any]:
        """The next answer; it is one that the orchestrator accepts."""
        found = await self.broker.fetch(names.RESULTS, limit=1, wait=10)
        assert found, "no answer"
        payloads.answer(mensagem.parse(found[0].body), found[0].body)
        document: dict[str, Any] = orjson.loads(found[0].body)
        return document

    async def given(self, queue: str, **more: Any) -> dict[str, Any]:
        await self.order(queue, **more)
        payload: dict[str, Any] = (await self.answer())["payload"]
        return payload


LATE = "2025-10-14T12:00:00.100Z"  # a tenth of a second after the timestamp of every order here


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[Bench]:
    bench = Bench(worker)
    task = asyncio.create_task(worker.run(BrokerTransport(bench.broker)))
    try:
        yield bench
    finally:
        worker.stop()
        await asyncio.wait_for(task, DEADLINE_S)


class Stopping(BrokerTransport):
    """A transport whose first heartbeat with work tells the worker to stop that work."""

    said = 0

    async def announce(self, kind: str, said: dict[str, Any]) -> WorkerNews | None:
        running, self.said = said.get("executando"), self.said + bool(said.get("executando"))
        stop = ((running[0]["ticket_id"], running[0]["tentativa"]),) if running and self.said == 1 else ()
        return WorkerNews(False, next_s=0.05, stop=stop)

    async def told(self, worker: str, wait: float) -> WorkerNews:
        await asyncio.sleep(wait)
        return WorkerNews()


async def test_work_that_is_to_stop_is_given_back_and_done_again() -> None:
    worker, begun, stopped = Worker(), 0, 0

    @worker.collector("a")
    async def collect() -> Any:
        nonlocal begun, stopped
        begun += 1
        if begun > 1:
            return "again"
        try:
            await asyncio.sleep(DEADLINE_S)
        except asyncio.CancelledError:
            stopped += 1
            raise

    bench = Bench(worker)
    task = asyncio.create_task(worker.run(Stopping(bench.broker), register=True))
    try:
        assert (await bench.given("escavador_a"))["dados"] == "again"
    finally:
        worker.stop()
        await asyncio.wait_for(task, DEADLINE_S)
    assert (begun, stopped) == (2, 1)


async def test_english_names_for_decorators_and_arguments() -> None:
    worker = Worker()

    @worker.collector("a")
    async def collect(params: Any, data: Any) -> Any:
        return [params, data]

    @worker.executor("b")
    def execute(params: Any, data: Any) -> Any:
        return {"seen": [params, data]}

    assert worker.queues == ["escavador_a", "executador_b"]
    async with working(worker) as bench:
        assert (await bench.given("escavador_a", parametros={"x": 1}))["dados"] == [{"x": 1}, []]
        await bench.order("executador_b", tipo_evento="iniciar_execucao", payload={"parametros": {}, "dados": [1]})
        assert (await bench.answer())["payload"] == {"seen": [{}, [1]]}
    with pytest.raises(TypeError, match="attempt"):
        worker.collector("c")(lambda attempt: attempt)


async def test_arguments_are_given_by_name() -> None:
    worker = Worker()

    @worker.escavador("a")
    async def a(parametros: Any, correlation_id: str, ticket_id: str, tentativa: int, prazo: Any, dados: Any) -> Any:
        return [parametros, correlation_id, ticket_id, tentativa, prazo, dados]

    async with working(worker) as bench:
        await bench.order("escavador_a", parametros={"x": 1}, tentativa=2)
        answer = await bench.answer()
    assert answer["payload"] == {
        "fonte": "a",
        "status": "ok",
        "dados": [{"x": 1}, "c", "t", 2, None, []],
        "erros": [],
    }
    assert (answer["ticket_id"], answer["tentativa"], answer["tipo_evento"]) == ("t", 2, "resultado_coleta")


def _raises(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


async def _cancelled() -> Any:
    """Something that the function waits for is cancelled, and not the function."""
    inner = asyncio.create_task(asyncio.sleep(60))
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    ("function", "code", "definitive"),
    [
        (_raises(RuntimeError("não")), "RuntimeError", False),
        (_raises(WorkError("não", codigo="x", definitivo=True)), "x", True),
        (_raises(WorkError("no", code="x", final=True)), "x", True),
        (_raises(StopIteration()), "RuntimeError", False),
        (_raises(SystemExit(3)), "SystemExit", False),
        (_cancelled, "CancelledError", False),
        (lambda: object(), "resultado_invalido", True),
        (lambda: b"bytes are not JSON", "resultado_invalido", True),
        (lambda: {"a": "x" * 1_100_000}, "resultado_invalido", True),
        (lambda: "nul \0", "resultado_invalido", True),
        (lambda: 2**70, "resultado_invalido", True),
        (lambda: "\ud800", "resultado_invalido", True),
        (_raises(RuntimeError("nul \0 and \ud800")), "RuntimeError", False),
    ],
)
async def test_whatever_a_function_does_there_is_an_answer(
    function: Callable[[], Any], code: str, definitive: bool
) -> None:
    worker = Worker()
    worker.escavador("a")(function)
    async with working(worker) as bench:
        payload = await bench.given("escavador_a")
        assert payload["status"] == "erro"
        assert (payload["erros"][0]["codigo"], payload["erros"][0]["definitivo"]) == (code, definitive)


async def test_deep_results_are_refused_at_home() -> None:
    worker = Worker()

    @worker.escavador("a")
    def deep() -> Any:
        value: Any = 1
        for _ in range(100):
            value = [value]
        return value

    async with working(worker) as bench:
        assert (await bench.given("escavador_a"))["erros"][0]["codigo"] == "resultado_invalido"


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ({"arquivo": "r.pdf"}, {"arquivo": "r.pdf"}),
        (None, {}),
        ([1], {"resultado": [1]}),
        ({"status": "erro", "erros": ["não deu"]}, {"status": "erro", "erros": ["não deu"]}),
    ],
)
async def test_an_executor_answers_with_what_it_returns(value: Any, payload: dict[str, Any]) -> None:
    worker = Worker()
    worker.executador("e")(lambda: value)
    async with working(worker) as bench:
        assert await bench.given("executador_e", tipo_evento="iniciar_execucao") == payload


@pytest.mark.parametrize("value", [{"erros": [1]}, {"executador": 5}, {"tentativa": "x"}, {"ticket_id": 7}])
async def test_an_executor_cannot_answer_what_would_be_refused(value: Any) -> None:
    worker = Worker()
    worker.executador("e")(lambda: value)
    async with working(worker) as bench:
        payload = await bench.given("executador_e", tipo_evento="iniciar_execucao")
        if value.keys() & {"tentativa", "ticket_id"}:
            assert payload in (value, payload)  # the envelope's own win
        else:
            assert payload["erros"][0]["codigo"] == "resultado_invalido"


async def test_an_order_that_cannot_be_read_is_answered_when_it_says_whose_it_is() -> None:
    worker = Worker()
    worker.escavador("a")(lambda: 1)
    async with working(worker) as bench:
        await bench.order("escavador_a", tipo_evento="outro")
        answer = await bench.answer()
        assert (answer["ticket_id"], answer["payload"]["erros"][0]["codigo"]) == ("t", "ordem_invalida")
        await bench.broker.publish([Outgoing("escavador_a", b"lixo", "m")])
        assert (await bench.given("escavador_a"))["dados"] == 1  # and the rest goes on
        assert bench.broker.depths()["escavador_a"] == (0, 0)


async def test_async_callables_and_coroutines_from_plain_functions_work() -> None:
    worker = Worker()

    class Caller:
        async def __call__(self, parametros: Any) -> Any:
            return "called"

    worker.escavador("a")(Caller())
    async with working(worker) as bench:
        assert (await bench.given("escavador_a"))["dados"] == "called"


async def test_concurrency_holds_over_all_functions_together() -> None:
    worker = Worker(concurrency=2)
    now, most, lock = 0, 0, threading.Lock()

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1

    for name in "abcd":
        worker.escavador(name)(count)
    async with working(worker) as bench:
        for _ in range(8):
            for name in "abcd":
                await bench.order(f"escavador_{name}")
        for _ in range(32):
            await bench.answer()
    assert most == 2


async def test_stop_before_run_ends_at_once() -> None:
    worker = Worker()
    worker.escavador("a")(lambda: 1)
    task = asyncio.create_task(worker.run(BrokerTransport(MemoryBroker())))
    worker.stop()
    await asyncio.wait_for(task, DEADLINE_S)
    async with working(worker) as bench:  # and it can be used again
        assert (await bench.given("escavador_a"))["dados"] == 1


async def test_work_in_hand_is_finished_and_the_rest_given_back() -> None:
    worker = Worker(concurrency=1)
    began, may = asyncio.Event(), asyncio.Event()

    @worker.escavador("a")
    async def a() -> str:
        began.set()
        await may.wait()
        return "done"

    worker.escavador("b")(a)
    async with working(worker) as bench:
        await bench.order("escavador_a")
        await began.wait()
        await bench.order("escavador_b")
        worker.stop()
        may.set()
        assert (await bench.answer())["payload"]["dados"] == "done"
    depths = bench.broker.depths()
    assert depths["escavador_a"] == (0, 0) and depths["escavador_b"] == (1, 0)


async def test_patience_ends() -> None:
    """An async function is cancelled, a thread is left alone, and both orders are given back."""
    worker = Worker(patience=0.2)
    cancelled, may, began = asyncio.Event(), threading.Event(), threading.Event()

    @worker.escavador("a")
    async def a() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    @worker.escavador("b")
    def b() -> None:
        began.set()
        may.wait(60)

    async with working(worker) as bench:
        await bench.order("escavador_a")
        await bench.order("escavador_b")
        await asyncio.to_thread(began.wait)
    may.set()
    assert cancelled.is_set()
    assert bench.broker.depths()["escavador_a"] == (1, 0) and bench.broker.depths()["escavador_b"] == (1, 0)


async def test_work_that_takes_far_too_long_is_given_up_and_frees_its_place() -> None:
    worker, cancelled, go = Worker(concurrency=1), asyncio.Event(), threading.Event()

    @worker.escavador("a")
    async def a(parametros: Any) -> Any:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    @worker.escavador("b")
    def b(parametros: Any) -> Any:
        go.wait(60)

    @worker.escavador("c")
    async def c() -> str:
        raise TimeoutError("of its own")

    async with working(worker) as bench:
        for queue in ("escavador_a", "escavador_b"):
            (error,) = (await bench.given(queue, prazo=LATE))["erros"]
            assert error == {
                "codigo": "tempo_esgotado",
                "mensagem": f"não terminou a tempo de {LATE}",
                "definitivo": False,
            }
        assert cancelled.is_set()
        (error,) = (await bench.given("escavador_c", prazo=LATE))["erros"]
        assert error["codigo"] == "TimeoutError"
        go.set()


async def test_a_thread_that_hangs_does_not_hold_up_the_interpreter(tmp_path: Any) -> None:
    script = tmp_path / "s.py"
    script.write_text(
        "import asyncio, time, sys\n"
        "from oraculo.worker.threads import Threads\n"
        "async def main():\n"
        "    threads = Threads()\n"
        "    assert await threads.run(lambda: 5) == 5\n"
        "    call = asyncio.create_task(threads.run(lambda: time.sleep(3600)))\n"
        "    await asyncio.sleep(0.1)\n"
        "    call.cancel()\n"
        "    assert await threads.run(lambda: 6) == 6\n"
        "    threads.close()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, str(script))
    assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0


class Flaky:
    """A transport whose server is away now and then."""

    keep_every: float | None = None
    take_grace = 0.0
    sign: Callable[[bytes], bytes] | None = None

    def __init__(self, inner: BrokerTransport, fails: list[BaseException]) -> None:
        self.inner, self.fails = inner, fails
        self.take: Callable[[str, int, float], Awaitable[list[Job]]] = inner.take
        self.give_back, self.keep, self.close = inner.give_back, inner.keep, inner.close

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        if self.fails:
            raise self.fails.pop()
        await self.inner.answer(answers)


async def test_answers_are_sent_until_they_arrive_also_at_a_stop() -> None:
    worker = Worker()
    worker.escavador("a")(lambda: 1)
    bench = Bench(worker)
    fails: list[BaseException] = [ServerUnreachableError("x", "y"), OSError("z"), KeyError("a bug of ours")]
    task = asyncio.create_task(worker.run(Flaky(BrokerTransport(bench.broker), fails)))
    await bench.order("escavador_a")
    await until(lambda: len(fails) < 3)
    worker.stop()
    assert (await bench.answer())["payload"]["dados"] == 1
    await asyncio.wait_for(task, DEADLINE_S)


def test_registering_refuses_what_cannot_work() -> None:
    worker = Worker()
    with pytest.raises(TypeError, match="url"):
        worker.escavador("a")(lambda url: None)
    with pytest.raises(ValueError, match="a b"):
        worker.escavador("a b")
    with pytest.raises(ValueError, match="concurrency"):
        Worker(concurrency=0)
