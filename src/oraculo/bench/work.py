"""The trivial work of the benchmark: three collectors and one executor that do nothing but answer."""

from __future__ import annotations

from typing import Any

from oraculo.worker.worker import Worker

COLLECTORS = ("a", "b", "c")
REQUEST: dict[str, Any] = {
    "coletas": [{"fonte": f"bench_{name}", "parametros": {"n": 1}} for name in COLLECTORS],
    "execucoes": [{"executador": "bench_soma", "parametros": {}}],
}


def wide(width: int, *, fan_in: bool) -> dict[str, Any]:
    """So many collects; with a fan-in, one execute gets all their results."""
    collects = {"coletas": [{"fonte": "bench_a", "parametros": {"n": number}} for number in range(width)]}
    return {**collects, "execucoes": REQUEST["execucoes"]} if fan_in else collects


def mapped(width: int) -> dict[str, Any]:
    """A map over so many items, each a collect."""
    faz = {"fonte": "bench_a", "parametros": {"n": "${{ item }}"}}
    return {
        "entrada": {"lista": list(range(width))},
        "tarefas": {"m": {"para_cada": "${{ entrada.lista }}", "faz": faz}},
    }


def make_worker(concurrency: int = 256) -> Worker:
    worker = Worker(concurrency=concurrency, name="bench")
    for name in COLLECTORS:
        worker.escavador(f"bench_{name}")(collect)
    worker.executador("bench_soma")(add)
    return worker


async def collect(parametros: dict[str, Any]) -> dict[str, int]:
    return {"n": parametros["n"]}


async def add(dados: list[dict[str, Any]]) -> dict[str, int]:
    return {"recebidos": len(dados), "soma": sum(item["dados"]["n"] for item in dados)}


worker = make_worker()
