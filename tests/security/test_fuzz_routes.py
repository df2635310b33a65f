"""Requests by chance at every route and every page: whatever stands in the path, the query, the headers and the body,
the answer is one that is meant. Nothing fails, and nothing that was sent ends the server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
import pytest

from api.conftest import API, ONE, client_of, settings_for
from api.test_matrix import Way, ways
from dashboard.test_pages import token_of
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from security.mutation import dumped, mutated, value
from security.readers import READERS, sent
from security.test_fuzz import SECONDS, rounds

REQUESTS_PER_ROUND = 4 if not SECONDS else 20
ROUTES_SHARE = 10.0  # of the time that a reader has
ANSWER_TIMEOUT_S = 60.0
PATIENT = ("stream", "live", "lease", "result")  # routes that may wait for something to happen
SEEDS = [seed for reader in READERS for seed in reader.seeds if seed.startswith(("{", "["))]
WAITS = {"wait", "aguardar", "espera_s", "timeout_s"}  # nothing here is worth waiting for


def names_of(document: Any) -> list[str]:
    """Every name of a field, of a parameter and every word that the OpenAPI document knows."""
    found: set[str] = set()
    stack = [document]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            found |= set(one.get("properties", {}) if isinstance(one.get("properties"), dict) else ())
            if isinstance(one.get("name"), str):
                found.add(one["name"])
            found |= {word for word in one.get("enum", ()) if isinstance(word, str)}
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)
    return sorted(found - WAITS)


async def known(client: httpx2.AsyncClient) -> list[str]:
    """Names of things that there are."""
    await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "conhecida"})
    await client.post(f"{API}/orchestrations/conhecida/cancel")
    await client.post(f"{API}/orchestrations", json={**ONE, "correlation_id": "aberta"})
    await client.put(f"{API}/task-types/conhecido", json=ONE)
    await client.put(f"{API}/schedules/conhecida", json={"intervalo_s": 86_400, "requisicao": ONE})
    await client.post(f"{API}/results", json=[{"correlation_id": "conhecida"}])
    ticket = (await client.get(f"{API}/orchestrations/aberta")).json()["tickets"][0]["ticket_id"]
    letters = (await client.get(f"{API}/dead-letters")).json()["dead_letters"]
    return ["conhecida", "aberta", "conhecido", "escavador_youtube", ticket, *(str(one["id"]) for one in letters)]


def request_of(random: Random, way: Way, names: list[str], there: list[str], token: str) -> dict[str, Any]:
    """One request at one way in."""

    def word() -> str:
        return random.choice(
            [random.choice(there), random.choice(names), mutated(random, there, 200), mutated(random, [], 2000)]
        )

    path = "/".join(
        quote(sent(word()), safe="") if part in ("nada", "1", "0") else part for part in way.path.split("/")
    )
    query = urlencode([(random.choice(names), sent(word())) for _ in range(random.choice((0, 0, 1, 3)))])
    headers = {
        name: sent(word()).replace(b"\n", b"").replace(b"\r", b"").replace(b"\0", b"")[:4000]
        for name in ("Accept", "Accept-Language", "Idempotency-Key", "traceparent", "Cookie", "Oraculo-Words")
        if random.random() < 0.1
    }
    if random.random() < 0.3:
        headers["Accept"] = b"text/html"
    body = b""
    if way.method in ("POST", "PUT", "DELETE"):
        if way.path.startswith(("/ui/", "/login")) and random.random() < 0.9:
            fields = [("csrf", token), *((random.choice(names), sent(word())) for _ in range(random.randint(0, 6)))]
            body = urlencode(fields).encode()
            headers["Content-Type"] = b"application/x-www-form-urlencoded"
        else:
            text = mutated(random, SEEDS, 60_000) if random.random() < 0.5 else dumped(value(random, names))
            body = text.encode("utf-8", "surrogatepass") if not text.isprintable() else sent(text)
            headers["Content-Type"] = random.choice([b"application/json"] * 9 + [b"text/plain", b"application/yaml"])
    return {"method": way.method, "url": path + (f"?{query}" if query else ""), "headers": headers, "content": body}


@pytest.mark.parametrize("flow", ["off", "on"])
async def test_no_route_fails_whatever_is_sent(tmp_path: Path, flow: str) -> None:
    oraculo = Oraculo(settings_for(tmp_path, ORACULO_FLOW_C=flow, ORACULO_TRAILS="true", ORACULO_PREDICTIONS="true"))
    app = create_app(oraculo)
    every, names = ways(tmp_path), names_of(app.openapi())
    wrong = []
    async with oraculo, client_of(app) as client:
        there = await known(client)
        page = await client.get("/new", headers={"Accept": "text/html"})
        client.cookies.update(page.cookies)
        token = token_of(page)
        for seed in rounds(ROUTES_SHARE):
            random = Random(f"routes {flow} {seed}")
            for _ in range(REQUESTS_PER_ROUND):
                wanted = request_of(random, random.choice(every), names, there, token)
                try:
                    async with asyncio.timeout(
                        1 if wanted["url"].count("/") and _is_patient(wanted) else ANSWER_TIMEOUT_S
                    ):
                        answer = await client.request(**wanted)
                except TimeoutError:
                    if not _is_patient(wanted):
                        wrong.append(f"seed {seed}: no answer to {wanted}")
                    continue
                if answer.status_code >= 500:
                    wrong.append(f"seed {seed}: {answer.status_code} {answer.text[:300]} for {wanted}"[:1500])
        assert (await client.get("/health")).status_code == 200
    assert wrong[:3] == []


def _is_patient(wanted: dict[str, Any]) -> bool:
    return any(word in wanted["url"].partition("?")[0] for word in PATIENT)
