"""Nothing accepted is lost and every result counts once, whatever is killed and whenever.

`make test` kills the server 30 times, a run of 10,000 tickets among what is under way; `make chaos`
(ORACULO_CHAOS_KILLS) more often.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from acceptance.chaos import times
from acceptance.journals import check, unfinished
from oraculo.runtime.crash import POINTS

KILLS = times(30)
ORCHESTRATIONS = 200  # at least
SUBMITTERS = 2
PATIENCE = 120.0  # seconds for the wide run to end once the kills are over
WIDTH = 10_000


def request(number: int) -> dict[str, Any]:
    return {
        "correlation_id": f"pedido-{number}",
        "coletas": [{"fonte": f"bench_{name}", "parametros": {"n": number}} for name in "abc"],
        "execucoes": [{"executador": "bench_soma"}],
        "timeout_s": 600,
    }


def wide() -> dict[str, Any]:
    collects = [{"fonte": "bench_a", "parametros": {"n": number}, "timeout_s": 900} for number in range(WIDTH)]
    return {"correlation_id": "largo", "coletas": collects, "timeout_s": 1800}


def noticed(number: int) -> dict[str, Any]:
    return {**request(number), "notificar": {"fila": "avisos"}}


@pytest.mark.timeout(300 + 20 * KILLS)
def test_server_killed_again_and_again_under_load(server: Callable[..., Any], worker: Callable[..., Any]) -> None:
    one = server()
    one.up()
    worker("oraculo.bench.work:worker", one.url)
    answer = one.call("POST", "/api/v1/orchestrations", json=wide())
    assert answer is not None and answer.status_code == 202, answer
    accepted: list[int] = []
    enough, finished = threading.Event(), threading.Event()

    numbers = count()

    def submit() -> None:
        """What gets no answer is sent again with the same id. There is always something under way."""
        for number in numbers:
            while not finished.is_set():
                answer = one.call("POST", "/api/v1/orchestrations", json=request(number))
                if answer is not None and answer.status_code == 202:
                    accepted.append(number)
                    break
                assert answer is None or answer.status_code == 503, answer.text
                finished.wait(0.05)
            if finished.wait(0.02) or (enough.is_set() and len(accepted) >= ORCHESTRATIONS):
                return

    submitters = [threading.Thread(target=submit) for _ in range(SUBMITTERS)]
    for submitter in submitters:
        submitter.start()
    luck = random.Random(17)
    hit, hit_wide = [], []
    try:
        for _ in range(KILLS):
            time.sleep(luck.uniform(0.05, 0.5))  # the moment of the kill is random on purpose
            one.kill()
            hit.append(unfinished(one.store))
            hit_wide.append(unfinished(one.store, "largo"))
            one.up()
        enough.set()
        for submitter in submitters:
            submitter.join(60)
    finally:
        finished.set()
        for submitter in submitters:
            submitter.join()
    assert len(accepted) >= ORCHESTRATIONS
    for number in accepted:
        result = one.result(f"pedido-{number}")
        assert result["status"] == "concluida", result
        assert [item["dados"] for item in result["coletas"]] == [{"n": number}] * 3
        assert result["execucoes"][0]["resultado"]["soma"] == 3 * number
    widest = one.result("largo", PATIENCE)
    assert (widest["status"], [item["dados"]["n"] for item in widest["coletas"]]) == ("concluida", list(range(WIDTH)))
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["concluida"] == seen["orchestrations"] == len(accepted) + 1
    assert sum(map(bool, hit)) > KILLS // 2, f"most kills found nothing to interrupt: {hit}"
    assert sum(map(bool, hit_wide)) >= 3, f"the wide run was hardly hit: {hit_wide}"
    print(f"\n{KILLS} kills, which found {hit} under way, of the wide run {hit_wide}, {dict(seen)}")


@pytest.mark.parametrize("count", [1, 4])
def test_killed_at_each_named_point(server: Callable[..., Any], count: int) -> None:
    """One after the other, so that each life recovers what the one before left, and dies on its way."""
    one = server("--worker", "oraculo.bench.work:worker")
    sent = 0
    for point in POINTS:
        before = sent
        one.up(ORACULO_CRASH_AT=f"{point}:{count}")
        while one.running:
            assert sent < before + 50, f"{point} was never reached"
            answer = one.call("POST", "/api/v1/orchestrations", json=noticed(sent))
            sent += 1
            if answer is None:  # it dies: requests to a dying server would count as visits without reaching anything
                break
            one.call("GET", f"/api/v1/orchestrations/pedido-{sent - 1}/result?wait=5")
        assert one.wait() == -9, point
    one.up()
    for number in range(sent):  # what got no answer is asked again; what was accepted is the same run
        answer = one.call("POST", "/api/v1/orchestrations", json=noticed(number))
        assert answer is not None
        assert answer.status_code == 202
        result = one.result(f"pedido-{number}")
        assert result["status"] == "concluida"
        assert result["execucoes"][0]["resultado"]["soma"] == 3 * number
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["concluida"] == sent
    assert seen["notices delivered"] == sent
    print(f"\nkilled at {len(POINTS)} points, {dict(seen)}")


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
    assert one.terminate() == 0
    one.up()
    for number in range(40):
        assert one.result(f"pedido-{number}")["status"] == "concluida"
    assert one.terminate() == 0
    seen = check(one.store)
    assert seen["attempts"] == 40 * 4
