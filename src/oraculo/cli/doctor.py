"""`oraculo doctor`: what could stop this installation from working, and how to set it right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from oraculo import redaction, settings
from oraculo.cli.exits import Exit
from oraculo.cli.findings import Finding, broken, fine, warning
from oraculo.cli.output import AsJson, Url, emit, out, safe, symbol
from oraculo.cli.texts import t
from oraculo.errors import (
    ApiError,
    BrokerUnavailableError,
    MissingExtraError,
    OraculoError,
    ServerUnreachableError,
    SettingsError,
    SinkUnavailableError,
)

if TYPE_CHECKING:
    from oraculo.settings import Settings

BROKER_PATIENCE = 8.0  # seconds
_PAGES = {"amqp": "rabbitmq", "redis": "redis", "nats": "nats", "kafka": "kafka"}
_LOOK = {"ok": ("concluida", "green"), "warning": ("parcial", "yellow"), "broken": ("erro", "red")}


def doctor(url: Url = None, json: AsJson = False) -> None:
    found: list[Finding] = []
    for finding in examine(url):
        found.append(finding)
        if not json:
            _show(finding)
    wrong = sum(one.level == "broken" for one in found)
    if json:
        emit({"ok": not wrong, "checks": [one.document() for one in found]})
    else:
        out().print(t("unhealthy", count=wrong) if wrong else t("healthy"), style="red" if wrong else "green")
    if wrong:
        raise typer.Exit(Exit.FAILED)


def examine(url: str | None) -> Iterator[Finding]:
    from oraculo.cli import findings

    yield from findings.machine()
    try:
        known = settings.load()
    except SettingsError as error:
        yield broken("settings", str(error), f"change {error.variable} in the environment or in .env")
        return
    except OSError as error:
        yield broken("settings", f".env: {error}", "make .env readable, or remove it")
        return
    yield fine("settings", "valid")
    checks: list[Callable[[Settings], Iterator[Finding]]]
    checks = [_binding, _files, findings.store, _broker, _engine, _flow_c, _audit]
    for check in checks:
        yield from check(known)
    yield from _server(known, url)


def _binding(known: Settings) -> Iterator[Finding]:
    from oraculo.api.auth import check_binding

    try:
        check_binding(known)
    except SettingsError as error:
        yield broken("api key", str(error), "set ORACULO_API_KEY to a long random text, or ORACULO_HOST to 127.0.0.1")
        return
    if known.api_key and len(known.api_key) < 16:
        yield warning("api key", f"{len(known.api_key)} characters", "use a random one: openssl rand -hex 32")
    else:
        yield fine("api key", "set" if known.api_key else f"not set; {known.host} is reached from this machine only")


def _files(known: Settings) -> Iterator[Finding]:
    from oraculo.parts import task_types_of

    if not known.task_types:
        return
    try:
        yield fine("task types", f"{len(task_types_of(known.task_types))} in {known.task_types}")
    except OraculoError as error:
        yield broken("task types", str(error), "correct the file, or unset ORACULO_TASK_TYPES")


def _broker(known: Settings) -> Iterator[Finding]:
    from oraculo import logs

    if known.broker.startswith("memory:"):
        yield fine("broker", "memory: in the orchestrator's process; what it forgets, the journal sends again")
        return
    logs.configure("CRITICAL", "text")  # what an adapter logs is in the finding
    for url in known.broker.split(","):
        yield asyncio.run(_reach(url.strip()))


def _flow_c(known: Settings) -> Iterator[Finding]:
    """What its topics need beyond the broker."""
    from oraculo import flow_parts, logs

    if not known.takes_plans or not flow_parts.on_kafka(known):
        return
    try:
        flow_parts.codec_of(known, flow_parts.registry_of(known))
    except MissingExtraError as error:
        yield broken("avro", str(error), f"pip install 'oraculo[{error.extra}]'")
    if known.kafka_servers:
        logs.configure("CRITICAL", "text")
        yield asyncio.run(_reach(flow_parts.kafka_url(known), "kafka", "KAFKA_BOOTSTRAP_SERVERS"))


async def _reach(url: str, name: str = "broker", variable: str = "ORACULO_BROKER") -> Finding:
    """Connect, and ask what it promises of a message that it confirmed."""
    from oraculo.parts import broker_of

    where = redaction.urls(url)
    try:
        broker = broker_of(url)
    except MissingExtraError as error:
        return broken(name, str(error), f"pip install 'oraculo[{error.extra}]'")
    except SettingsError as error:
        return broken(name, str(error), f"change {error.variable}")
    try:
        async with asyncio.timeout(BROKER_PATIENCE):
            durability = await broker.durability()
        health = broker.health()
        if not health.connected:
            raise BrokerUnavailableError(health.error or "no connection")
    except (OraculoError, TimeoutError) as error:
        return broken(name, f"{where}: {error or 'no answer'}", f"start the server, or change {variable}")
    finally:
        await broker.close()
    if durability == "best-effort":
        return warning(name, f"{where}: {durability}", f"docs/brokers/{_PAGES[broker.scheme]}.md tells what to set")
    return fine(name, f"{where}: {durability}")


def _audit(known: Settings) -> Iterator[Finding]:
    if known.mongodb_uri:
        yield asyncio.run(_reach_mongodb(known))


async def _reach_mongodb(known: Settings) -> Finding:
    """What is not written there stays in the journal: orchestrations go on without it."""
    from oraculo.parts import audit_writer

    where = redaction.urls(known.mongodb_uri)
    try:
        writer = audit_writer(known)
    except (MissingExtraError, SettingsError) as error:
        fix = f"pip install 'oraculo[{error.extra}]'" if isinstance(error, MissingExtraError) else "change MONGODB_URI"
        return broken("audit", str(error), fix)
    try:
        version = await writer.ping()
    except SinkUnavailableError as error:
        return warning("audit", f"{where}: {error}", "start the server, or change MONGODB_URI (docs/audit.md)")
    finally:
        await writer.close()
    return fine("audit", f"{where}: MongoDB {version}")


def _engine(known: Settings) -> Iterator[Finding]:
    if known.engine != "temporal":
        return
    from oraculo import logs
    from oraculo.parts import temporal_of

    logs.configure("CRITICAL", "text")
    try:
        address = temporal_of(known)
    except MissingExtraError as error:
        yield broken("temporal", str(error), f"pip install 'oraculo[{error.extra}]'")
        return
    from oraculo.engines.temporal.link import connect

    try:
        asyncio.run(connect(address, "oraculo doctor"))
    except OraculoError as error:
        yield broken(
            "temporal", str(error), "start the server, or change TEMPORAL_HOST, TEMPORAL_PORT, TEMPORAL_NAMESPACE"
        )
    else:
        yield fine("temporal", f"{address.target}, namespace {address.namespace}")


def _server(known: Settings, url: str | None) -> Iterator[Finding]:
    """No server is only wrong when one was asked for by name: it may not have been started yet."""
    from oraculo.client import Client

    try:
        with Client(url or known.url, known.api_key, timeout=5) as client:
            version = client.health()["version"]
            yield fine("server", f"{client.url} runs {version}")
            document = client.ready()
            state = document["status"]
            text = ", ".join(f"{name}: {_state(check)}" for name, check in document["checks"].items())
            if state == "ok":
                yield fine("ready", text)
            else:
                yield broken("ready", f"{state}; {text}", "see the log of the server")
            client.workers()
            yield fine("access", "the key is accepted" if known.api_key else "no key is needed")
    except ServerUnreachableError as error:
        level = broken if url else warning
        yield level("server", str(error), "start it with: oraculo up; or set ORACULO_URL to where it is")
    except ApiError as error:
        if error.status in (401, 403):
            yield broken("access", str(error), "set ORACULO_API_KEY to the key of the server")
        else:
            yield broken("server", str(error), "see the log of the server")
    except (KeyError, TypeError):
        yield broken("server", f"{url or known.url} is not an Oráculo", "set ORACULO_URL to where it is")


def _state(check: dict[str, object]) -> str:
    word = "ok" if check.get("ok") else "failing"
    return f"{word} ({check['durability']})" if check.get("durability") else word


def _show(finding: Finding) -> None:
    look, style = _LOOK[finding.level]
    out().print(Text.assemble((f"{symbol(look)} ", style), (f"{finding.name}  ", "bold"), safe(finding.detail)))
    if finding.fix:
        out().print(Text(f"    {t('fix')}: {safe(finding.fix)}", style=style))
