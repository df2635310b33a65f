"""Records `docs/images/run.gif`: a run on the real dashboard, moved through its past event by event.

    python -m tools.docs.recording [FILE]

A server with a worker is started on an empty folder, a plan is submitted and ends: two collections, one of which goes
well only when it is tried again, an order for each item, and a summary. Then Chromium opens the page of the run and
its slider is moved from the first event to the last, with one frame for each.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright
from tools.servers.chromium import Chromium

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs/images/run.gif"
VIEW = ViewportSize(width=1120, height=1060)
PICTURE_WIDTH = 930
COLOURS = 96
FRAME_MS, LAST_FRAME_MS = 260, 2500
FRAMES_MAX = 60
TIMEOUT_MS = 120_000

APP = """
import time
from oraculo import Plan, Worker, WorkError

worker = Worker(concurrency=8)


@worker.collector("orders")
def orders(params: dict) -> list[dict]:
    time.sleep(0.4)
    return [{"item": "tea"}, {"item": "cup"}, {"item": "pot"}]


@worker.collector("prices")
def prices(params: dict, tentativa: int) -> dict:
    time.sleep(0.3)
    if tentativa == 1:
        raise WorkError("HTTP 503 from prices.example", code="unavailable")
    return {"tea": 4, "cup": 9, "pot": 21}


@worker.executor("invoice")
def invoice(params: dict) -> dict:
    time.sleep({"tea": 0.3, "cup": 0.7, "pot": 0.5}[params["order"]["item"]])
    return {"item": params["order"]["item"], "total": params["prices"][params["order"]["item"]]}


@worker.executor("summary")
def summary(params: dict) -> dict:
    time.sleep(0.2)
    return {"total": sum(one["total"] for one in params["invoices"])}


plan = Plan()
ordered = plan.collect("orders", "orders")
priced = plan.collect("prices", "prices")
priced_order = {"order": Plan.item, "prices": priced.data}
invoices = plan.for_each("invoices", ordered.data, Plan.executor("invoice", priced_order))
total = plan.execute("summary", "summary", {"invoices": invoices.results})
plan.output = total.result
"""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of `oraculo up` with the worker, on an empty folder."""
    env = {**os.environ, "ORACULO_STORE": f"sqlite:///{folder}/oraculo.db"}
    command = [sys.executable, "-m", "oraculo", "up", "--port", "0", "--worker", "app:worker", "--json"]
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def submitted(url: str, folder: Path) -> str:
    """The id of a run of the plan, which has ended."""
    command = [sys.executable, "-m", "oraculo", "submit", "app.py", "--wait", "120", "--url", url]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    result = json.loads(said.stdout) if said.returncode == 0 else {}
    if result.get("status") != "concluida":
        raise SystemExit(f"the run did not go well: {said.stdout}{said.stderr}")
    return str(result["correlation_id"])


def frames(page: Page) -> Iterator[Image.Image]:
    """The page at every event, or at as many of them as there may be frames, evenly."""
    slider = page.locator("[data-slider]")
    slider.wait_for()
    page.wait_for_function("document.querySelector('[data-slider]').max > 1")
    count = int(slider.get_attribute("max") or 1)
    shown = sorted({round(1 + at * (count - 1) / (FRAMES_MAX - 1)) for at in range(FRAMES_MAX)})
    for number in shown:
        slider.evaluate(
            "(one, value) => { one.value = value; one.dispatchEvent(new Event('input', {bubbles: true})); }", number
        )
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        image = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
        yield image.resize((PICTURE_WIDTH, round(image.height * PICTURE_WIDTH / image.width)), Image.Resampling.LANCZOS)


def write(pictures: list[Image.Image], target: Path) -> None:
    """One file of all frames, with the colours of the last one; the last stands longest."""
    palette = pictures[-1].quantize(COLOURS)
    few = [one.quantize(COLOURS, palette=palette, dither=Image.Dither.NONE) for one in pictures]
    lengths = [*[FRAME_MS] * (len(few) - 1), LAST_FRAME_MS]
    few[0].save(target, save_all=True, append_images=few[1:], duration=lengths, loop=0, optimize=True)


def record(target: Path) -> int:
    """Write the recording; return how many frames it has."""
    with tempfile.TemporaryDirectory() as text, sync_playwright() as playwright:
        folder = Path(text)
        (folder / "app.py").write_text(APP, encoding="utf-8")
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=Chromium.program(), args=arguments)
        with server(folder) as url:
            name = submitted(url, folder)
            page = browser.new_context(locale="en-US", viewport=VIEW, reduced_motion="reduce").new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.goto(f"{url}/runs/{name}")
            pictures = list(frames(page))
        browser.close()
    write(pictures, target)
    return len(pictures)


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    sys.stdout.write(f"{record(target)} frames in {target}\n")


if __name__ == "__main__":
    main()
