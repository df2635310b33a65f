"""Two browsers and a command line watch a run; the server is killed and started again; nobody misses an event."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx2
from playwright.async_api import Browser, expect
from tools.servers.server import free_port

from cli.processes import Server, environment
from dashboard.conftest import readers
from waiting import DEADLINE_S, until

STEPS = 5


async def test_all_three_resume_without_a_gap(browser: Browser, tmp_path: Path) -> None:
    server = Server(tmp_path, "--worker", "trabalho:worker", port=free_port())
    await asyncio.to_thread(server.start)
    coletas = [
        {
            "fonte": "espera",
            "parametros": {"comecou": str(tmp_path / f"comecou{n}"), "pode": str(tmp_path / f"pode{n}")},
            "timeout_s": 60,
        }
        for n in range(STEPS)
    ]
    request = {"coletas": coletas, "correlation_id": "vigiada"}
    watching = None
    try:
        async with readers(browser) as reader, httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
            assert (await client.post("/api/v1/orchestrations", json=request)).status_code == 202
            pages = [await (await reader(server.url)).open("/runs/vigiada") for _ in range(2)]
            with (tmp_path / "watch.jsonl").open("wb") as out:
                watching = subprocess.Popen(  # noqa: ASYNC220
                    [sys.executable, "-m", "oraculo", "watch", "vigiada", "--json"],
                    cwd=tmp_path,
                    env=environment(tmp_path, ORACULO_URL=server.url),
                    stdout=out,
                )
            for page in pages:
                await page.evaluate("window.same = true")
            await until(lambda: (tmp_path / "watch.jsonl").stat().st_size)
            for n in range(2):
                (tmp_path / f"pode{n}").touch()
            for page in pages:
                await expect(page.locator("[data-progress]")).to_have_text(f"2/{STEPS}")
            await asyncio.to_thread(server.kill)
            for page in pages:
                await expect(page.locator("[data-link]")).to_contain_text("connection lost")
            await asyncio.to_thread(server.start)
            for n in range(2, STEPS):
                (tmp_path / f"pode{n}").touch()
            for page in pages:
                await expect(page.locator("[data-progress]")).to_have_text(f"{STEPS}/{STEPS}")
                await expect(page.locator("[data-status]")).to_contain_text("completed")
            assert await asyncio.to_thread(watching.wait, DEADLINE_S) == 0
            events = (await client.get("/api/v1/orchestrations/vigiada/events")).json()["events"]
            numbers = [event["seq"] for event in events]
            assert numbers == list(range(1, len(events) + 1))
            told = [json.loads(line)["seq"] for line in (tmp_path / "watch.jsonl").read_text().splitlines()]
            assert told == numbers
            for page in pages:
                assert await page.evaluate("window.same") is True  # it was never loaded again
                await expect(page.locator("[data-journal-count]")).to_have_text(f"{len(events)} events")
    finally:
        server.kill()
        if watching is not None:
            watching.kill()
            watching.wait()
