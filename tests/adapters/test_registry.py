"""The HTTP registry against a small server that speaks as Confluent's does."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import fastavro
import pytest

from oraculo.adapters.registry import http
from oraculo.adapters.registry.http import HttpRegistry
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.errors import BrokerError, RegistryUnavailableError, WireError
from oraculo.wire.flow import schemas
from oraculo.wire.flow.codec import Codec
from wire.flow.samples import RESULT, TICKET

TOPICS = {"ExecutionTicket": "execution.tickets", "ExecutionResult": "execution.results"}


class Registry:
    """`asked` are the requests so far; `said` is what it answers instead, when set."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.authorization: list[str] = []
        self.said: bytes | None = None
        self.url = ""
        self.port = 0
        self._server: asyncio.Server | None = None

    def add(self, number: int, schema: Any, **more: Any) -> None:
        self.schemas[number] = {"schema": schema if isinstance(schema, str) else json.dumps(schema), **more}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append(f"{method} {path}")
        self.authorization.append(headers.get("authorization", ""))
        writer.write(self.said or _response(*self._answer(method, path, body)))
        await writer.drain()
        writer.close()

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if method == "GET" and path.startswith("/schemas/ids/"):
            found = self.schemas.get(int(path.removeprefix("/schemas/ids/")))
            return (404, {"error_code": 40403}) if found is None else (200, found)
        if method == "POST" and path.startswith("/subjects/") and path.endswith("-value/versions"):
            schema = json.loads(body)["schema"]
            number = next((n for n, one in self.schemas.items() if one["schema"] == schema), 100 + len(self.schemas))
            self.add(number, schema)
            return 200, {"id": number}
        return 405, {}


def _response(status: int, value: Any) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    )
    return head.encode() + b"\r\n" + body


@pytest.fixture
async def server() -> AsyncIterator[Registry]:
    server = Registry()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def registry(server: Registry) -> AsyncIterator[HttpRegistry]:
    registry = HttpRegistry(server.url + "/", TOPICS)
    yield registry
    await registry.close()


def older() -> dict[str, Any]:
    schema = schemas.schema("ExecutionResult")
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "schema_version"]
    return schema


def written(number: int, schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    file = BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + file.getvalue()


async def test_messages_of_other_writers_are_read_by_their_own_schema(server: Registry, registry: HttpRegistry) -> None:
    server.add(7, older())
    codec = Codec(registry)
    raw = written(7, older(), RESULT)
    with pytest.raises(RegistryUnavailableError):
        codec.decode("ExecutionResult", raw)
    await codec.learn([raw, b"{}", b"\0", b""])
    assert codec.decode("ExecutionResult", raw) == RESULT


async def test_ours_are_registered_once_and_written_with_the_number_they_got(
    server: Registry, registry: HttpRegistry
) -> None:
    codec = Codec(registry)
    with pytest.raises(RegistryUnavailableError, match="ExecutionTicket"):
        codec.encode("ExecutionTicket", TICKET)
    await codec.learn()
    raw = codec.encode("ExecutionTicket", TICKET)
    assert int.from_bytes(raw[1:5], "big") == registry.number("ExecutionTicket")
    assert codec.decode("ExecutionTicket", raw) == TICKET
    assert server.asked == [f"POST /subjects/{topic}-value/versions" for topic in TOPICS.values()]


async def test_what_was_found_is_never_asked_for_again(server: Registry, registry: HttpRegistry) -> None:
    server.add(7, older())
    for _ in range(3):
        await registry.learn([7])
    await asyncio.gather(*(registry.learn([7, 100]) for _ in range(5)))
    assert len([one for one in server.asked if one == "GET /schemas/ids/7"]) == 1
    await server.stop()
    await registry.learn([7])
    assert json.loads(registry.schema(7)) == older()
    await server.start()


async def test_a_number_that_stands_for_nothing_is_poison_until_it_is_registered(
    server: Registry, registry: HttpRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec, raw = Codec(registry), written(7, older(), RESULT)
    await codec.learn([raw])
    await codec.learn([raw])
    assert len([one for one in server.asked if one == "GET /schemas/ids/7"]) == 1
    with pytest.raises(WireError) as error:
        codec.decode("ExecutionResult", raw)
    assert error.value.code == "unknown_schema_id"
    server.add(7, older())
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + http.ABSENT_CACHE_S)
    await codec.learn([raw])
    assert codec.decode("ExecutionResult", raw) == RESULT


async def test_numbers_that_stand_for_nothing_do_not_fill_the_memory(
    registry: HttpRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_ABSENT_IDS", 5)
    await registry.learn(range(1000, 1020))
    assert len(registry._absent) <= 5


async def test_when_it_is_away_nothing_is_poison_and_it_works_when_it_is_back(
    server: Registry, registry: HttpRegistry
) -> None:
    await server.stop()
    codec, raw = Codec(registry), written(7, older(), RESULT)
    with pytest.raises(RegistryUnavailableError) as error:
        await codec.learn([raw])
    assert isinstance(error.value, BrokerError) and server.url in str(error.value)
    server.add(7, older())
    await server.start()
    await codec.learn([raw])
    assert codec.decode("ExecutionResult", raw) == RESULT


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 500 X\r\ncontent-length: 4\r\n\r\nouch",
        b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 X\r\ncontent-length: 3\r\n\r\n{]}",
        b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\n[]",
        b"nonsense\r\n\r\n",
        _response(200, {"id": "seven"}),
    ],
)
async def test_an_answer_that_does_not_help(server: Registry, registry: HttpRegistry, said: bytes) -> None:
    server.said = said
    with pytest.raises(RegistryUnavailableError):
        await registry.learn()


@pytest.mark.parametrize(
    "more", [{"schemaType": "PROTOBUF"}, {"references": [{"name": "x", "subject": "y", "version": 1}]}]
)
async def test_a_schema_that_is_none_of_ours_to_read(
    server: Registry, registry: HttpRegistry, more: dict[str, Any]
) -> None:
    server.add(7, older(), **more)
    codec, raw = Codec(registry), written(7, older(), RESULT)
    await codec.learn([raw])
    with pytest.raises(WireError) as error:
        codec.decode("ExecutionResult", raw)
    assert error.value.code == "invalid_schema"


async def test_a_password_is_sent_and_never_shown(server: Registry) -> None:
    registry = HttpRegistry(server.url.replace("http://", "http://ana:segredo@"), TOPICS)
    await registry.learn()
    assert server.authorization[0] == "Basic " + base64.b64encode(b"ana:segredo").decode()
    server.said = _response(500, {})
    with pytest.raises(RegistryUnavailableError) as error:
        await registry.learn([7])
    assert "segredo" not in str(error.value)
    await registry.close()


async def test_without_a_registry_there_is_nothing_to_learn() -> None:
    registry = LocalRegistry()
    await registry.learn([1, 99])
    assert [registry.number(record) for record in schemas.NUMBERS] == list(schemas.NUMBERS.values())
    with pytest.raises(KeyError):
        registry.schema(99)
    await registry.close()
