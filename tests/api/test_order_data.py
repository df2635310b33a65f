"""Claim check: collected data that are too large for an order go beside it, and workers get them all the same."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.conftest import API, CurlWorker, assert_problem, client_of, serving, settings_for
from oraculo import Worker
from oraculo.adapters.order_data.folder import GRACE, LINK_KEY_FILE, FolderOrderData
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from oraculo.wire.order_links import OrderLinks
from oraculo.worker.http import HttpTransport
from waiting import until

KEY = "a-key-of-more-than-thirty-two-letters"
LARGE = "x" * 5000
WIDE = {
    "coletas": [{"fonte": "youtube"}],
    "execucoes": [{"executador": "relatorio", "parametros": {"n": number}} for number in range(30)],
}


@asynccontextmanager
async def limited(folder: Path, workers: list[Worker] | None = None, **variables: str) -> AsyncIterator[Oraculo]:
    """An orchestrator whose orders carry 4 kB at most."""
    where = {"ORACULO_ORDER_DATA": str(folder / "dados"), "ORACULO_ORDER_MAX_BYTES": "4000", **variables}
    async with Oraculo(settings_for(folder, **where), workers=workers or []) as oraculo:
        yield oraculo


async def collect(client: httpx2.AsyncClient, dados: Any, request: dict[str, Any] = WIDE) -> list[dict[str, Any]]:
    """The orders that follow when this was collected."""
    worker = CurlWorker(client)
    assert (await client.post(f"{API}/orchestrations", json=request)).status_code == 202
    await worker.do("escavador_youtube", dados=dados)
    taken = await worker.take("executador_relatorio", len(request["execucoes"]))
    return [one["mensagem"] for one in taken]


async def test_large_data_are_stored_once_and_orders_refer_to_them(tmp_path: Path) -> None:
    async with limited(tmp_path, ORACULO_API_KEY=KEY) as oraculo, client_of(create_app(oraculo)) as client:
        client.headers["X-API-Key"] = KEY
        orders = await collect(client, LARGE)
        del client.headers["X-API-Key"]
        assert all("dados" not in order["payload"] for order in orders)
        assert [path.name for path in stored_in(tmp_path / "dados")] == [orders[0]["payload"]["dados_ref"]["sha256"]]
        for order in orders[:2]:
            reference = order["payload"]["dados_ref"]
            got = await client.get(reference["url"].replace(oraculo.settings.url, ""))
            assert got.status_code == 200 and len(got.content) == reference["bytes"]
            assert got.json() == [{"fonte": "youtube", "status": "concluida", "dados": LARGE}]
        modes = {entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path / "dados")}
        assert modes == {0o600}


async def test_small_data_are_part_of_the_order(tmp_path: Path) -> None:
    async with limited(tmp_path) as oraculo, client_of(create_app(oraculo)) as client:
        [order] = await collect(client, "pouco", {**WIDE, "execucoes": [{"executador": "relatorio"}]})
        assert order["payload"]["dados"][0]["dados"] == "pouco" and "dados_ref" not in order["payload"]
        assert stored_in(tmp_path / "dados") == []


async def test_a_folder_that_cannot_be_used_stops_no_order(tmp_path: Path) -> None:
    (tmp_path / "dados").write_text("a file")
    async with limited(tmp_path) as oraculo, client_of(create_app(oraculo)) as client:
        orders = await collect(client, LARGE)
        assert {order["payload"]["dados"][0]["dados"] for order in orders} == {LARGE}


async def test_without_its_link_or_a_key_nothing_is_read(tmp_path: Path) -> None:
    async with limited(tmp_path, ORACULO_API_KEY=KEY) as oraculo, client_of(create_app(oraculo)) as client:
        client.headers["X-API-Key"] = KEY
        orders = await collect(client, LARGE)
        del client.headers["X-API-Key"]
        url = orders[0]["payload"]["dados_ref"]["url"].replace(oraculo.settings.url, "")
        path, _, query = url.partition("?")
        expires, signature = (part.partition("=")[2] for part in query.split("&"))
        digest = path.rpartition("/")[2]
        forged = [
            path,
            f"{path}?expira={expires}",
            f"{path}?expira={int(expires) + 1}&assinatura={signature}",
            f"{path}?expira={expires}&assinatura={signature[:-1]}0{signature[-1]}",
            f"{path}?expira=1&assinatura={signature}",
            f"{path}?expira=9999999999999&assinatura={signature}",
            f"{path}?expira=x&assinatura=é",
            f"{path.replace(digest, '0' * 64)}?{query}",
            f"{path}?{query}&" + "&".join(f"a{number}=1" for number in range(50)),
        ]
        for one in forged:
            assert_problem(await client.get(one), 401, "unauthorized")
        assert (await client.post(url)).status_code == 401
        assert (await client.get(f"{API}/workers?{query}")).status_code == 401  # it opens nothing else
        known = {"X-API-Key": KEY}
        assert (await client.get(path, headers=known)).status_code == 200
        for wrong in ("0" * 64, LINK_KEY_FILE, "..", digest.upper(), digest[:-1]):
            got = await client.get(f"{API}/order-data/{wrong}", headers=known)
            assert got.status_code == 404, wrong


def test_a_link_ends(tmp_path: Path) -> None:
    links = OrderLinks(FolderOrderData(str(tmp_path)).link_key, "http://a.example")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    query = dict(part.split("=") for part in links.url("d", now + timedelta(seconds=10)).partition("?")[2].split("&"))
    assert links.allows("d", query, now + timedelta(seconds=9))
    assert not links.allows("d", query, now + timedelta(seconds=10))
    assert not links.allows("e", query, now)
    again = OrderLinks(FolderOrderData(str(tmp_path)).link_key, "http://a.example")  # another process
    assert again.allows("d", query, now)


def test_data_and_key_are_on_the_disk_before_their_names_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that refers to them survives a power cut, so they must too: no name stands for bytes that are lost."""
    seen: list[str] = []
    sync, replace, link = os.fsync, Path.replace, os.link

    def synced(descriptor: int) -> None:
        seen.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        seen.append("name")
        return replace(self, target)

    def linked(source: Path, target: Path) -> None:
        seen.append("name")
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(os, "link", linked)
    data = FolderOrderData(str(tmp_path))
    data.put([b"a"], datetime(2026, 1, 1, tzinfo=UTC), "default")
    data.link_key()
    assert seen == ["file", "name", "folder"] * 2


@pytest.mark.parametrize("left", [b"", b"short"])
def test_a_key_that_was_cut_off_signs_nothing(tmp_path: Path, left: bytes) -> None:
    """As an empty key would: everybody could sign with it."""
    (tmp_path / LINK_KEY_FILE).write_bytes(left)
    links = OrderLinks(FolderOrderData(str(tmp_path)).link_key, "http://a.example")
    with pytest.raises(OSError, match="remove it"):
        links.url("d", datetime(2026, 1, 1, tzinfo=UTC))


def test_what_is_not_needed_any_more_is_forgotten(tmp_path: Path) -> None:
    data = FolderOrderData(str(tmp_path))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert data.sweep(now) == 0
    old = data.put([b"old"], now - GRACE - timedelta(seconds=1), "default")
    kept = data.put([b"ke", b"pt"], now + timedelta(days=1), "default")
    assert data.put([b"kept"], now - GRACE * 2, "default") == kept  # asked for once more, for a shorter time
    key = data.link_key()
    assert data.sweep(now) == 1
    assert data.open(old.digest) is None and data.link_key() == key
    found = data.open(kept.digest)
    assert found is not None
    with found.file:
        assert (found.file.read(), found.size) == (b"kept", 4)


def executor(seen: list[Any]) -> Worker:
    worker = Worker(name="ours")

    @worker.executor("relatorio")
    async def relatorio(data: Any) -> dict[str, Any]:
        seen.append(data)
        return {"ok": True}

    return worker


async def test_a_worker_of_this_process_gets_its_data(tmp_path: Path) -> None:
    seen: list[Any] = []
    async with limited(tmp_path, [executor(seen)]) as oraculo, client_of(create_app(oraculo)) as client:
        accepted = await oraculo.submit(WIDE)
        await CurlWorker(client).do("escavador_youtube", dados=LARGE)
        result = await oraculo.result(accepted.correlation_id, wait=60)
        assert result is not None and result["status"] == "concluida"
        assert len(seen) == 30 and all(data[0]["dados"] == LARGE for data in seen)


@pytest.mark.parametrize("lost", [False, True])
async def test_a_worker_over_http_gets_its_data_or_says_that_they_are_gone(tmp_path: Path, lost: bool) -> None:
    seen: list[Any] = []
    worker = executor(seen)
    request = {"coletas": [{"fonte": "youtube"}], "execucoes": [{"executador": "relatorio", "max_tentativas": 1}]}
    async with (
        limited(tmp_path) as oraculo,
        serving(create_app(oraculo)) as url,
        httpx2.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        accepted = await oraculo.submit(request)
        await CurlWorker(client).do("escavador_youtube", dados=LARGE)
        await until(lambda: len(stored_in(tmp_path / "dados")) == 1)
        if lost:
            stored_in(tmp_path / "dados")[0].unlink()
        async with running(worker, HttpTransport(url, "", worker.name)):
            result = await oraculo.result(accepted.correlation_id, wait=60)
        assert result is not None
        if lost:
            assert result["execucoes"][0]["erros"][0]["codigo"] == "dados_indisponiveis" and seen == []
        else:
            assert result["status"] == "concluida"
            assert seen == [[{"fonte": "youtube", "status": "concluida", "dados": LARGE}]]


def stored_in(folder: Path) -> list[Path]:
    """The files of data in a folder."""
    return [path for path in folder.iterdir() if len(path.name) == 64] if folder.is_dir() else []


@asynccontextmanager
async def running(worker: Worker, transport: HttpTransport) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run(transport))
    try:
        yield
    finally:
        worker.stop()
        await task
