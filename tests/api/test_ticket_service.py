"""The ticket service of the original over HTTP: lists, tickets that come alone, statuses, compensation, tokens."""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from api.conftest import API, assert_problem
from api.test_keys import SHARED, bearer, made
from api.test_plans import TICKETS, Site, plan, task
from waiting import until

LIST = f"{API}/tickets"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Site(tmp_path) as site:
        yield site


async def bring(site: Site, expect: int = 201, **ticket: Any) -> dict[str, Any]:
    response = await site.client.post(LIST, json=ticket)
    assert response.status_code == expect, response.text
    found: dict[str, Any] = response.json()
    return found


async def tells_running(site: Site, record: dict[str, Any]) -> bool:
    """Say RUNNING; true once the broker's confirmation is written."""
    where = f"{LIST}/{record['ticket_id']}/status"
    return bool((await site.client.patch(where, json={"status": "RUNNING"})).json()["status"] == "RUNNING")


class TestLists:
    async def test_tickets_of_one_plan_are_counted_and_filtered(self, site: Site) -> None:
        await site.bring(plan("p1", task("a"), task("b", "a")))
        [leased] = await site.worker.take(TICKETS, 1)
        await site.answer(leased)
        await site.worker.take(TICKETS, 1)
        page = await site.get("/tickets?plan_id=p1")
        assert [one["task_id"] for one in page["tickets"]] == ["a", "b"]
        assert (page["total"], page["offset"], page["limit"], page["next"]) == (2, 0, 100, None)
        done = await site.get("/tickets?plan_id=p1&status=COMPLETED")
        assert [one["task_id"] for one in done["tickets"]] == ["a"] and done["total"] == 1
        assert [one["task_id"] for one in (await site.get("/tickets?plan_id=p1&offset=1"))["tickets"]] == ["b"]

    async def test_all_tickets_come_once_page_by_page_the_newest_plan_first(self, site: Site) -> None:
        for number in range(5):
            await site.bring(plan(f"p{number}", task("a"), task("b"), intent_id=f"i{number % 2}"))
        assert (await site.get("/tickets"))["total"] == 10
        seen, cursor = [], ""
        while True:
            page = await site.get(f"/tickets?limit=3{cursor}")
            seen += [(one["plan_id"], one["task_id"]) for one in page["tickets"]]
            if page["next"] is None:
                break
            assert len(page["tickets"]) == 3 and page["total"] is None
            cursor = f"&cursor={page['next']}"
        assert seen == [(f"p{number}", name) for number in range(4, -1, -1) for name in "ab"]
        of_one = await site.get("/tickets?intent_id=i1&offset=1")
        assert [one["plan_id"] for one in of_one["tickets"]] == ["p3", "p1", "p1"] and of_one["total"] == 4

    async def test_what_is_no_list_is_refused(self, site: Site) -> None:
        assert_problem(await site.client.get(f"{LIST}?plan_id=nobody"), 404, "unknown_id")
        assert_problem(await site.client.get(f"{LIST}?cursor=x.y"), 422, "invalid_cursor")
        assert_problem(await site.client.get(f"{LIST}?status=rejected"), 422, "invalid_parameter")


class TestTicketsThatComeAlone:
    async def test_one_is_filled_in_published_and_ended_by_its_status(self, site: Site) -> None:
        record = await bring(
            site, task_type="build", description="image", parameters={"ref": "main"}, priority="HIGH",
            sla={"timeout_ms": 90_000, "max_retries": 0},
        )  # fmt: skip
        assert record["task_type"] == "BUILD" and record["status"] == "PENDING" and record["priority"] == "HIGH"
        assert record["sla"]["timeout_ms"] == 90_000 and record["sla"]["max_retries"] == 0
        [leased] = await site.worker.take(TICKETS, 1)
        assert leased["mensagem"]["ticket_id"] == record["ticket_id"]
        assert leased["mensagem"]["parameters"] == {"ref": "main"}
        where = f"{LIST}/{record['ticket_id']}/status"
        await until(lambda: tells_running(site, record))
        done = await site.client.patch(where, json={"status": "COMPLETED", "actual_duration_ms": 1234})
        assert done.json()["status"] == "COMPLETED" and done.json()["actual_duration_ms"] == 1234
        assert done.json()["completed_at"] >= done.json()["started_at"]
        assert_problem(await site.client.patch(where, json={"status": "FAILED"}), 409, "ticket_status")
        assert (await site.get(f"/workflows/orch-{record['plan_id']}"))["status"] == "completed"

    async def test_the_same_key_is_the_same_ticket(self, site: Site) -> None:
        ticket = {"task_type": "TEST", "metadata": {"idempotency_key": "k-1"}}
        first, again = await bring(site, **ticket), await bring(site, 200, **ticket)
        assert first["ticket_id"] == again["ticket_id"]
        other = await site.client.post(LIST, json={**ticket, "description": "another"})
        assert_problem(other, 409, "plan_id_taken")
        assert (await site.get("/tickets"))["total"] == 1

    async def test_a_failure_that_may_be_tried_again_is(self, site: Site) -> None:
        record = await bring(site, sla={"max_retries": 1})
        await site.worker.take(TICKETS, 1)
        where = f"{LIST}/{record['ticket_id']}/status"
        failed = await site.client.patch(where, json={"status": "FAILED", "error_message": "disk full"})
        assert failed.json()["status"] == "PENDING" and failed.json()["error_message"] == "disk full"
        [second] = await site.worker.take(TICKETS, 1)
        assert second["mensagem"]["tentativa"] == 2

    async def test_bad_ones_are_refused(self, site: Site) -> None:
        for ticket in ({"dependencies": ["x"]}, {"risk_band": "x"}, {"sla": {"timeout_ms": 0}}, {"task_type": "X"}):
            assert_problem(await site.client.post(LIST, json=ticket), 422, "invalid_request")
        late = await site.client.post(LIST, json={"sla": {"deadline": 1}})
        assert_problem(late, 422, "invalid_plan")
        record = await bring(site)
        for status in ("PENDING", "COMPENSATING"):
            refused = await site.client.patch(f"{LIST}/{record['ticket_id']}/status", json={"status": status})
            assert_problem(refused, 422, "invalid_request")


class TestCompensation:
    async def test_it_is_asked_for_once_and_shown_at_both_ends(self, site: Site) -> None:
        await site.bring(plan("p1", task("deploy", worker="gpu", metadata={"region": "eu"})))
        [original] = (await site.get("/tickets?plan_id=p1"))["tickets"]
        body = {"original_ticket_id": original["ticket_id"], "reason": "withdrawn", "compensation_action": "rollback"}
        body["parameters"] = {"to": "v1"}
        where = f"{LIST}/compensation"
        [leased] = await site.worker.take("executador_gpu", 1)
        await site.answer(leased)
        started = await site.client.post(where, json=body)
        assert started.status_code == 201, started.text
        assert started.json()["action"] == "rollback" and started.json()["original_ticket_id"] == original["ticket_id"]
        again = await site.client.post(where, json=body)
        assert again.status_code == 200 and again.json()["ticket_id"] == started.json()["ticket_id"]
        [shown] = (await site.get("/tickets?plan_id=p1"))["tickets"]
        assert shown["status"] == "COMPENSATING" and shown["compensation_ticket_id"] == started.json()["ticket_id"]
        [order] = await site.worker.take("executador_gpu", 1)  # goes to the class that did it
        parameters = order["mensagem"]["parameters"]
        assert parameters["original_ticket_id"] == original["ticket_id"] and parameters["to"] == "v1"
        assert order["mensagem"]["task_type"] == "COMPENSATE"
        await site.answer(order)
        [shown] = (await site.get("/tickets?plan_id=p1"))["tickets"]
        assert shown["status"] == "COMPENSATED"
        assert (await site.get("/workflows/orch-p1"))["status"] == "completed"  # it stays as it ended

    async def test_a_ticket_that_never_began_is_not_compensated(self, site: Site) -> None:
        await site.bring(plan("p1", task("a"), task("b", "a")))
        waiting = (await site.get("/tickets?plan_id=p1&status=PENDING"))["tickets"][-1]
        body = {"original_ticket_id": waiting["ticket_id"], "reason": "x"}
        assert_problem(await site.client.post(f"{LIST}/compensation", json=body), 409, "ticket_status")
        body["original_ticket_id"] = "06721f3a-0000-8000-8000-000004b1c2d3"
        assert_problem(await site.client.post(f"{LIST}/compensation", json=body), 404, "unknown_id")


class TestTokens:
    async def test_a_status_needs_the_token_of_the_ticket(self, tmp_path: Path) -> None:
        async with Site(tmp_path, ORACULO_RESULT_TOKENS="require") as site:
            record, other = await bring(site), await bring(site)
            await site.worker.take(TICKETS, 2)
            where = f"{LIST}/{record['ticket_id']}"
            assert_problem(
                await site.client.patch(f"{where}/status", json={"status": "COMPLETED"}), 403, "unauthenticated"
            )
            wrong = (await site.get(f"/tickets/{other['ticket_id']}/token"))["access_token"]
            refused = await site.client.patch(f"{where}/status", json={"status": "COMPLETED", "token": wrong})
            assert_problem(refused, 403, "unauthenticated")
            given = await site.get(f"/tickets/{record['ticket_id']}/token")
            assert given["token_type"] == "Bearer" and given["ticket_id"] == record["ticket_id"]
            headers = {"oraculo-token": given["access_token"]}
            done = await site.client.patch(f"{where}/status", json={"status": "COMPLETED"}, headers=headers)
            assert done.json()["status"] == "COMPLETED"
            assert_problem(await site.client.get(f"{where}/token"), 409, "ticket_status")
            letters = await site.get("/dead-letters?motivo=unauthenticated")
            assert len(letters["dead_letters"]) == 2

    async def test_without_tokens_there_are_none(self, site: Site) -> None:
        record = await bring(site)
        assert_problem(await site.client.get(f"{LIST}/{record['ticket_id']}/token"), 409, "tokens_off")


async def test_a_worker_tells_the_status_of_its_own_queues_only_and_gets_no_token(tmp_path: Path) -> None:
    async with Site(tmp_path, ORACULO_API_KEY=SHARED, ORACULO_RESULT_TOKENS="accept") as site:
        site.client.headers["X-API-Key"] = SHARED
        record = await bring(site, worker="gpu")
        await site.worker.take("executador_gpu", 1)
        own, other = [
            bearer(await made(site.client, role="trabalhador", queues=[queue]))
            for queue in ("executador_gpu", "executador_cpu")
        ]
        del site.client.headers["X-API-Key"]
        where = f"{LIST}/{record['ticket_id']}"
        done = {"status": "COMPLETED"}
        assert_problem(await site.client.patch(f"{where}/status", json=done, headers=other), 403, "forbidden")
        assert_problem(await site.client.get(f"{where}/token", headers=own), 403, "forbidden")
        assert (await site.client.patch(f"{where}/status", json=done, headers=own)).json()["status"] == "COMPLETED"


class Receiver:
    """Takes webhooks; refuses the first so many."""

    def __init__(self, refuse: int = 0) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self._refuse = refuse

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def told(self) -> dict[str, str]:
        """The types of the events by their ids, in the order in which they came first; one may come again."""
        found: dict[str, str] = {}
        for _, body in self.got:
            event = json.loads(body)
            found.setdefault(event["event_id"], event["event_type"])
        return found

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head)}
        body = await reader.readexactly(int(headers["content-length"]))
        self._refuse -= 1
        if self._refuse < 0:
            self.got.append((headers, body))
        writer.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % (b"200 OK" if self._refuse < 0 else b"503 Busy"))
        await writer.drain()
        writer.close()


async def test_the_address_of_a_ticket_is_told_how_it_goes(tmp_path: Path) -> None:
    key = b"k" * 32
    secret = "whsec_" + b64encode(key).decode()
    async with Receiver(refuse=1) as receiver:
        variables = {
            "ORACULO_TICKET_WEBHOOKS": "neural-hive",
            "ORACULO_WEBHOOK_SECRET": secret,
            "ORACULO_WEBHOOK_ALLOW": f"127.0.0.1:{receiver.port}",
        }
        async with Site(tmp_path, **variables) as site:
            url = f"http://127.0.0.1:{receiver.port}/hook"
            record = await bring(site, metadata={"webhook_url": url}, task_type="BUILD")
            await site.worker.take(TICKETS, 1)
            await until(lambda: tells_running(site, record))
            await site.client.patch(f"{LIST}/{record['ticket_id']}/status", json={"status": "COMPLETED"})
            await until(lambda: len(receiver.told()) == 3)
    assert list(receiver.told().values()) == ["ticket.created", "ticket.updated", "ticket.completed"]
    for headers, body in receiver.got:
        document = json.loads(body)
        assert document["ticket"]["ticket_id"] == record["ticket_id"] == headers["x-neural-hive-ticket-id"]
        assert headers["x-neural-hive-event"] == document["event_type"]
        assert headers["x-neural-hive-signature"] == "sha256=" + hmac.new(key, body, sha256).hexdigest()
        assert headers["webhook-id"] == document["event_id"] and headers["webhook-signature"].startswith("v1,")
