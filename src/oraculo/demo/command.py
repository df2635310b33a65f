"""The command: starts the real server with the shipped workers, submits, shows progress, says where the report is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Annotated, Any

import typer
from rich.live import Live

from oraculo.cli.output import emit, out
from oraculo.cli.picture import Picture
from oraculo.cli.texts import language
from oraculo.client.client import Client
from oraculo.client.results import RunResult
from oraculo.demo import feeds
from oraculo.errors import MissingExtraError, OraculoError
from oraculo.settings import settings

REQUEST: dict[str, Any] = {
    "coletas": [
        {"fonte": "youtube", "parametros": {"canais": list(feeds.CHANNELS)}, "timeout_s": 30, "max_tentativas": 3},
        {"fonte": "blog", "parametros": {"url": "/blog/feed.xml"}, "timeout_s": 30, "max_tentativas": 3},
    ],
    "execucoes": [{"executador": "relatorio", "parametros": {"titulo": "Novidades da quinzena"}}],
    "timeout_s": 60,
}

TEXTS = {
    "en": {
        "start": "Oráculo is up at {url} (state in {store})",
        "plan": "Collecting from two channels and a blog that this demo serves, then writing a report:",
        "done": "{status}: {items} items in {ms} ms. The report:",
        "next": "Look at it, while it is up:",
        "dashboard": "the dashboard, in a browser",
        "docs": "the HTTP API, to read and to try",
        "stop": "It stays up until Ctrl-C.",
        "bye": "Stopped; everything is in {store}.",
    },
    "pt": {
        "start": "Oráculo no ar em {url} (estado em {store})",
        "plan": "Coletando de dois canais e de um blog que esta demonstração serve, e depois escrevendo um relatório:",
        "done": "{status}: {items} itens em {ms} ms. O relatório:",
        "next": "Veja, enquanto está no ar:",
        "dashboard": "o painel, no navegador",
        "docs": "a API HTTP, para ler e experimentar",
        "stop": "Fica no ar até Ctrl-C.",
        "bye": "Parado; tudo está em {store}.",
    },
}


def command(
    port: Annotated[int | None, typer.Option(help="Port; by default ORACULO_PORT, or a free one.", min=0)] = None,
    folder: Annotated[Path, typer.Option("--dir", help="Where state and reports go.")] = Path("oraculo-demo"),
    stay: Annotated[bool | None, typer.Option("--stay/--exit", help="Stay up; by default only on a terminal.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The outcome as one JSON object.")] = False,
) -> None:
    """Show the main job: youtube + blog → relatorio, durable, with nothing to install.

    Example: oraculo demo --dir /tmp/demo --exit
    """
    try:
        import oraculo.collectors.all  # noqa: F401
    except ImportError:
        raise MissingExtraError("the demo", "workers") from None
    texts = TEXTS[language()]
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if stay is None:
        stay = sys.stdout.isatty() and not as_json

    def say(text: str) -> None:
        if not as_json:
            out().print(text, highlight=False)

    now = datetime.fromtimestamp(time(), UTC)
    with (
        feeds.served(now) as base,
        server(folder, base, _ports(port)) as url,
        Client(url, language=language(), words="pt") as client,
    ):
        say(texts["start"].format(url=url, store=folder / "oraculo.db"))
        say(texts["plan"])
        name = client.submit(REQUEST).correlation_id
        result = follow(client, name, show=not as_json)
        files = report_files(result)
        if as_json:
            emit({"correlation_id": name, "status": result["status"], "arquivos": files, "url": url})
        else:
            items = sum(len(coleta["dados"] or ()) for coleta in result["coletas"])
            say(texts["done"].format(status=result["status"], items=items, ms=result["duracao_ms"]))
            for file in files:
                say(f"  {file}")
        if stay:
            _next_steps(say, texts, url, name)
            say(texts["stop"])
            _until_interrupted()
    say(texts["bye"].format(store=folder / "oraculo.db"))
    raise typer.Exit(0 if result["status"] == "concluida" else 1)


def _next_steps(say: Any, texts: dict[str, str], url: str, name: str) -> None:
    say(texts["next"])
    for address, what in ((f"{url}/", texts["dashboard"]), (f"{url}/docs", texts["docs"])):
        say(f"  {address}  ({what})")
    prefix = "" if url == "http://127.0.0.1:8000" else f"ORACULO_URL={url} "
    for line in (
        f"{prefix}{program()} show {name}",
        f"{prefix}{program()} ls",
        f"curl {url}/api/v1/orchestrations/{name}/events",
    ):
        say(f"  {line}")


def program() -> str:
    """How this program is called from the folder where it was called: not every installation is on the PATH."""
    called = sys.argv[0]
    if Path(called).name != "oraculo":
        return f"{shlex.quote(sys.executable)} -m oraculo"
    found = shutil.which("oraculo")
    if found is not None and Path(found).resolve() == Path(called).resolve():
        return "oraculo"
    return shlex.quote(called)


def follow(client: Client, name: str, *, show: bool) -> RunResult:
    """The final document; meanwhile a picture that moves, on a terminal, or a line per event."""
    picture = Picture(client.get(name))
    if show and out().is_terminal:
        with Live(picture, console=out(), refresh_per_second=10) as live:
            for event in client.stream(name, picture.version):
                picture.apply(event)
            picture.settle(client.get(name))
            live.refresh()
    else:
        for event in client.stream(name):
            if show:
                out().print(f"  {event['seq']:>3} {event['evento']} {event.get('destino', '')}", highlight=False)
    result = client.result(name, wait=60)
    if result is None:
        raise OraculoError(f"the demo's orchestration {name} did not end")
    return result


def report_files(result: RunResult) -> list[str]:
    outcome = result["execucoes"][0]["resultado"] if result["execucoes"] else None
    return list(outcome.get("arquivos", [])) if isinstance(outcome, dict) else []


def _ports(asked: int | None) -> list[int]:
    """The port asked for; else the usual one, then a free one: only the server's own start tells which is taken."""
    return list(dict.fromkeys((settings.load().port, 0))) if asked is None else [asked]


@contextmanager
def server(folder: Path, base: str, ports: Sequence[int]) -> Iterator[str]:
    """`oraculo up` in a process of its own, with the shipped workers, on the first port that it starts on; yields its
    URL."""
    environment = {
        "LOG_LEVEL": "WARNING",
        **os.environ,
        "ORACULO_STORE": f"sqlite:///{folder / 'oraculo.db'}",
        "ORACULO_BROKER": "memory://",
        "ORACULO_ENGINE": "local",
        "ORACULO_HOST": "127.0.0.1",
        **dict.fromkeys(("ORACULO_TLS_CERT", "ORACULO_TLS_KEY", "ORACULO_TLS_CLIENT_CA"), ""),
        "ORACULO_YOUTUBE_BASE": base,
        "ORACULO_BLOG_BASE": base,
        "ORACULO_RELATORIOS": str(folder / "relatorios"),
        "ORACULO_ARTEFATOS": str(folder / "relatorios"),
    }
    environment.pop("ORACULO_CRASH_AT", None)
    log = folder / "server.log"
    for port in ports:
        process = _up(port, environment, log)
        assert process.stdout is not None
        try:
            if line := process.stdout.readline():
                yield json.loads(line)["url"]
                return
        finally:
            process.terminate()
            process.wait(35)
            process.stdout.close()
    raise OraculoError(f"the server did not start: {log.read_text(errors='replace').strip()[-2000:]}")


def _up(port: int, environment: dict[str, str], log: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "oraculo", "up", "--port", str(port), "--json"]
    with log.open("wb") as errors:
        return subprocess.Popen(
            [*command, "--worker", "oraculo.collectors.all:worker"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we stop it in order
        )


def _until_interrupted() -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    while not stop.wait(0.5):
        pass
