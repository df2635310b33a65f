"""`oraculo policy`: policies in folders and in a server. Only `status` asks a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from oraculo.cli import inputs
from oraculo.cli.exits import CommandError
from oraculo.cli.output import AsJson, Url, emit, say, table
from oraculo.cli.plan_files import plan_request, read_bytes
from oraculo.cli.texts import t
from oraculo.wire import strict_json

Folder = Annotated[str | None, typer.Argument(help=t("o.policy-folder"), metavar="[FOLDER]", show_default=False)]
InputFile = Annotated[str, typer.Argument(help=t("o.policy-input"), metavar="INPUT|-", show_default=False)]
Package = Annotated[str, typer.Option("--package", help=t("o.policy-package"), show_default=False)]
From = Annotated[str | None, typer.Option("--policies", help=t("o.policy-from"), show_default=False)]
PlanFile = Annotated[str, typer.Argument(help=t("o.plan-file"), metavar="FILE|-", show_default=False)]


def status(url: Url = None, json: AsJson = False) -> None:
    with inputs.client(url) as client:
        found = client.policies()
    if json:
        emit(found)
        return
    say(t("policy-engine", engine=found["motor"] or t("policy-off"), version=found["politicas"] or "–"))
    if found["erro"]:
        say(found["erro"], style="red")
    table(
        ("ponto", "pacotes"),
        ((point, ", ".join(packages)) for point, packages in found["pontos"].items()),
        "none.policies",
    )
    if found["ultimas"]:
        table(
            ("ponto", "correlation_id", "ticket_id", "mensagem"),
            (
                (one["ponto"], one["correlation_id"], one["ticket_id"] or "", one["mensagem"])
                for one in found["ultimas"]
            ),
            "none.policies",
        )


def check(folder: Folder = None, json: AsJson = False) -> None:
    found = _folder(folder)
    asyncio.run(_compiled(found))
    if json:
        emit({"folder": folder, "ok": True, "version": found.version, "packages": list(found.packages)})
        return
    say(t("policy-ok", version=found.version))
    table(("pacotes",), ((package,) for package in found.packages), "none.policies")


def evaluate(input: InputFile, package: Package, policies: From = None, json: AsJson = False) -> None:
    found = _folder(policies)
    text = read_bytes(input).decode(errors="replace")
    try:
        strict_json.loads(text.encode())
    except Exception as error:
        raise CommandError(f"{input}: {error}") from None
    wanted = package if package in found.packages or "." in package else f"neuralhive.orchestrator.{package}"
    document = asyncio.run(_asked(found, wanted, text))
    if document.error:
        raise CommandError(f"{wanted}: {document.error}")
    emit(document.value)
    if isinstance(document.value, dict) and document.value.get("allow") is not True:
        raise typer.Exit(1)


def test(file: PlanFile, policies: From = None, json: AsJson = False) -> None:
    """A dry run: what the policies of the settings would say of a plan and of each of its tickets."""
    request = plan_request(file)
    rows = asyncio.run(_rehearsed(request, policies))
    refused = [one for one in rows if not one["permitido"]]
    if json:
        emit({"file": file, "ok": not refused, "pareceres": rows})
    else:
        table(
            ("ponto", "destino", "permitido", "mensagem"),
            ((one["ponto"], one["destino"] or "", "✓" if one["permitido"] else "✖", one["mensagem"]) for one in rows),
            "none.policies",
        )
    if refused:
        raise typer.Exit(1)


def _folder(path: str | None) -> Any:
    from oraculo.adapters.policies.embedded import read_folder
    from oraculo.bootstrap.policies import SHIPPED

    return read_folder(SHIPPED if path is None else Path(path))


async def _compiled(folder: Any) -> None:
    from oraculo.adapters.policies.embedded import EmbeddedPolicies

    engine = EmbeddedPolicies(folder, folder.packages)
    try:
        await engine.open()
    finally:
        await engine.close()


async def _asked(folder: Any, package: str, text: str) -> Any:
    from oraculo.adapters.policies.embedded import EmbeddedPolicies

    engine = EmbeddedPolicies(folder, [package])
    try:
        await engine.open()
        return (await engine.evaluate([package], [text.encode()]))[0][0]
    finally:
        await engine.close()


async def _rehearsed(request: Mapping[str, Any], policies: str | None) -> list[dict[str, Any]]:
    from contextlib import AsyncExitStack

    from oraculo.adapters.clock import MonotonicClock
    from oraculo.bootstrap.adapters import defaults_of
    from oraculo.bootstrap.policies import policies_of
    from oraculo.core.commands import Start
    from oraculo.core.policies import text_of
    from oraculo.core.step import step
    from oraculo.settings.settings import load
    from oraculo.wire import requests

    settings = load(options={} if policies is None else {"ORACULO_POLICIES": f"embedded:{policies}"})
    shipped = not settings.policies.engine and not settings.opa.enabled
    asked_of = "embedded" if shipped else settings.policies.engine
    settings = replace(settings, policies=replace(settings.policies, engine=asked_of, log="off"))
    plan = requests.plan_of(requests.parse(dict(request)), defaults_of(settings))
    async with AsyncExitStack() as stack:
        clock = MonotonicClock()
        asked = await policies_of(settings, clock, stack)
        state = step(None, Start(1, "ensaio", asked.govern(plan)), clock.now()).state
        rows = []
        for point, position, finding in await asked.rehearse(state):
            rows.append(
                {
                    "ponto": point.value,
                    "destino": None if position < 0 else plan.tasks[position].queue or None,
                    "permitido": finding is None or finding.allowed,
                    "mensagem": "" if finding is None else text_of(finding),
                }
            )
    return rows
