"""`workers`, `drain` and `undrain`: who works, what each does now, and giving one nothing more."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, ago, emit, instant, out, pairs, safe, say, table
from oraculo.cli.texts import t
from oraculo.client.worker_results import WorkerStatus

Worker = Annotated[str, typer.Argument(help=t("o.worker-name"), metavar="WORKER")]
Motivo = Annotated[str, typer.Option("--reason", "--motivo", help=t("o.motivo"), show_default=False)]


def workers(
    name: Annotated[str | None, typer.Argument(help=t("o.worker-one"), metavar="[WORKER]", show_default=False)] = None,
    capability: Annotated[
        list[str] | None, typer.Option("--capability", "--capacidade", help=t("o.capability"), show_default=False)
    ] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "--fila", help=t("o.worker-queue"), show_default=False)
    ] = None,
    situation: Annotated[
        str | None, typer.Option("--situation", "--situacao", help=t("o.situation"), show_default=False)
    ] = None,
    limit: Annotated[int | None, typer.Option(help=t("o.worker-limit"), show_default=False, min=1, max=1000)] = None,
    url: Url = None,
    json: AsJson = False,
) -> None:
    with inputs.client(url) as client:
        if name is not None:
            _one(client.worker(name), json)
            return
        document = client.workers(capability or (), queue=queue, situation=situation, limit=limit)
    if json:
        emit(document)
        return
    table(
        (
            "worker",
            "situacao",
            "transporte",
            "filas",
            "em_andamento",
            "respondidas",
            "falhas",
            "visto_em",
            "ultimo_erro",
        ),
        (
            (
                one["nome"],
                t(f"worker.{one['situacao']}"),
                one["transporte"],
                ", ".join(one["filas"]),
                _load(one),
                one["respondidas"],
                one["falhas"],
                ago(one["visto_em"]) if out().is_terminal else instant(one["visto_em"]),
                _error(one),
            )
            for one in document["workers"]
        ),
        "none.workers",
    )
    if document["filas"]:
        columns = ("fila", "aguardando", "em_andamento", "consumidores", "enviadas_por_s", "respondidas_por_s")
        say("")
        rows = [tuple(one[name] for name in columns) for one in document["filas"]]  # type: ignore[literal-required]
        if any(one.get("trilha") for one in document["filas"]):
            rows = [(*row, _trail(one.get("trilha"))) for row, one in zip(rows, document["filas"], strict=True)]
            table((*columns, "trilha"), rows)
        else:
            table(columns, rows)


def _trail(found: dict[str, Any] | None) -> str:
    return "" if found is None else f"{found['pontuacao']:.2f}"


def drain(name: Worker, motivo: Motivo = "", url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        _one(client.drain_worker(name, motivo), json)


def undrain(name: Worker, motivo: Motivo = "", url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        _one(client.resume_worker(name, motivo), json)


def _load(one: WorkerStatus) -> str:
    busy, most = one["em_andamento"], one["concorrencia"]
    return "" if busy is None else str(busy) if most is None else f"{busy}/{most}"


def _error(one: WorkerStatus) -> str:
    found = one["ultimo_erro"]
    return "" if found is None else f"{found['codigo']}: {found['mensagem']}"[:60]


def _one(one: WorkerStatus, json: bool) -> None:
    if json:
        emit(one)
        return
    error, drained = one["ultimo_erro"], one["drenagem"]
    pairs(
        [
            ("worker", safe(one["nome"])),
            ("situacao", t(f"worker.{one['situacao']}")),
            ("transporte", one["transporte"]),
            ("filas", ", ".join(one["filas"])),
            ("capacidades", ", ".join(one["capacidades"])),
            ("em_andamento", _load(one)),
            ("recursos", ", ".join(f"{name}={value}" for name, value in one["recursos"].items())),
            ("versao", safe(one["versao"])),
            ("host", safe(one["host"])),
            ("registrado_em", instant(one["registrado_em"])),
            ("visto_em", instant(one["visto_em"])),
            ("expira_em", instant(one["expira_em"])),
            ("respondidas", f"{one['respondidas']} ({one['falhas']} {t('worker.failures')})"),
            ("ultimo_erro", "" if error is None else f"{instant(error['em'])} {safe(_error(one))}"),
            (
                "drenagem",
                "" if drained is None else f"{drained['ator']} {instant(drained['desde'])} {drained['motivo']}",
            ),
        ]
    )
    if one["executando"]:
        say("")
        columns = ("ticket_id", "tentativa", "inicio", "progresso")
        table(
            columns, ((a["ticket_id"], a["tentativa"], instant(a["inicio"]), a["progresso"]) for a in one["executando"])
        )
