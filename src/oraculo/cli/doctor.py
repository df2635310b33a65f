"""`oraculo doctor`: what could stop this installation from working, and how to set it right."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from oraculo import logs, redaction
from oraculo.adapters.brokers.registry import open_broker, plugin_of, scheme_of
from oraculo.adapters.clock import MonotonicClock
from oraculo.api.auth import check_binding
from oraculo.api.spiffe import SpiffeIdentities
from oraculo.api.tls import server_context
from oraculo.bootstrap import flow as flow_parts
from oraculo.bootstrap.adapters import audit_writer, identity_of, order_data_of, task_types_of, temporal_of
from oraculo.cli import findings, findings_kubernetes
from oraculo.cli.exits import Exit
from oraculo.cli.findings import Finding, broken, fine, warning
from oraculo.cli.inputs import tls_of
from oraculo.cli.keys import has_administrator
from oraculo.cli.kubectl import Kubectl
from oraculo.cli.output import AsJson, Url, emit, out, safe, symbol
from oraculo.cli.texts import t
from oraculo.client.client import Client
from oraculo.errors import (
    ApiError,
    BrokerUnavailableError,
    IdentityUnavailableError,
    MissingExtraError,
    OraculoError,
    ServerUnreachableError,
    SettingsError,
    SinkUnavailableError,
)
from oraculo.loopback import is_loopback
from oraculo.settings import settings
from oraculo.settings.settings import Settings

BROKER_TIMEOUT_S = 8.0  # seconds
_LEVEL_STYLES = {"ok": ("concluida", "green"), "warning": ("parcial", "yellow"), "broken": ("erro", "red")}


def doctor(
    url: Url = None,
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help=t("o.kubernetes"))] = False,
    namespace: Annotated[str, typer.Option(help=t("o.namespace"))] = "neural-hive-orchestration",
    release: Annotated[str, typer.Option(help=t("o.release"))] = "orchestrator-dynamic",
    json: AsJson = False,
) -> None:
    found: list[Finding] = []
    of_release = findings_kubernetes.examine(Kubectl(namespace), release)
    for finding in of_release if kubernetes else examine(url):
        found.append(finding)
        if not json:
            _show(finding)
    wrong = sum(one.level == "broken" for one in found)
    if json:
        emit({"ok": not wrong, "checks": [one.document() for one in found]})
    else:
        out().print(
            (t("unhealthy.one") if wrong == 1 else t("unhealthy", count=wrong)) if wrong else t("healthy"),
            style="red" if wrong else "green",
        )
    if wrong:
        raise typer.Exit(Exit.FAILED)


def examine(url: str | None) -> Iterator[Finding]:
    yield from findings.machine()
    try:
        known = settings.load()
    except SettingsError as error:
        yield broken("settings", str(error), f"change {error.variable} in the environment or in .env")
        return
    except OSError as error:
        yield broken("settings", f".env: {error}", "make .env readable, or remove it")
        return
    shown = ", ".join(f"{name}={value}" for name, value in known.shown().items())
    yield fine("settings", f"valid; {shown}" if shown else "valid")
    for line in known.warnings():
        yield warning("settings", line, "correct the name, or remove it from the environment or .env")
    checks: list[Callable[[Settings], Iterator[Finding]]]
    checks = [_binding, _tls, _identity, _files, findings.store, _order_data, _broker, _engine, _flow_c, _audit]
    for check in checks:
        yield from check(known)
    yield from _server(known, url)


def _binding(known: Settings) -> Iterator[Finding]:
    try:
        check_binding(known, lambda: has_administrator(known))
    except SettingsError as error:
        yield broken("api key", str(error), "set ORACULO_API_KEY to a long random text, or ORACULO_HOST to 127.0.0.1")
        return
    except OraculoError as error:
        yield broken("api key", str(error), "see the store below")
        return
    if not known.api_key and not is_loopback(known.host):
        yield fine("api key", "not set; the store has a key for an administrator")
        return
    if known.api_key and len(known.api_key) < 16:
        yield warning("api key", f"{len(known.api_key)} characters", "use a random one: openssl rand -hex 32")
    else:
        yield fine("api key", "set" if known.api_key else f"not set; {known.host} is reached from this machine only")


def _tls(known: Settings) -> Iterator[Finding]:
    if not known.tls.cert:
        return
    try:
        server_context(known.tls)
        if known.tls.spiffe:
            SpiffeIdentities(known.tls.spiffe)
    except SettingsError as error:
        yield broken("tls", str(error), f"change {error.variable}")
        return
    shown = f"; clients show a certificate ({known.tls.client})" if known.tls.client_ca else ""
    yield fine("tls", f"{known.tls.cert}{shown}")


def _identity(known: Settings) -> Iterator[Finding]:
    if not known.oidc.issuer:
        return
    where = redaction.urls(known.oidc.issuer)
    try:
        provider = identity_of(known, MonotonicClock())
        if provider is not None:
            asyncio.run(provider.check())
    except MissingExtraError as error:
        yield broken("identity", str(error), f"pip install 'oraculo[{error.extra}]'")
    except IdentityUnavailableError as error:
        yield broken("identity", str(error), "start the provider, or change ORACULO_OIDC_ISSUER")
    else:
        yield fine("identity", f"{where}; browsers come back to {known.url.rstrip('/')}/login")


def _files(known: Settings) -> Iterator[Finding]:
    if not known.task_types:
        return
    try:
        yield fine("task types", f"{len(task_types_of(known.task_types))} in {known.task_types}")
    except OraculoError as error:
        yield broken("task types", str(error), "correct the file, or unset ORACULO_TASK_TYPES")


def _order_data(known: Settings) -> Iterator[Finding]:
    """Where collected data go that are too large for orders; the folder is made when it is needed."""
    if not known.order_data:
        return
    if known.order_data.startswith("s3:"):
        yield _bucket(known)
        return
    folder = Path(known.order_data).absolute()
    nearest = next(one for one in (folder, *folder.parents) if one.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        fix = "make it writable, or set ORACULO_ORDER_DATA to a folder that is; until then orders carry their data"
        yield warning("order data", f"{folder} cannot be written", fix)
    else:
        yield fine("order data", f"{folder}" if folder.is_dir() else f"{folder} will be made when it is needed")


def _bucket(known: Settings) -> Finding:
    fix = "check ORACULO_S3_ENDPOINT, AWS_REGION and the rights of the key; until then orders carry their data"
    try:
        order_data_of(known).link_key()
    except OraculoError as error:
        return broken("order data", str(error), "set what is missing, or a folder")
    except OSError as error:
        return warning("order data", redaction.redact(str(error), 300), fix)
    return fine("order data", f"{known.order_data} takes and gives objects")


def _broker(known: Settings) -> Iterator[Finding]:
    if known.broker.startswith("memory:"):
        yield fine("broker", "memory: in the orchestrator's process; what it forgets, the journal sends again")
        return
    logs.configure("CRITICAL", "text")  # what an adapter logs is in the finding
    for url in known.broker.split(","):
        yield asyncio.run(_reach(url.strip()))


def _flow_c(known: Settings) -> Iterator[Finding]:
    """What its topics need beyond the broker."""
    if not known.takes_plans or not flow_parts.on_kafka(known):
        return
    try:
        flow_parts.codec_of(known, flow_parts.registry_of(known))
    except MissingExtraError as error:
        yield broken("avro", str(error), f"pip install 'oraculo[{error.extra}]'")
    if known.kafka.servers:
        logs.configure("CRITICAL", "text")
        yield asyncio.run(_reach(flow_parts.kafka_url(known), "kafka", "KAFKA_BOOTSTRAP_SERVERS"))


async def _reach(url: str, name: str = "broker", variable: str = "ORACULO_BROKER") -> Finding:
    """Connect, and ask what it promises of a message that it confirmed."""
    where = redaction.urls(url)
    try:
        broker = open_broker(url)
    except MissingExtraError as error:
        return broken(name, str(error), f"pip install 'oraculo[{error.extra}]'")
    except SettingsError as error:
        return broken(name, str(error), f"change {error.variable}")
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            durability = await broker.durability()
        health = broker.health()
        if not health.connected:
            raise BrokerUnavailableError(health.error or "no connection")
    except (OraculoError, TimeoutError) as error:
        return broken(name, f"{where}: {error or 'no answer'}", f"start the server, or change {variable}")
    finally:
        await broker.close()
    if durability == "best-effort":
        page = plugin_of(scheme_of(url)).page or "the page of the broker's adapter"
        return warning(name, f"{where}: {durability}", f"{page} tells what to set")
    return fine(name, f"{where}: {durability}")


def _audit(known: Settings) -> Iterator[Finding]:
    if known.mongodb.uri:
        yield asyncio.run(_reach_mongodb(known))


async def _reach_mongodb(known: Settings) -> Finding:
    """What is not written there stays in the journal: orchestrations go on without it."""
    where = redaction.urls(known.mongodb.uri)
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
        unused = sorted(name for name in known.given if name.startswith("TEMPORAL_") and name != "TEMPORAL_ENABLED")
        if unused:
            said = f"{', '.join(unused)}: not used, the engine is {known.engine}"
            yield warning(
                "temporal", said, "TEMPORAL_HOST, TEMPORAL_ENABLED=true or ORACULO_ENGINE=temporal, or remove them"
            )
        return

    logs.configure("CRITICAL", "text")
    try:
        address = temporal_of(known)
    except MissingExtraError as error:
        yield broken("temporal", str(error), f"pip install 'oraculo[{error.extra}]'")
        return
    from oraculo.engines.temporal.connection import connect

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
    try:
        with Client(url or known.url, known.key_for(url), timeout=5, tls=tls_of(known)) as client:
            version = client.health()["version"]
            yield fine("server", f"{client.url} runs {version}")
            document = client.ready()
            state = document["status"]
            text = ", ".join(f"{name}: {_state(check)}" for name, check in document["checks"].items())
            if state == "ok":
                yield fine("ready", text)
            else:
                yield broken("ready", f"{state}; {text}", "see the log of the server")
            client.whoami()
            yield fine("access", "the key is accepted" if known.api_key else "no key is needed")
    except SettingsError as error:
        yield broken("server", str(error), "set ORACULO_URL in the environment, or the key in .env beside it")
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
    look, style = _LEVEL_STYLES[finding.level]
    out().print(Text.assemble((f"{symbol(look)} ", style), (f"{finding.name}  ", "bold"), safe(finding.detail)))
    if finding.fix:
        out().print(Text(f"    {t('fix')}: {safe(finding.fix)}", style=style))
