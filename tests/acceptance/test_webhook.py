"""A webhook is delivered at least once, signed, with one id, also when its receiver fails and the server dies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from standardwebhooks import Webhook

from acceptance.journals import check
from waiting import DEADLINE_S

SECRET = "whsec_" + "c2VncmVkby1kZS10ZXN0ZS1jb20tMzItYnl0ZXMhIQ=="


class Receiver:
    """Answers 500 until it is told to be well; keeps what it got."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.arrived = threading.Condition()
        self.well = False

    def wait_for(self, count: int, seconds: float = DEADLINE_S) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.got) >= count, seconds), f"{len(self.got)} of {count} came"


@pytest.fixture
def receiver() -> Iterator[tuple[Receiver, str]]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with state.arrived:
                state.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                state.arrived.notify_all()
            self.send_response(204 if state.well else 500)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield state, f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_delivered_after_failures_and_a_kill(server: Callable[..., Any], receiver: tuple[Receiver, str]) -> None:
    state, address = receiver
    one = server("--worker", "oraculo.bench.work:worker")
    env = {"ORACULO_WEBHOOK_SECRET": SECRET, "ORACULO_WEBHOOK_ALLOW": address}
    one.up(**env)
    answer = one.call(
        "POST",
        "/api/v1/orchestrations",
        json={
            "correlation_id": "avisar",
            "coletas": [{"fonte": "bench_a", "parametros": {"n": 7}}],
            "notificar": {"webhook": f"http://{address}/gancho"},
        },
    )
    assert answer is not None
    assert answer.status_code == 202
    result = one.result("avisar")
    state.wait_for(1)
    one.kill()
    state.well = True
    one.up(**env)
    state.wait_for(2)
    headers, body = state.got[-1]
    assert Webhook(SECRET).verify(body.decode(), headers) == result
    assert {got["webhook-id"] for got, _ in state.got} == {headers["webhook-id"]}
    assert json.loads(body) == result
    until_delivered(one)
    assert one.terminate() == 0
    assert check(one.store)["concluida"] == 1


def until_delivered(one: Any) -> None:
    for _ in range(200):
        answer = one.call("GET", "/api/v1/orchestrations/avisar")
        if answer is not None and answer.json()["notificacoes"][0]["situacao"] == "delivered":
            return
        one.call("GET", "/api/v1/orchestrations/avisar/result?wait=1")
    raise AssertionError("the notice was not recorded as delivered")


def test_a_private_address_is_refused_when_it_is_asked_for(server: Callable[..., Any]) -> None:
    one = server()
    one.up()
    request = {"coletas": [{"fonte": "x"}], "notificar": {"webhook": "http://127.0.0.1:9/x"}}
    answer = one.call("POST", "/api/v1/orchestrations", json=request)
    assert answer is not None
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["campo"] == "notificar.webhook"
