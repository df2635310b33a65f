"""A schema registry that speaks Confluent's HTTP: schemas by number, and numbers for our own.

What was found once is kept for ever: a number never stands for anything else. That there is no such schema is forgotten
after a while, because one may be registered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import httpx2

from oraculo import redaction
from oraculo.errors import RegistryUnavailableError, WireError
from oraculo.wire import strict_json
from oraculo.wire.flow import schemas

ANSWER_TIMEOUT_S = 5.0  # seconds for an answer
ABSENT_CACHE_S = 60.0  # seconds for which a number is taken to stand for nothing
MAX_ABSENT_IDS = 1000  # of those, before all are forgotten
SCHEMA_MAX_BYTES = 1024 * 1024
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class HttpRegistry:
    """`topics`: the record of each schema that is published → its topic; `texts`: schemas that take the place of
    shipped ones, by their records."""

    def __init__(
        self,
        url: str,
        topics: Mapping[str, str],
        *,
        patience: float = ANSWER_TIMEOUT_S,
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._texts = texts
        self._where = redaction.urls(url)
        self._base = url.rstrip("/")
        self._topics = dict(topics)
        self._patience = patience
        self._schemas: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._absent: dict[int, float] = {}
        self._learning = asyncio.Lock()
        self._http: httpx2.AsyncClient | None = None

    def schema(self, number: int) -> str:
        found = self._schemas.get(number)
        if found is not None:
            return found
        if self._absent.get(number, 0.0) > time.monotonic():
            raise KeyError(number)
        raise RegistryUnavailableError(f"schema {number} was not asked for yet")

    def number(self, record: str) -> int:
        found = self._numbers.get(record)
        if found is None:
            raise RegistryUnavailableError(f"the schema of {record} is not registered at {self._where} yet")
        return found

    async def learn(self, numbers: Collection[int] = ()) -> None:
        now = time.monotonic()
        wanted = {one for one in numbers if one not in self._schemas and self._absent.get(one, 0.0) <= now}
        if not wanted and len(self._numbers) == len(self._topics):
            return
        async with self._learning:
            for number in sorted(wanted - self._schemas.keys()):
                await self._find(number)
            for record, topic in self._topics.items():
                if record not in self._numbers:
                    self._numbers[record] = await self._register(record, topic)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _find(self, number: int) -> None:
        answer = await self._ask("GET", f"/schemas/ids/{number}")
        if answer is None:
            if len(self._absent) >= MAX_ABSENT_IDS:
                self._absent.clear()
            self._absent[number] = time.monotonic() + ABSENT_CACHE_S
            return
        text = answer.get("schema")
        if not isinstance(text, str) or answer.get("schemaType", "AVRO") != "AVRO" or answer.get("references"):
            text = ""  # no Avro schema that stands by itself: a caller that needs it is told so
        self._schemas[number] = text

    async def _register(self, record: str, topic: str) -> int:
        text = self._texts.get(record) or schemas.text(record)
        path = f"/subjects/{quote(topic, safe='')}-value/versions"
        answer = await self._ask("POST", path, {"schema": text})
        number = answer.get("id") if answer is not None else None
        if type(number) is not int:
            raise RegistryUnavailableError(f"{self._where} gave the schema of {record} no number")
        self._schemas[number] = text
        return number

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """The answer; None when there is no such thing."""
        if self._http is None:
            self._http = httpx2.AsyncClient(timeout=self._patience, headers={"accept": MEDIA_TYPE})
        content = None if body is None else strict_json.dumps(body)
        headers = {} if body is None else {"content-type": MEDIA_TYPE}
        try:
            response = await self._http.request(method, self._base + path, content=content, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._away(str(error) or type(error).__name__) from None
        if response.status_code == 404 and method == "GET":
            return None
        if response.status_code != 200:
            raise self._away(f"{response.status_code} to {method} {path}: {redaction.redact(response.text[:200])}")
        try:
            value = strict_json.loads(response.content, max_bytes=SCHEMA_MAX_BYTES)
        except WireError as error:
            raise self._away(f"an answer that cannot be read: {error.detail}") from None
        if not isinstance(value, dict):
            raise self._away("an answer that is no object")
        return value

    def _away(self, why: str) -> RegistryUnavailableError:
        return RegistryUnavailableError(f"the schema registry {self._where} does not help: {why}")
