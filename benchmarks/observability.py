"""What observability costs: W1 without it, with metrics and JSON logs, and with traces of a tenth as well.

    python benchmarks/observability.py --rounds 300 -n 400 --json out.json

One process; the variants take turns, a block of orchestrations each, and what all blocks of a variant took together is
compared: what else the machine does meanwhile, and how the database grows, is the same for all. Single blocks differ by
15 % (the disk), so it takes some hundreds of them to tell 4 % from 5 %. Logs go to a file, spans over HTTP to a
receiver in another process that reads and forgets them; the CPU time of a block is taken when its spans are sent. The
in-process broker and workers are the dearest case: everything shares one core.
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
import time
from pathlib import Path
from typing import Any

from oraculo import logs
from oraculo.bench.work import REQUEST, make_worker
from oraculo.logs.events import EventLog
from oraculo.runtime.requests import pass_on
from oraculo.runtime.tuning import tune
from oraculo.service import Oraculo
from oraculo.settings.settings import load

TITLES = {"off": "nothing", "on": "metrics, JSON logs", "traces": "metrics, JSON logs, traces of 10 %"}
VARIANTS = tuple(TITLES)
BUDGETS = {"on": 5.0, "traces": 10.0}  # per cent
WARM_UP = 2  # rounds that do not count


class Forgetful(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def receive() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful)
    print(server.server_address[1], flush=True)
    server.serve_forever()


async def measure(rounds: int, n: int, endpoint: str) -> list[dict[str, Any]]:
    logs.configure("INFO", "json")
    tune()
    steps: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="oraculo-bench-") as folder, tempfile.TemporaryFile() as lines:
        logs.stream = lines
        given = {
            "ORACULO_STORE": f"sqlite:///{folder}/bench.db",
            "OTEL_EXPORTER_ENDPOINT": endpoint,
            "OTEL_TRACES_SAMPLER_ARG": "0.1",
        }
        async with Oraculo(load(given, None), workers=[make_worker()]) as oraculo:
            for round_ in range(rounds + WARM_UP):
                for variant in VARIANTS[round_ % 3 :] + VARIANTS[: round_ % 3]:
                    step = await _block(oraculo, variant, n)
                    if round_ >= WARM_UP:
                        steps.append({"round": round_ - WARM_UP, "variant": variant, **step})
    return steps


async def _block(oraculo: Oraculo, variant: str, n: int) -> dict[str, float]:
    tracer = oraculo.tracer
    assert tracer is not None
    observers = {"off": [], "on": [oraculo.metrics, EventLog()], "traces": [oraculo.metrics, EventLog(), tracer]}
    oraculo.kernel_ports.observers._observers[:] = observers[variant]
    oraculo.requests._trace = tracer.begin if variant == "traces" else pass_on

    async def one() -> None:
        accepted = await oraculo.submit(REQUEST)
        await oraculo.result_json(accepted.run, wait=None)

    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(n)))
    seconds = time.perf_counter() - started
    oraculo.kernel_ports.observers.flush()
    counts = tracer.exporter.counts
    while tracer._ended or counts["feito"] > counts["enviado"] + counts["perdido"]:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    return {"per_second": n / seconds, "cpu_ms_each": (time.process_time() - cpu) / n * 1000}


def summary(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Throughput of all blocks together, and what each variant loses against none; by medians of the blocks as well."""
    rows = []
    for variant in VARIANTS:
        mine = [step for step in steps if step["variant"] == variant]
        speed = statistics.harmonic_mean(step["per_second"] for step in mine)
        median = statistics.median(step["per_second"] for step in mine)
        cpu = statistics.mean(step["cpu_ms_each"] for step in mine)
        rows.append(
            {
                "variant": variant,
                "per_second": round(speed, 1),
                "median": round(median, 1),
                "cpu_ms_each": round(cpu, 4),
            }
        )
    for row in rows[1:]:
        row["slower_percent_by_medians"] = round((1 - row["median"] / rows[0]["median"]) * 100, 1)
        row["slower_percent"] = round((1 - row["per_second"] / rows[0]["per_second"]) * 100, 1)
        row["cpu_percent"] = round((row["cpu_ms_each"] / rows[0]["cpu_ms_each"] - 1) * 100, 1)
        row["budget_percent"] = BUDGETS[row["variant"]]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", type=int, default=400, help="orchestrations of one block")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", type=Path, help="write everything that was measured")
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive:
        receive()
    try:
        import uvloop

        run: Any = uvloop.run
    except ImportError:
        run = asyncio.run
    with subprocess.Popen([sys.executable, __file__, "--receive"], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        port = int(receiver.stdout.readline())
        try:
            steps = run(measure(options.rounds, options.n, f"http://127.0.0.1:{port}/v1/traces"))
        finally:
            receiver.terminate()
    rows = summary(steps)
    if options.json:
        options.json.write_text(json.dumps({"n": options.n, "steps": steps, "summary": rows}, indent=1) + "\n")
    for row in rows:
        line = f"{TITLES[row['variant']]:<36} {row['per_second']:8.0f}/s  {row['cpu_ms_each']:.3f} ms CPU each"
        if "slower_percent" in row:
            line += f"  {row['slower_percent']:+5.1f} % slower (medians {row['slower_percent_by_medians']:+.1f} %),"
            line += f" {row['cpu_percent']:+5.1f} % CPU"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
