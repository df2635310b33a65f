"""A Vault for the tests of this folder. `make test-vault` builds it and runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tools.servers import vault
from tools.servers.reaper import record

import servers
from vault.administrator import POLICY, SECRET, Administrator


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vault.Vault]:
    if "ORACULO_TEST_VAULT" not in os.environ:
        pytest.skip("a target of its own: make test-vault")
    reason = vault.Vault.missing()
    if reason:
        pytest.fail(f"not built: {reason}", pytrace=False)
    with vault.Vault(tmp_path_factory.mktemp("vault")) as started:
        if started.pid is not None:
            record(servers.run_folder(), started.pid)
        yield started


@pytest.fixture(scope="module")
def administrator(running: vault.Vault) -> Iterator[Administrator]:
    one = Administrator(running.url)
    fields = {"password": SECRET, "uri": f"amqp://u:{SECRET}@h", "number": 7}
    one.ask("POST", "secret/data/oraculo/kafka", {"data": fields})
    one.ask("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
    one.ask("POST", "kv1/oraculo", fields)
    one.ask("POST", "kv1/other", fields)
    one.ask("PUT", "sys/policies/acl/oraculo", {"policy": POLICY})
    yield one
    one.close()
