"""Brokers by their URL scheme: those of Oráculo and those that other distributions register."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

import pytest

from oraculo.adapters.brokers import registry
from oraculo.adapters.brokers.connect import broker_of
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.cli import asyncapi
from oraculo.errors import SettingsError
from oraculo.ports.broker import Broker
from oraculo.ports.broker_plugin import ENTRY_POINTS
from oraculo.settings.settings import load
from third_party_brokers import FOLDER, installed

ROOT = Path(__file__).parents[2]
BUILTIN = ("memory", "amqp", "amqps", "redis", "rediss", "nats", "kafka")


def test_builtin_brokers_are_registered_by_entry_points() -> None:
    assert registry.schemes() == BUILTIN
    assert isinstance(registry.open_broker("memory://"), MemoryBroker)
    for scheme, plugin in registry.plugins().items():
        assert scheme == "memory" or (plugin.client and (ROOT / plugin.page).is_file())


def test_a_third_party_broker_is_a_valid_setting_once_it_is_installed(tmp_path: Path) -> None:
    url = f"spool:///{tmp_path}/spool.db"
    with pytest.raises(SettingsError, match="a URL that begins with one of memory://, amqp://"):
        load({"ORACULO_BROKER": url}, None)
    with installed():
        assert registry.schemes() == (*BUILTIN, "spool")
        assert load({"ORACULO_BROKER": f"{url},redis://h"}, None).broker == f"{url},redis://h"
        assert broker_of(url).scheme == "spool"
        description = asyncapi.document({}, {})["info"]["description"]
        assert "the topic on Kafka and the rows of a queue in SQLite" in description
    with pytest.raises(SettingsError, match="one of memory, amqp"):
        registry.open_broker(url)


def test_doctor_reaches_a_third_party_broker(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(FOLDER),
        "ORACULO_BROKER": f"spool:///{tmp_path}/spool.db",
        "ORACULO_STORE": f"sqlite:///{tmp_path}/oraculo.db",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "oraculo", "doctor", "--json"],
        capture_output=True, text=True, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    checks = {one["name"]: one for one in json.loads(ran.stdout)["checks"]}
    assert checks["broker"]["level"] == "ok" and "power-safe" in checks["broker"]["detail"], checks


def test_no_other_distribution_replaces_a_builtin_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = EntryPoint("redis", "their_package:REDIS", ENTRY_POINTS)
    odd = EntryPoint("odd", "oraculo.adapters.brokers.memory:MemoryBroker", ENTRY_POINTS)
    found = entry_points(group=ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group: EntryPoints([theirs, odd, *found]))
    registry._registered.cache_clear()
    try:
        assert registry.plugin_of("redis").client == "redis"
        with pytest.raises(SettingsError, match="MemoryBroker is not a BrokerPlugin"):
            registry.plugin_of("odd")
    finally:
        registry._registered.cache_clear()


def test_the_page_shows_the_code_that_the_suite_runs() -> None:
    code = "".join(path.read_text() for path in [*FOLDER.rglob("*.py"), ROOT / "tests/contracts/case_spool.py"])
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/brokers/writing-one.md").read_text(), re.S)
    assert len(blocks) >= 6
    for block in blocks:
        assert block.rstrip() in code, block


def test_every_adapter_derives_from_the_port() -> None:
    for scheme in registry.schemes():
        assert Broker in type(registry.open_broker(f"{scheme}://localhost")).__mro__
