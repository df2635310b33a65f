"""What observability costs: W1 without it, with metrics and JSON logs, and with traces of a tenth as well.

    python benchmarks/observability.py --repeats 7 -n 4000 --json out.json

The variants alternate in one run, each time in a process of its own; medians are compared. Logs go to a file, metrics
are scraped every five seconds, spans go to a receiver that reads and forgets them. The in-process broker and workers
are the dearest case: everything shares one core.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

VARIANTS = ("off", "on", "traces")
TITLES = {"off": "nothing", "on": "metrics, JSON logs", "traces": "metrics, JSON logs, traces of 10 %"}
BUDGETS = {"on": 5.0, "traces": 10.0}  # per cent
WARM_UP = 100


async def one_run(variant: str, n: int, endpoint: str) -> dict[str, float]:
    from oraculo import logs
    from oraculo.bench.work import REQUEST, make_worker
    from oraculo.bootstrap import Oraculo
    from oraculo.runtime.tuning import tune
    from oraculo.settings import load

    logs.configure("ERROR" if variant == "off" else "INFO", "json")
    tune()
    with tempfile.TemporaryDirectory(prefix="oraculo-bench-") as folder:
        given = {"ORACULO_STORE": f"sqlite:///{folder}/bench.db"}
        if variant == "traces":
            given |= {"OTEL_EXPORTER_ENDPOINT": endpoint, "OTEL_TRACES_SAMPLER_ARG": "0.1"}
        async with Oraculo(load(given, None), workers=[make_worker()]) as oraculo:
            if variant == "off":
                oraculo.engine._observers.clear()

            async def one() -> None:
                accepted = await oraculo.submit(REQUEST)
                await oraculo.ended(accepted.run)

            async def scrape() -> None:
                while variant != "off":
                    await asyncio.sleep(5)
                    oraculo.metrics.exposition()

            await asyncio.gather(*(one() for _ in range(WARM_UP)))
            while oraculo.tracer is not None and not oraculo.tracer.exporter.counts["enviado"]:
                await asyncio.gather(*(one() for _ in range(WARM_UP)))  # the first export imports and connects
            scraper = asyncio.create_task(scrape())
            cpu, started = time.process_time(), time.perf_counter()
            await asyncio.gather(*(one() for _ in range(n)))
            seconds, used = time.perf_counter() - started, time.process_time() - cpu
            scraper.cancel()
            counts = {} if oraculo.tracer is None else dict(oraculo.tracer.exporter.counts)
            return {"per_second": n / seconds, "cpu_ms_each": used / n * 1000, "spans": counts.get("feito", 0)}


class Forgetful(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def measure(repeats: int, n: int) -> list[dict[str, Any]]:
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{receiver.server_address[1]}/v1/traces"
    steps = []
    for repeat in range(repeats):
        for variant in VARIANTS[repeat % 3 :] + VARIANTS[: repeat % 3]:
            with tempfile.TemporaryFile() as said:
                done = subprocess.run(
                    [sys.executable, __file__, "--variant", variant, "-n", str(n), "--endpoint", endpoint],
                    stdout=subprocess.PIPE,
                    stderr=said,
                    check=True,
                )
                lines = said.seek(0, 2)
            step = {"repeat": repeat, "variant": variant, "log_bytes": lines, **json.loads(done.stdout)}
            steps.append(step)
            print(f"{variant:<7} {step['per_second']:8.0f}/s  {step['cpu_ms_each']:.3f} ms CPU", file=sys.stderr)
    receiver.shutdown()
    return steps


def summary(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians, and what each variant loses against none, of the same repeat where that can be said."""
    rows = []
    for variant in VARIANTS:
        mine = [step for step in steps if step["variant"] == variant]
        speed = statistics.median(step["per_second"] for step in mine)
        cpu = statistics.median(step["cpu_ms_each"] for step in mine)
        rows.append({"variant": variant, "per_second": round(speed, 1), "cpu_ms_each": round(cpu, 4)})
    base = rows[0]
    for row in rows[1:]:
        row["loss_percent"] = round((1 - row["per_second"] / base["per_second"]) * 100, 1)
        row["cpu_percent"] = round((row["cpu_ms_each"] / base["cpu_ms_each"] - 1) * 100, 1)
        row["budget_percent"] = BUDGETS[row["variant"]]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=4000, help="orchestrations of one run")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write everything that was measured")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.variant:
        try:
            import uvloop

            run: Any = uvloop.run
        except ImportError:
            run = asyncio.run
        print(json.dumps(run(one_run(options.variant, options.n, options.endpoint))))
        return 0
    steps = measure(options.repeats, options.n)
    rows = summary(steps)
    if options.json:
        options.json.write_text(json.dumps({"n": options.n, "steps": steps, "summary": rows}, indent=1) + "\n")
    for row in rows:
        loss = (
            f"{row['loss_percent']:+5.1f} % slower, {row['cpu_percent']:+5.1f} % CPU" if "loss_percent" in row else ""
        )
        print(f"{TITLES[row['variant']]:<36} {row['per_second']:8.0f}/s  {row['cpu_ms_each']:.3f} ms CPU each  {loss}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
