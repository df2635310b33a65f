"""Measures the dashboard against its budgets, in Chromium, on a store of 100,000 runs.

    .venv/bin/python -m benchmarks.dashboard             # everything, about four minutes
    .venv/bin/python -m benchmarks.dashboard --runs 5000 --repeats 1 --json out.json

Writes a store (runs spread over a day, one of 1,000 tickets, one of 10,000, one with a journal of 20,000 events),
starts `oraculo up` on it, opens pages in a fresh browser context each time (nothing cached), and follows a live run
while other runs come in. Times are from the start of the navigation until the page can be used; medians of the repeats.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Browser, Page, async_playwright
from tools.servers.chromium import Chromium

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.commands import Cancel, ConfirmDispatch, RecordResult, Start
from oraculo.core.consolidation import aggregate
from oraculo.core.events import OrchestrationClosed
from oraculo.core.plan import Plan
from oraculo.core.step import Step, step
from oraculo.core.ticket_id import ticket_id
from oraculo.dashboard import assets
from oraculo.ports.journal import Batch
from oraculo.runtime.ids import oldest_run_at
from oraculo.wire import requests, strict_json
from oraculo.wire.requests import Defaults

RUN_READY = "[data-run][data-ready]"
MARK = """(() => {
  const look = () => {
    const ready = (selector) => document.querySelector(selector) !== null;
    if (ready("html[data-ready]") && (!ready("[data-run]") || ready("[data-run][data-ready]"))
        && (!ready("[data-scatter]") || ready("[data-scatter][data-ready]"))) {
      window.usable = performance.now();
      document.documentElement.dataset.usable = "";
      return;
    }
    requestAnimationFrame(look);
  };
  look();
})()"""


def plan_of(tickets: int, execute: bool = True) -> Plan:
    coletas = [{"fonte": f"fonte{n % 3}", "parametros": {"n": n}} for n in range(tickets)]
    wanted = {"coletas": coletas, "execucoes": [{"executador": "soma"}] if execute else [], "timeout_s": 86400}
    return requests.plan_of(requests.parse(wanted), Defaults())


def story(name: str, plan: Plan, at: datetime, number: int, ends: str, one_by_one: bool = False) -> list[Step]:
    """The steps of a run that ends as it is told to, a little later each."""
    run = oldest_run_at(at) + number
    steps = [step(None, Start(run, name, plan, "f"), at)]
    state = steps[0].state
    pause = timedelta(milliseconds=random.choice((2, 10, 40, 200, 900)))

    def do(command: Any, after: timedelta = pause) -> None:
        nonlocal at
        at += after
        done = step(state, command, at)
        if done.events:
            steps.append(done)

    brief = timedelta(milliseconds=2)
    while state.closed_at is None:
        owed = sorted(state.owed)
        for part in [[p] for p in owed] if one_by_one else [owed]:
            do(ConfirmDispatch([(p, state.tickets[p].attempt) for p in part]), brief)
        if ends == "cancelada":
            do(Cancel("engano"))
            break
        for position in owed:
            ok = not (ends == "erro" or (ends == "parcial" and position == 0))
            erros: list[dict[str, object]] = [] if ok else [{"codigo": "http_503", "mensagem": "a fonte respondeu 503"}]
            do(
                RecordResult(ok, b'{"n":1}', erros, not ok, ticket_id(run, position), 1, digest=position + 1),
                brief if len(plan.tasks) > 50 else pause,
            )
    return steps


async def write(store: SqliteStore, steps: list[Step]) -> None:
    batch = Batch(steps[-1].at, steps)
    for one in steps:
        if any(isinstance(event, OrchestrationClosed) for event in one.events):
            batch.results[one.state.run] = strict_json.dumps(aggregate(one.state))
    await store.append(batch)


async def build(path: Path, runs: int) -> None:
    random.seed(7)
    now = datetime.fromtimestamp(time.time(), UTC)
    small = [plan_of(n) for n in (1, 2, 3)]
    endings = ["concluida"] * 94 + ["erro"] * 2 + ["parcial"] * 3 + ["cancelada"]
    async with SqliteStore(str(path)) as store:
        pending: list[Step] = []
        for number in range(runs):
            at = now - timedelta(days=1) + timedelta(days=1) * number / runs
            pending += story(f"run-{number:06}", random.choice(small), at, number % 1000, random.choice(endings))
            if len(pending) > 4000:
                await write(store, pending)
                pending = []
        if pending:
            await write(store, pending)
        for name, tickets, one_by_one in (
            ("wide-1000", 1000, False),
            ("wide-10000", 10_000, False),
            ("long", 9_998, True),
        ):
            steps = story(
                name, plan_of(tickets), now - timedelta(minutes=30), 999_000 + tickets, "concluida", one_by_one
            )
            await write(store, steps)


def serve(folder: Path) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "ORACULO_STORE": f"sqlite:///{folder / 'bench.db'}", "LOG_LEVEL": "ERROR"}
    process = subprocess.Popen(
        [sys.executable, "-m", "oraculo", "up", "--port", "0", "--json"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["url"]


class Bench:
    def __init__(self, browser: Browser, url: str, repeats: int) -> None:
        self.browser, self.url, self.repeats = browser, url, repeats

    async def page(self) -> Page:
        context = await self.browser.new_context(viewport={"width": 1280, "height": 900})
        await context.add_init_script(MARK)
        return await context.new_page()

    async def usable(self, path: str) -> float:
        """Milliseconds until the page can be used, in a fresh context; the median."""
        times = []
        for _ in range(self.repeats):
            page = await self.page()
            await page.goto(self.url + path, wait_until="commit")
            await page.wait_for_selector("html[data-usable]", state="attached", timeout=60_000)
            times.append(await page.evaluate("window.usable"))
            await page.context.close()
        return statistics.median(times)

    async def run_page(self, name: str, events: int) -> dict[str, float]:
        """How a large run behaves once it is open: scrolling, seeking, memory."""
        page = await self.page()
        await page.goto(f"{self.url}/runs/{name}")
        await page.wait_for_selector(RUN_READY)
        while await page.evaluate("Number(document.querySelector('[data-slider]').max)") < events:
            await page.wait_for_timeout(100)
        await page.wait_for_timeout(1000)
        frames = await page.evaluate(
            """async () => {
              const box = document.querySelector("[data-gantt]"), journal = document.querySelector("[data-journal]");
              document.getElementById("panel-events").hidden = false; // both lists in sight
              const frames = [];
              let last = performance.now();
              for (let n = 0; n < 160; n++) { // 150 pixels a frame is a fast flick: 9,000 a second
                (n % 2 ? box : journal).scrollTop += 150;
                await new Promise(requestAnimationFrame);
                frames.push(performance.now() - last); last = performance.now();
              }
              return frames.slice(5);
            }"""
        )
        seeks = await page.evaluate(
            """async () => {
              const slider = document.querySelector("[data-slider]"), times = [];
              for (let n = 0; n < 25; n++) {
                slider.value = 1 + Math.floor((Number(slider.max) * ((n * 7) % 25)) / 25);
                const before = performance.now();
                slider.dispatchEvent(new Event("input"));
                times.push(performance.now() - before);
                await new Promise(requestAnimationFrame);
              }
              return times;
            }"""
        )
        heap = await page.evaluate("performance.memory?.usedJSHeapSize ?? 0")
        await page.context.close()
        return {"frame_p95": percentile(frames, 95), "seek_p95": percentile(seeks, 95), "heap_mb": heap / 1e6}

    async def event_to_pixel(self, tickets: int = 300) -> dict[str, float]:
        """From the instant in the journal to the frame that shows it, while other runs come in."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=30) as client:
            coletas = [{"fonte": "vivo", "timeout_s": 600} for _ in range(tickets)]
            await client.post("/api/v1/orchestrations", json={"coletas": coletas, "correlation_id": "ao-vivo"})
            page = await self.page()
            await page.goto(f"{self.url}/runs/ao-vivo")
            await page.wait_for_selector(".link-state.live")
            await page.evaluate(
                """() => {
                  window.seen = [];
                  const run = document.querySelector("[data-run]");
                  new MutationObserver(() => {
                    const version = Number(run.dataset.version);
                    requestAnimationFrame(() => setTimeout(() => window.seen.push([version, Date.now()])));
                  }).observe(run, { attributes: true, attributeFilter: ["data-version"] });
                }"""
            )
            body = {"max": 1, "wait": 5, "worker": "bench"}
            for number in range(tickets):
                [leased] = (await client.post("/api/v1/queues/escavador_vivo/lease", json=body)).json()["mensagens"]
                order = leased["mensagem"]
                await client.post(
                    "/api/v1/results",
                    json={
                        **{key: order[key] for key in ("correlation_id", "ticket_id", "tentativa", "timestamp")},
                        "tipo_evento": "resultado_coleta",
                        "payload": {"fonte": "vivo", "status": "ok", "dados": [number]},
                    },
                )
                if number % 3 == 0:
                    await client.post("/api/v1/orchestrations", json={"coletas": [{"fonte": "outra"}]})
                await asyncio.sleep(0.03)
            await page.wait_for_selector("[data-status] .s-concluida")
            await page.wait_for_timeout(300)
            seen: list[tuple[int, int]] = await page.evaluate("window.seen")
            events = (await client.get("/api/v1/orchestrations/ao-vivo/events?limit=10000")).json()["events"]
            await page.context.close()
        first = min(version for version, _ in seen)
        delays = []
        for event in events:
            if event["seq"] > first:
                shown = next(at for version, at in seen if version >= event["seq"])
                delays.append(shown - datetime.fromisoformat(event["em"]).timestamp() * 1000)
        return {"p50": percentile(delays, 50), "p95": percentile(delays, 95), "events": len(delays)}


def percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def script_bytes() -> int:
    return sum(len(gzip.compress(body, 9)) for name, (body, _) in assets.contents().items() if name.endswith(".js"))


async def measure(runs: int, repeats: int) -> list[tuple[str, float, float | None, str]]:
    found: list[tuple[str, float, float | None, str]] = []

    def tell(name: str, value: float, budget: float | None, unit: str = "ms") -> None:
        found.append((name, round(value, 1), budget, unit))
        verdict = "" if budget is None else "ok" if value <= budget else "OVER"
        limit = "" if budget is None else f"(at most {budget:g})"
        print(f"{name:<52} {value:>10.1f} {unit:<3} {limit:<16} {verdict}", flush=True)

    with tempfile.TemporaryDirectory(prefix="oraculo-dashboard-") as folder:
        begun = time.monotonic()
        await build(Path(folder) / "bench.db", runs)
        print(f"store of {runs} runs written in {time.monotonic() - begun:.0f} s", flush=True)
        process, url = serve(Path(folder))
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path=Chromium.program(), args=["--no-sandbox", "--enable-precise-memory-info"]
                )
                bench = Bench(browser, url, repeats)
                await bench.usable("/problems")  # the first page of a browser pays for starting it
                tell("a page with nothing in it, to compare with", await bench.usable("/problems/busy"), None)
                tell("overview, 24 h", await bench.usable("/?window=24h"), 1000)
                tell("overview, 7 days", await bench.usable("/?window=7d"), 1000)
                tell("list", await bench.usable("/runs"), 1000)
                tell("list, failures of one source", await bench.usable("/runs?fonte=fonte0&status=erro"), 1000)
                tell("list, beginning of an id", await bench.usable("/runs?texto=run-0421"), 1000)
                tell("run of 1,000 tickets", await bench.usable("/runs/wide-1000"), 500)
                tell("run of 10,000 tickets", await bench.usable("/runs/wide-10000"), 2000)
                tell("journal of 20,000 events", await bench.usable("/runs/long"), 1000)
                for name, label, events in (
                    ("wide-10000", "10,000 tickets", 10_000),
                    ("long", "20,000 events", 20_000),
                ):
                    page = await bench.run_page(name, events)
                    tell(f"{label}: frame while scrolling, p95", page["frame_p95"], 34)
                    tell(f"{label}: seek, p95", page["seek_p95"], 50)
                    tell(f"{label}: heap", page["heap_mb"], 150, "MB")
                live = await bench.event_to_pixel()
                tell("event to pixel, p50", live["p50"], None)
                tell("event to pixel, p95", live["p95"], 500)
                tell("all scripts, compressed", script_bytes() / 1000, 90, "kB")
                await browser.close()
        finally:
            process.terminate()
            process.wait(35)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dashboard", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = asyncio.run(measure(options.runs, options.repeats))
    if options.json:
        rows = [{"what": name, "value": value, "budget": budget, "unit": unit} for name, value, budget, unit in found]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(budget is not None and value > budget for _, value, budget, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main())
