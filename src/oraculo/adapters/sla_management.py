"""Error budgets that another service has of this one, asked over HTTP again and again."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import structlog

from oraculo.core.sla.budget import OutsideBudget
from oraculo.errors import WireError
from oraculo.wire import strict_json

log = structlog.get_logger("oraculo.sla")

PATH = "/api/v1/budgets"
ANSWER_MAX_BYTES = 1024 * 1024
BUDGETS_MAX = 100


class BudgetService:
    """`budgets` are those of the last answer; none while the service is away: what is not known is not critical."""

    def __init__(self, url: str, service: str, *, timeout_s: float, interval_s: float) -> None:
        self._url = url
        self._service = service
        self._timeout_s = timeout_s
        self._interval_s = interval_s
        self._away = False
        self.budgets: tuple[OutsideBudget, ...] = ()

    async def run(self) -> None:
        """Ask for ever."""
        async with httpx2.AsyncClient(timeout=self._timeout_s, trust_env=False) as client:
            while True:
                await self.ask(client)
                await asyncio.sleep(self._interval_s)

    async def ask(self, client: httpx2.AsyncClient) -> None:
        """Ask once."""
        try:
            async with asyncio.timeout(self._timeout_s):
                content = await self._answer(client)
            self.budgets = budgets_in(strict_json.loads(content, max_bytes=ANSWER_MAX_BYTES))
        except (httpx2.HTTPError, WireError, ValueError, TimeoutError) as error:
            self.budgets = ()
            if not self._away:
                said = str(error) or type(error).__name__
                log.warning("error budgets not read: their service is away", url=self._url, error=said)
            self._away = True
            return
        if self._away:
            log.info("error budgets are read again", url=self._url)
        self._away = False

    async def _answer(self, client: httpx2.AsyncClient) -> bytes:
        """The body of an answer. ValueError: it is none, or too long, and then it is not read to its end."""
        async with client.stream("GET", self._url + PATH, params={"service_name": self._service}) as answer:
            if answer.status_code != 200:
                raise ValueError(f"it answers {answer.status_code}")
            content = b""
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > ANSWER_MAX_BYTES:
                    raise ValueError(f"it answers with more than {ANSWER_MAX_BYTES} bytes")
            return content


def budgets_in(value: Any) -> tuple[OutsideBudget, ...]:
    """The budgets of an answer. ValueError: it is not as the service says."""
    found = value.get("budgets") if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise ValueError("its answer has no list of budgets")
    return tuple(_budget(one) for one in found[:BUDGETS_MAX])


def _budget(value: Any) -> OutsideBudget:
    fields: dict[str, Any] = value if isinstance(value, dict) else {}
    name, service, percent = (fields.get(key) for key in ("slo_id", "service_name", "error_budget_remaining"))
    if not isinstance(name, str) or not isinstance(service, str):
        raise ValueError("a budget without slo_id or service_name")
    if isinstance(percent, bool) or not isinstance(percent, int | float) or not 0 <= percent <= 100:
        raise ValueError("a budget whose error_budget_remaining is not 0 to 100")
    return OutsideBudget(name, service, percent / 100)
