"""Large plans of Fluxo C through a whole server: 1,000 tasks in 30 layers, and 5,000 beside each other, on the engines
`local` and `temporal`. `make test` has the layers, on both; `make chaos` all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tools.servers.temporal import settings_of

import servers
from acceptance.chaos import LONG
from acceptance.conftest import Server
from acceptance.hive import plan, task
from acceptance.journals import check

LAYERS, WIDE = "layers", "wide"


def tasks_of(shape: str) -> list[dict[str, Any]]:
    if shape == WIDE:
        return [task(f"t{n}") for n in range(5000)]
    layer = [n * 30 // 1000 for n in range(1000)]
    by_layer: dict[int, list[str]] = {}
    for n in range(1000):
        by_layer.setdefault(layer[n], []).append(f"t{n}")
    return [task(f"t{n}", *by_layer.get(layer[n] - 1, ())) for n in range(1000)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["local", "temporal"])
@pytest.mark.parametrize("shape", [LAYERS, WIDE] if LONG else [LAYERS])
def test_a_large_plan(server: Callable[..., Server], engine: str, shape: str) -> None:
    one = server()
    one.env |= {"SCHEDULER_MAX_PARALLEL_TICKETS": "1000"}
    if engine == "temporal":
        one.env |= settings_of(servers.shared("temporal"))
    one.up()
    wanted = tasks_of(shape)
    began = time.monotonic()
    taken = one.call("POST", "/api/v1/plans", json=plan("large", wanted))
    assert taken is not None and taken.status_code == 202, taken
    done: set[str] = set()
    while len(done) < len(wanted):
        leased = one.call("POST", "/api/v1/queues/execution.tickets/lease", json={"max": 1000, "wait": 20})
        assert leased is not None and leased.status_code == 200
        orders = [message["mensagem"] for message in leased.json()["mensagens"]]
        assert orders, f"nothing comes after {len(done)}"
        answers = [
            {
                "correlation_id": order["correlation_id"], "ticket_id": order["ticket_id"],
                "tentativa": order["tentativa"], "tipo_evento": "resultado_execucao", "payload": {"status": "ok"},
                "timestamp": "2025-10-14T12:00:00Z",
            }
            for order in orders
        ]  # fmt: skip
        accepted = one.call("POST", "/api/v1/results", json=answers)
        assert accepted is not None and accepted.status_code == 202
        done |= {order["ticket_id"] for order in orders}
    result = one.result("corr-large")
    took = time.monotonic() - began
    assert result["fluxo_c"]["metrics"]["successful_tickets"] == len(wanted)
    assert one.terminate() == 0
    assert check(one.store)["attempts"] == len(wanted)
    print(f"\n{engine}, {shape}: {len(wanted)} tickets in {took:.1f} s")
