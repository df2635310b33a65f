"""`oraculo mcp` with the SDK's own client: a server in a process of its own, and the tools that a key may use."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from tools.servers.server import free_port

from cli.processes import Cli, Server, environment
from oraculo.client.async_client import AsyncClient
from oraculo.client.client import Client
from oraculo.mcp.server import server as mcp_server
from oraculo.mcp.tools import RESULT_MAX_CHARS
from oraculo.mcp.type_tools import TOOL_NAME_MAX_CHARS, parameters_schema, tool_name
from waiting import until

KEY = "chave-de-teste-0123456789-abcdefgh"
READING = {"get_run", "list_runs", "why_waiting", "explain_run", "list_dead_letters", "propose_correction"}
WRITING = {"submit_request", "cancel_run", "apply_correction", "start_eco"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("server"), "--worker", "trabalho:worker", ORACULO_API_KEY=KEY)
    one.start()
    with Client(one.url, KEY) as client:
        client.put_task_type("eco", {"coletas": [{"fonte": "eco", "parametros": {"n": 1, "canal": "x"}}]})
        client.put_task_type("espera", {"coletas": [{"fonte": "espera", "parametros": {"comecou": "", "pode": ""}}]})
    yield one
    one.kill()


@pytest.fixture
def api(server: Server) -> Iterator[Client]:
    with Client(server.url, KEY) as client:
        yield client


@asynccontextmanager
async def within(server: Server, key: str = KEY) -> AsyncIterator[McpClient]:
    """The SDK's client with the server of the protocol in this process."""
    async with (
        AsyncClient(server.url, key, language="en", words="pt") as asked,
        McpClient(mcp_server(asked, read_only=False)) as client,
    ):
        yield client


def process(server: Server, *options: str) -> McpClient:
    """The SDK's client with `oraculo mcp` as a host would start it."""
    known = environment(server.folder, ORACULO_URL=server.url, ORACULO_API_KEY=KEY)
    command = StdioServerParameters(command=sys.executable, args=["-m", "oraculo", "mcp", *options], env=known)
    return McpClient(command)


def answer(done: CallToolResult) -> dict[str, Any]:
    assert not done.is_error, done.content
    (text,) = done.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == done.structured_content
    return dict(done.structured_content)


def refused(done: CallToolResult) -> str:
    assert done.is_error
    (text,) = done.content
    assert isinstance(text, TextContent)
    return text.text


async def names(client: McpClient) -> set[str]:
    return {one.name for one in (await client.list_tools()).tools}


async def test_a_run_outlives_the_session_that_started_it(server: Server, tmp_path: Path) -> None:
    began, may = tmp_path / "comecou", tmp_path / "pode"
    files = {"comecou": str(began), "pode": str(may)}
    async with process(server) as client:
        assert await names(client) >= READING | WRITING
        given = {"parametros": files, "run": "sobrevive", "wait_s": 0}
        started = answer(await client.call_tool("start_espera", given))
        assert (started["run"], started["ended"]) == ("sobrevive", False)
        await until(began.exists)
        why = answer(await client.call_tool("why_waiting", {"run": "sobrevive"}))
        assert "espera" in why["waiting_for"]
        (ticket,) = why["open_tickets"]
        assert (ticket["queue"], ticket["attempt"]) == ("escavador_espera", 1)
        assert ticket["why"].startswith("escavador_espera: attempt 1 is with escavador_espera since ")
        assert [one["queue"] for one in why["queues"]] == ["escavador_espera"]
    may.touch()
    async with process(server, "--read-only") as again:  # another process: only the id is known
        assert await names(again) >= READING
        assert not await names(again) & WRITING
        ended = answer(await again.call_tool("get_run", {"run": "sobrevive", "wait_s": 30}))
        assert (ended["status"], ended["result"]["coletas"][0]["dados"]) == ("concluida", "fim")
        told = answer(await again.call_tool("explain_run", {"run": "sobrevive"}))
        assert (told["status"], told["stands"]) == ("concluida", "ended as completed")
        assert told["decisions"][0]["decision"].startswith("asked for")
        assert told["decisions"][-1]["details"] == ["1 × completed"]


async def test_a_run_outlives_the_server_the_tools_and_the_session(tmp_path: Path) -> None:
    began, may = tmp_path / "comecou", tmp_path / "pode"
    port = free_port()
    one = Server(tmp_path, "--worker", "trabalho:worker", port=port, ORACULO_API_KEY=KEY)
    one.start()
    try:
        async with process(one) as client:
            request = {"coletas": [{"fonte": "espera", "parametros": {"comecou": str(began), "pode": str(may)}}]}
            given = {"request": request, "run": "sobrevive-a-tudo", "wait_s": 0}
            assert answer(await client.call_tool("submit_request", given))["ended"] is False
            await until(began.exists)
            one.kill()
            away = await client.call_tool("get_run", {"run": "sobrevive-a-tudo"})
            assert f"127.0.0.1:{port}" in refused(away)
            began.unlink()
            one.start()  # the same address and the same store
            asked = {"run": "sobrevive-a-tudo", "wait_s": 0}
            assert answer(await client.call_tool("get_run", asked))["ended"] is False, "the same session goes on"
        await until(began.exists)  # the order was given out again
        async with process(one) as again:  # another process of the tools, which knows the id alone
            repeated = answer(await again.call_tool("submit_request", given))
            assert (repeated["run"], repeated["ended"]) == ("sobrevive-a-tudo", False), "nothing starts twice"
            may.touch()
            ended = answer(await again.call_tool("get_run", {"run": "sobrevive-a-tudo", "wait_s": 60}))
            assert (ended["status"], ended["result"]["coletas"][0]["dados"]) == ("concluida", "fim")
            listed = answer(await again.call_tool("list_runs", {}))
            assert [run["correlation_id"] for run in listed["runs"]] == ["sobrevive-a-tudo"]
    finally:
        may.touch()
        one.kill()


async def test_task_types_are_tools_with_their_schemas_and_repeating_starts_nothing_twice(
    server: Server, api: Client
) -> None:
    async with within(server) as client:
        (tool,) = [one for one in (await client.list_tools()).tools if one.name == "start_eco"]
        wanted = {"n": {"type": "integer", "default": 1}, "canal": {"type": "string", "default": "x"}}
        assert tool.input_schema["properties"]["parametros"]["properties"] == wanted
        assert "'eco': collects eco" in str(tool.description)
        for _ in range(2):
            given = {"parametros": {"n": 5}, "run": "uma-vez", "wait_s": 30}
            done = answer(await client.call_tool("start_eco", given))
            assert done["result"]["coletas"][0]["dados"] == {"n": 5, "canal": "x"}
        assert len([one for one in api.list(limit=200).items if one["correlation_id"] == "uma-vez"]) == 1
        other = await client.call_tool("start_eco", {"parametros": {"n": 6}, "run": "uma-vez"})
        assert refused(other).startswith("409 ")


async def test_only_what_the_key_may_do_is_offered(server: Server, api: Client) -> None:
    reader = api.create_key("leitor")["key"]
    worker = api.create_key("trabalhador", queues=["escavador_eco"])["key"]
    async with within(server, reader) as client:
        assert await names(client) == READING
        assert refused(await client.call_tool("cancel_run", {"run": "x"})).startswith("there is no tool 'cancel_run'")
    async with within(server, worker) as client:
        assert await names(client) == set()
    async with within(server, "errada-0123456789-0123456789-0123") as client:
        with pytest.raises(MCPError, match="401"):
            await client.list_tools()


async def test_a_dead_letter_is_corrected_only_when_that_is_asked_for(server: Server, api: Client) -> None:
    run = api.submit({"coletas": [{"fonte": "ninguem", "parametros": {"n": n}} for n in (1, 2)]}).correlation_id
    envelope = {
        "correlation_id": run,
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": "ninguem", "status": "ok", "dados": "achado"},
        "timestamp": "2026-01-02T03:04:05Z",
    }
    headers = {"Authorization": f"Bearer {KEY}"}
    said = httpx2.post(f"{server.url}/api/v1/results", json=[envelope], headers=headers, trust_env=False)
    assert "ambiguous" in said.text
    async with within(server) as client:
        listed = answer(await client.call_tool("list_dead_letters", {"reason": "ambiguous"}))
        letter = next(one["id"] for one in listed["dead_letters"] if one["correlation_id"] == run)
        proposed = answer(await client.call_tool("propose_correction", {"letter": letter}))
        tickets = [json.loads(one["body"])["ticket_id"] for one in proposed["proposals"]]
        assert tickets == [one["ticket_id"] for one in api.get(run)["tickets"]]
        assert api.dead_letter(letter)["motivo"] == "ambiguous", "nothing was changed"
        body = proposed["proposals"][1]["body"]
        unasked = refused(await client.call_tool("apply_correction", {"letter": letter, "body": body}))
        assert "'asked_by_user' is a required property" in unasked
        given = {"letter": letter, "body": body, "asked_by_user": True}
        assert answer(await client.call_tool("apply_correction", given))["removida"] is True
        await until(lambda: api.ticket(tickets[1])["status"] == "concluida")
        assert api.ticket(tickets[0])["status"] in ("pendente", "em_execucao")
        cancelled = answer(await client.call_tool("cancel_run", {"run": run, "reason": "fim do teste"}))
        assert cancelled["correlation_id"] == run


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("get_run", {}, "get_run: $: 'run' is a required property"),
        ("get_run", {"run": "x", "wait_s": 900}, "get_run: $.wait_s: 900 is greater than the maximum of 60"),
        ("get_run", {"run": "nenhuma"}, "404 "),
        ("list_runs", {"status": ["pronta"]}, "list_runs: $.status[0]: 'pronta' is not one of ['pendente'"),
        ("submit_request", {"request": {"coleta": []}}, "422 "),
        ("propose_correction", {"letter": 999999}, "404 "),
        ("nenhuma", {}, "there is no tool 'nenhuma' for this key"),
    ],
)
async def test_bad_input_is_one_line_that_names_it(server: Server, tool: str, given: dict[str, Any], said: str) -> None:
    async with within(server) as client:
        line = refused(await client.call_tool(tool, given))
    assert line.startswith(said)
    assert "\n" not in line


async def test_a_result_that_is_too_long_comes_without_its_data(server: Server) -> None:
    async with within(server) as client:
        given = {"request": {"coletas": [{"fonte": "eco", "parametros": {"t": "x" * RESULT_MAX_CHARS}}]}, "wait_s": 30}
        done = answer(await client.call_tool("submit_request", given))
    assert "dados" not in done["result"]["coletas"][0]
    assert done["status"] == "concluida"
    assert "too long" in done["shortened"]


async def test_without_a_server_the_list_says_so() -> None:
    async with (
        AsyncClient("http://127.0.0.1:9", KEY) as asked,
        McpClient(mcp_server(asked, read_only=False)) as client,
    ):
        with pytest.raises(MCPError, match=r"127\.0\.0\.1:9"):
            await client.list_tools()


def test_json_prints_the_tools(server: Server) -> None:
    shown = Cli(server.folder, server.url).json("mcp", "--read-only", ORACULO_API_KEY=KEY)
    assert {one["name"] for one in shown["tools"]} == READING
    assert all(one["inputSchema"]["type"] == "object" and one["annotations"]["readOnlyHint"] for one in shown["tools"])


@pytest.mark.parametrize("task_type", ["a.b", "x" * 100, "relatorio_semanal"])
def test_every_task_type_has_a_name_that_clients_take(task_type: str) -> None:
    name = tool_name(task_type)
    assert len(name) <= TOOL_NAME_MAX_CHARS
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert tool_name("a.b") != tool_name("a_b")


def test_the_input_of_a_plan_is_its_schema() -> None:
    plan = {"tarefas": {"a": {"fonte": "eco"}}, "entrada": {"canal": "x", "dias": 7, "nada": None}}
    known = parameters_schema(plan)["properties"]
    assert known == {
        "canal": {"type": "string", "default": "x"},
        "dias": {"type": "integer", "default": 7},
        "nada": {"default": None},
    }


def test_without_the_extra_one_line_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "mcp"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ModuleNotFoundError('no', name='mcp')\n")
    done = Cli(tmp_path).fresh("mcp", PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert (done.returncode, done.stderr) == (
        2,
        "oraculo: oraculo mcp needs an extra that is not installed: pip install 'oraculo[mcp]'\n",
    )
