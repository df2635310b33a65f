"""Writes the golden journals that `test_golden_journals.py` reads.

In `tests/`: `PYTHONPATH=.:.. python -m golden_journals.record [engine…]`

A journal that is there already is left as it is: it stands for what a release wrote, and every later release has to
read it. Give a new story a new name, and delete none.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from contracts.engine_cases import CASES, EngineCase
from golden_journals import core_stories, engine_stories
from golden_journals.journals import FOLDER, line_of, shown, write
from oraculo.bootstrap.adapters import store_of
from oraculo.core.replay import cause_of, rebuild
from oraculo.ports.journal import Recorded
from oraculo.wire import records

ENGINES = {"local": "local", "celery": "celery-redis", "temporal": "temporal"}


@contextmanager
def receiver() -> Iterator[str]:
    """The address of a receiver of webhooks."""
    seen: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen[self.path] += 1
            fails = self.path.startswith("/falha") and seen[self.path] == 1
            self.send_response(410 if self.path.startswith("/fim") else 500 if fails else 204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def folder_of(engine: str) -> str:
    """Journals of the first format are in a folder that is named after their engine alone."""
    return engine if records.FORMAT == 1 else f"{engine}.{records.FORMAT}"


def missing(engine: str, name: str) -> bool:
    return not (FOLDER / folder_of(engine) / f"{name}.jsonl").exists()


def record_core() -> None:
    for tell in core_stories.STORIES:
        if missing("core", tell.__name__):
            story = tell()
            recorded, lines, first = [], [], 1
            for at, events in story.journal:
                text = records.encode(events).decode()
                cause = type(cause_of(events)).__name__
                lines.append(line_of(first, at, cause, records.FORMAT, text))
                recorded.append(Recorded(story.run, first, at, records.decode(text), text=text))
                first += len(events)
            state = rebuild(recorded)
            write(folder_of("core"), tell.__name__, story.run, lines, shown(state, recorded))
            sys.stdout.write(f"core/{tell.__name__}: {len(lines)} steps, {state.status}\n")


async def record_engine(engine: str, case: EngineCase, address: str) -> None:
    told = engine_stories.Told(case, address)
    for tell in engine_stories.STORIES:
        if missing(engine, tell.__name__):
            name = await tell(told)
            case.result(name)
            await case.journal(name)  # waits until it is finished with the world, and replays it
            async with store_of(case.store_url) as store:
                run = (await store.locate([name]))[name]
                recorded = (await store.load([run]))[run]
            lines = [
                line_of(one.first, one.at, type(cause_of(one.events)).__name__, records.FORMAT, one.text)
                for one in recorded
            ]
            state = rebuild(recorded)
            here, told_of_it = f"/orchestrations/{name}", shown(state, recorded)
            told_of_it["view"] = case.call("GET", here)
            told_of_it["aggregate"] = case.call("GET", f"{here}/result")
            told_of_it["events"] = case.call("GET", f"{here}/events?limit=10000")["events"]
            write(folder_of(engine), tell.__name__, run, lines, told_of_it)
            sys.stdout.write(f"{engine}/{tell.__name__}: {len(lines)} steps, {state.status}\n")
            sys.stdout.flush()


def record(engine: str) -> None:
    if engine == "core":
        return record_core()
    with receiver() as address, tempfile.TemporaryDirectory() as folder:
        case = CASES[ENGINES[engine]](Path(folder))
        for env in (case.up.env, *(one.env for one in getattr(case, "celery", ()))):
            env |= {"ORACULO_WEBHOOK_ALLOW": address}
        try:
            case.start()
            asyncio.run(record_engine(engine, case, address))
        finally:
            case.close()
    return None


if __name__ == "__main__":
    for one in sys.argv[1:] or ("core", *ENGINES):
        record(one)
