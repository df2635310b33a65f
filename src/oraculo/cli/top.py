"""`oraculo top`: rates, what is in flight, queues, brokers and failures of a running server, as they change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from oraculo.cli import inputs
from oraculo.cli.output import STYLES, AsJson, Url, duration, emit, out, safe
from oraculo.cli.readings import END_STATUSES, Scrape, document
from oraculo.cli.texts import t
from oraculo.client.client import Client

QUEUES_SHOWN = 15  # shown at most, the longest first


def top(
    every: Annotated[float, typer.Option(help=t("o.every"), min=0.2, max=3600)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help=t("o.once"))] = False,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        looks = _looks(client, 1.0 if once else every)
        if json:
            for found in looks:
                emit(found)
                if once:
                    return
        elif once or not out().is_terminal:
            for found in looks:
                out().print(picture(found))
                if once:
                    return
        else:
            _live(looks)


def _looks(client: Client, every: float) -> Iterator[dict[str, Any]]:
    before = Scrape(client.metrics(), time.monotonic())
    while True:
        time.sleep(every)
        now = Scrape(client.metrics(), time.monotonic())
        yield document(before, now)
        before = now


def _live(looks: Iterator[dict[str, Any]]) -> None:
    with Live(Text("…"), console=out(), screen=True, auto_refresh=False) as live:
        for found in looks:
            live.update(picture(found), refresh=True)


def picture(found: dict[str, Any]) -> Group:
    rates = found["por_segundo"]
    ended = sum(rates[status] for status in END_STATUSES)
    head = Table.grid(padding=(0, 3))
    head.add_row(
        _pair(t("top.started"), f"{rates['iniciadas']:g}/s"),
        _pair(t("top.ended"), f"{ended:g}/s"),
        _pair(t("top.open"), found["abertas"]),
        _pair(t("top.owed"), f"{found['devidas']}{_age(found['mais_antiga_devida_s'])}"),
        _pair(t("top.left"), _seconds(found["menor_prazo_s"])),
    )
    head.add_row(
        _pair("p50", _seconds(found["duracao_s"]["p50"])),
        _pair("p95", _seconds(found["duracao_s"]["p95"])),
        _pair("p99", _seconds(found["duracao_s"]["p99"])),
        _pair("CPU", f"{found['cpu'] * 100:.0f} %"),
        _pair("RSS", f"{found['memoria_mib']:g} MiB"),
    )
    endings = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "/s", "total"):
        endings.add_column(name, justify="left" if not name else "right")
    for status in END_STATUSES:
        style = STYLES[status]
        endings.add_row(Text(status, style), f"{rates[status]:g}", str(found["terminadas"][status]))
    trouble = Table(box=None, header_style="bold", pad_edge=False)
    trouble.add_column("")
    trouble.add_column("/s", justify="right")
    for name in ("novas_tentativas", "prazos_estourados", "tardias", "conflitantes", "duplicadas", "mortas"):
        trouble.add_row(t(f"top.{name}"), Text(f"{rates[name]:g}", "yellow" if rates[name] else ""))
    waiting = found["mortas_esperando"]
    trouble.add_row(t("top.dead"), Text(str(waiting), "red" if waiting else ""))
    beside = Table.grid(padding=(0, 6))
    beside.add_row(endings, trouble, _brokers(found))
    return Group(head, Text(), beside, Text(), _queues(found["filas"]))


def _brokers(found: dict[str, Any]) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("broker", "ok", t("top.probe")):
        shown.add_column(name)
    shown.add_row(t("top.store"), Text("✓", "green") if found["banco_ok"] else Text("✖", "red"), "")
    for one in found["brokers"]:
        called = Text(safe(one["broker"]), "bold" if one["publica"] else "")
        shown.add_row(called, Text("✓", "green") if one["ok"] else Text("✖", "red"), _seconds(one["sonda_s"]))
    return shown


def _queues(queues: list[dict[str, Any]]) -> Table:
    shown = Table(box=None, header_style="bold", pad_edge=False)
    shown.add_column(t("top.queue"))
    shown.add_column(t("waiting"), justify="right")
    shown.add_column(t("top.oldest"), justify="right")
    for one in sorted(queues, key=lambda one: -one["esperando"])[:QUEUES_SHOWN]:
        style = "yellow" if one["esperando"] else "bright_black"
        shown.add_row(Text(safe(one["fila"]), style), str(one["esperando"]), _seconds(one["mais_antiga_s"]))
    return shown


def _pair(name: str, value: object) -> Text:
    return Text.assemble((f"{name} ", "bright_black"), (str(value), "bold"))


def _seconds(value: float | None) -> str:
    return "–" if value is None else duration(value * 1000)


def _age(value: float | None) -> str:
    return f" ({duration(value * 1000)})" if value else ""
