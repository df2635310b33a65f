"""Nothing accepted is lost and every result counts once, whatever is killed and whenever."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from acceptance.journals import check
from oraculo.runtime.crash import POINTS

KILLS = 30
ORCHESTRATIONS = 200


def request(number: int) -> dict[str, Any]:
    return {
        "correlation_id": f"pedido-{number}",
        "coletas": [{"fonte": f"bench_{name}", "parametros": {"n": number}} for name in "abc"],
        "execucoes": [{"executador": "bench_soma"}],
        "timeout_s": 600,
    }


@pytest.mark.timeout(400)
def test_server_killed_thirty_times_while_two_hundred_orchestrations_run(
    server: Callable[..., Any], worker: Callable[..., Any]
) -> None:
    one = server()
    one.up()
    worker("oraculo.bench.work:worker", one.url)
    accepted: set[str] = set()
    finished = threading.Event()

    def submit() -> None:
        """Submits slowly enough to last for all kills; what gets no answer is sent again with the same id."""
        for number in range(ORCHESTRATIONS):
            body = request(number)
            while not finished.is_set():
                answer = one.call("POST", "/api/v1/orchestrations", json=body)
                if answer is not None and answer.status_code == 202:
                    accepted.add(answer.json()["correlation_id"])
                    break
                assert answer is None or answer.status_code == 503, answer.text
                finished.wait(0.05)
            finished.wait(0.1)

    submitter = threading.Thread(target=submit)
    submitter.start()
    luck = random.Random(17)
    try:
        for _ in range(KILLS):
            time.sleep(luck.uniform(0.05, 0.9))  # the moment of the kill is random on purpose
            one.kill()
            one.up()
        submitter.join(200)
    finally:
        finished.set()
        submitter.join()
    assert len(accepted) == ORCHESTRATIONS
    for number in range(ORCHESTRATIONS):
        result = one.result(f"pedido-{number}")
        assert result["status"] == "concluida", result
        assert [item["dados"] for item in result["coletas"]] == [{"n": number}] * 3
        assert result["execucoes"][0]["resultado"]["soma"] == 3 * number
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["concluida"] == seen["orchestrations"] == ORCHESTRATIONS
    print(f"\n{KILLS} kills, {dict(seen)}")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("count", [1, 4])
def test_killed_at_each_named_point(server: Callable[..., Any], point: str, count: int) -> None:
    one = server("--worker", "oraculo.bench.work:worker")
    one.up(ORACULO_CRASH_AT=f"{point}:{count}")
    sent: list[int] = []
    for number in range(50):
        body = {**request(number), "notificar": {"fila": "avisos"}}
        answer = one.call("POST", "/api/v1/orchestrations", json=body)
        sent.append(number)
        if answer is None:
            break
        one.call("GET", f"/api/v1/orchestrations/pedido-{number}/result?wait=5")
        if not one.running:
            break
    assert one.wait() == -9, "the point was never reached"
    one.up()
    for number in sent:  # what got no answer is asked again; what was accepted is the same run
        answer = one.call("POST", "/api/v1/orchestrations", json={**request(number), "notificar": {"fila": "avisos"}})
        assert answer is not None
        assert answer.status_code == 202
        result = one.result(f"pedido-{number}")
        assert result["status"] == "concluida"
        assert result["execucoes"][0]["resultado"]["soma"] == 3 * number
    notices = 0
    while notices < len(sent):
        leased = one.call("POST", "/api/v1/queues/avisos/lease", json={"max": 100, "wait": 5})
        assert leased is not None
        ids = [m["mensagem"]["correlation_id"] for m in leased.json()["mensagens"]]
        if not ids:
            break
        notices += len(set(ids))
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["concluida"] == len(sent)


def test_sigterm_under_load_loses_nothing_and_needs_no_extra_attempt(
    server: Callable[..., Any], worker: Callable[..., Any]
) -> None:
    one = server()
    one.up()
    worker("oraculo.bench.work:worker", one.url)
    for number in range(40):
        answer = one.call("POST", "/api/v1/orchestrations", json=request(number))
        assert answer is not None
        assert answer.status_code == 202
    started = time.monotonic()
    assert one.terminate() == 0
    assert time.monotonic() - started < 30
    one.up()
    for number in range(40):
        assert one.result(f"pedido-{number}")["status"] == "concluida"
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["attempts"] == 40 * 4
