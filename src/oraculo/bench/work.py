"""The trivial work of the benchmark: three collectors and one executor that do nothing but answer."""

from __future__ import annotations

import time
from typing import Any

from oraculo.worker.worker import Worker

COLLECTORS = ("a", "b", "c")
STEPS: list[tuple[float, float]] = []  # of chains, in this process
REQUEST: dict[str, Any] = {
    "coletas": [{"fonte": f"bench_{name}", "parametros": {"n": 1}} for name in COLLECTORS],
    "execucoes": [{"executador": "bench_soma", "parametros": {}}],
}


def wide(width: int, *, fan_in: bool) -> dict[str, Any]:
    """So many collects; with a fan-in, one execute gets all their results."""
    collects = {"coletas": [{"fonte": "bench_a", "parametros": {"n": number}} for number in range(width)]}
    return {**collects, "execucoes": REQUEST["execucoes"]} if fan_in else collects


def mapped(width: int, faz: dict[str, Any] | None = None, at_once: int | None = None) -> dict[str, Any]:
    """A map over so many items, each a collect unless `faz` says what; at most `at_once` at once."""
    faz = faz or {"fonte": "bench_a", "parametros": {"n": "${{ item }}"}}
    limit = {} if at_once is None else {"ao_mesmo_tempo": at_once}
    return {
        "entrada": {"lista": list(range(width))},
        "tarefas": {"m": {"para_cada": "${{ entrada.lista }}", "faz": faz, **limit}},
    }


def chained(length: int, executor: str, params: dict[str, Any]) -> dict[str, Any]:
    """So many executes, each when the one before is done."""
    task = {"executador": executor, "parametros": params}
    tasks = {"t0": task} | {f"t{n}": {**task, "depende": [f"t{n - 1}"]} for n in range(1, length)}
    return {"tarefas": tasks, "timeout_s": 3600}


def make_worker(concurrency: int = 256) -> Worker:
    worker = Worker(concurrency=concurrency, name="bench")
    for name in COLLECTORS:
        worker.escavador(f"bench_{name}")(collect)
    worker.executador("bench_soma")(add)
    worker.executador("bench_passo")(step)
    worker.executador("bench_fibo")(compute)
    return worker


async def collect(parametros: dict[str, Any]) -> dict[str, int]:
    return {"n": parametros["n"]}


async def add(dados: list[dict[str, Any]]) -> dict[str, int]:
    return {"recebidos": len(dados), "soma": sum(item["dados"]["n"] for item in dados)}


async def step() -> dict[str, int]:
    """Note when it was called, by the clock and in seconds of processor."""
    STEPS.append((time.perf_counter(), time.process_time()))
    return {}


def compute(parametros: dict[str, Any]) -> dict[str, int]:
    return {"fibo": fibonacci(parametros["n"])}


def fibonacci(n: int) -> int:
    """As slow as it can be."""
    return n if n <= 1 else fibonacci(n - 1) + fibonacci(n - 2)


worker = make_worker()
