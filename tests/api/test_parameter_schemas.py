"""Typed functions: what they declare, what is refused for it, and what they get."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from api.conftest import API, CurlWorker, assert_problem, client_of, serving, settings_for
from oraculo import Worker
from oraculo.api.app import create_app
from oraculo.service import Oraculo
from oraculo.worker.typed import typed_parameters
from waiting import until

URL = f"{API}/orchestrations"
SCHEMA = f"{API}/queues/executador_resumo/schema"


class Autor(BaseModel):
    nome: str


class Resumo(BaseModel):
    titulo: str = Field(min_length=2)
    paginas: int = Field(default=1, ge=1, le=9)
    tom: Literal["serio", "leve"] = "serio"
    autores: list[Autor] = []
    nota: str | None = None


class Texto(BaseModel):
    texto: str


@dataclass
class Busca:
    canal: str
    limite: int = 5


class Filtro(TypedDict):
    termo: str


def typed_worker() -> Worker:
    worker = Worker()

    @worker.executor("resumo")
    async def resumo(params: Resumo) -> Texto:
        return Texto(texto=f"{params.titulo} {params.paginas} {[one.nome for one in params.autores]}")

    @worker.collector("busca")
    def busca(parametros: Busca) -> list[Any]:
        return [parametros.canal, parametros.limite]

    return worker


async def ended(client: httpx2.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    accepted = await client.post(URL, json=body)
    assert accepted.status_code == 202, accepted.text
    name = accepted.json()["correlation_id"]
    result: dict[str, Any] = (await client.get(f"{URL}/{name}/result", params={"wait": 20})).json()
    return result


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"tarefas": {"a": {"executador": "resumo", "parametros": {}}}},
        "tarefas.a.parametros.titulo: is missing",
    ),
    (
        {"tasks": {"a": {"executor": "resumo", "params": {"titulo": 5}}}},
        "tarefas.a.parametros.titulo: string is expected, not 5",
    ),
    (
        {"tarefas": {"a": {"executador": "resumo", "parametros": {"titulo": "x", "paginas": 10}}}},
        "tarefas.a.parametros.titulo: at least 2 characters are expected, there are 1; "
        "tarefas.a.parametros.paginas: at most 9 is expected, not 10",
    ),
    (
        {"execucoes": [{"executador": "resumo", "parametros": {"titulo": "xx", "tom": "azul"}}]},
        'execucoes.0.parametros.tom: "azul" is none of "serio", "leve"',
    ),
    (
        {"tarefas": {"m": {"para_cada": [1], "faz": {"executador": "resumo", "parametros": {"titulo": "xx",
         "autores": [{"nome": "${{ item }}"}, {}]}}}}},
        "tarefas.m.faz.parametros.autores.1.nome: is missing",
    ),
    (
        {"tarefas": {"l": {"repete": {"faz": {"executador": "resumo"}, "pare_quando": "${{ true }}", "no_maximo": 1}}}},
        "tarefas.l.repete.faz.parametros.titulo: is missing",
    ),
    (
        {"tarefas": {"a": {"fonte": "x", "desfaz": {"executador": "resumo",
                                                    "parametros": {"titulo": "xx", "nota": 1}}}}},
        "tarefas.a.desfaz.parametros.nota: string is expected, not 1; or null is expected, not 1",
    ),
]  # fmt: skip


async def test_requests_are_held_against_what_functions_of_this_process_take(tmp_path: Path) -> None:
    async with (
        Oraculo(settings_for(tmp_path), workers=[typed_worker()]) as oraculo,
        client_of(create_app(oraculo)) as c,
    ):
        for request, told in REFUSED:
            problem = assert_problem(await c.post(URL, json=request), 422, "invalid_plan")
            assert problem["detail"] == f"{told} (declared by the workers of executador_resumo)"
            assert problem["errors"][0]["campo"] == told.partition(":")[0]
        good = {"titulo": "${{ entrada.t }}", "autores": [{"nome": "ana"}], "nota": None}
        task = {"executador": "resumo", "parametros": good}
        result = await ended(c, {"entrada": {"t": "olá"}, "tarefas": {"a": task}})
        assert result["tarefas"]["a"]["resultado"] == {"texto": "olá 1 ['ana']"}
        result = await ended(c, {"entrada": {"t": 7}, "tarefas": {"a": task}})
        (error,) = result["tarefas"]["a"]["erros"]
        assert (error["codigo"], error["definitivo"]) == ("parametros_invalidos", True)
        assert error["mensagem"].startswith("parametros.titulo: ") and result["tarefas"]["a"]["tentativas"] == 1
        result = await ended(c, {"coletas": [{"fonte": "busca", "parametros": {"canal": "x"}}]})
        assert result["coletas"][0]["dados"] == ["x", 5]


async def test_workers_over_http_declare_and_the_server_remembers(tmp_path: Path) -> None:
    worker = typed_worker()
    settings = settings_for(tmp_path)
    async with Oraculo(settings) as oraculo, serving(app := create_app(oraculo)) as url, client_of(app) as client:
        import asyncio

        running = asyncio.create_task(worker.run(url=url))

        async def declared() -> bool:
            return (await client.get(SCHEMA)).status_code == 200

        await until(declared)
        worker.stop()
        await running
        assert (await client.get(SCHEMA)).json()["parametros"]["required"] == ["titulo"]
    async with Oraculo(settings) as oraculo, client_of(create_app(oraculo)) as client:
        assert_problem(await client.post(URL, json=REFUSED[0][0]), 422, "invalid_plan")
        assert (await client.delete(SCHEMA)).status_code == 204
        assert (await client.delete(SCHEMA)).status_code == 404
        assert (await client.post(URL, json=REFUSED[0][0])).status_code == 202


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"parametros": []}, "parametros"),
        ({"parametros": {"$ref": "https://example.com/x"}}, "refers to nothing inside of the schema"),
        ({"parametros": {"$ref": "#/$defs/x"}}, "refers to nothing inside of the schema"),
        ({"parametros": {"description": "x" * 70_000}}, "at most 65536 bytes"),
        ({"outra": 1}, "unknown field"),
        ({"parametros": {"type": {"a": 1}}}, "/type: the name of a type is needed"),
        ({"parametros": {"enum": 3}}, "/enum: a list is needed"),
        ({"parametros": {"properties": {"a": {"minLength": "x"}}}}, "/properties/a/minLength: a number"),
        ({"parametros": {"allOf": [{"anyOf": [5]}]}}, "/allOf/0/anyOf/0: a schema is an object, true or false"),
        ({"parametros": {"required": [{}]}}, "/required: a list of names is needed"),
        ({"parametros": {"$ref": "#/const", "const": {"enum": 1}}}, "#/const/enum: a list is needed"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_refused(client: httpx2.AsyncClient, body: Any, told: str) -> None:
    answer = await client.put(SCHEMA, json=body)
    assert answer.status_code == 422 and told in answer.text


async def test_a_schema_that_refers_to_itself_and_one_that_fans_out_hold_nothing_up(client: httpx2.AsyncClient) -> None:
    endless = {"$ref": "#"}
    wide = {
        "$defs": {"n": {"anyOf": [{"items": {"$ref": "#/$defs/n"}}] * 9}},
        "additionalProperties": {"$ref": "#/$defs/n"},
    }
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    for schema in (endless, wide):
        assert (await client.put(SCHEMA, json={"parametros": schema})).status_code == 200
        request = {"execucoes": [{"executador": "resumo", "parametros": {"x": nested}}]}
        assert (await client.post(URL, json=request)).status_code == 202


async def test_a_worker_that_knows_nothing_but_http_may_declare_in_either_words(client: httpx2.AsyncClient) -> None:
    schema = {
        "type": "object",
        "required": ["n"],
        "additionalProperties": False,
        "properties": {"n": {"type": "integer"}},
    }
    assert (await client.put(SCHEMA, json={"params": schema})).json() == {
        "fila": "executador_resumo",
        "parametros": schema,
    }
    request = {"execucoes": [{"executador": "resumo", "parametros": {"n": True, "m": 1}}]}
    problem = assert_problem(await client.post(URL, json=request), 422, "invalid_plan")
    assert "n: integer is expected, not true" in problem["detail"]
    assert "m: there is no such parameter; allowed: n" in problem["detail"]
    request["execucoes"][0]["parametros"] = {"n": 2}
    assert (await client.post(URL, json=request)).status_code == 202
    await CurlWorker(client).do("executador_resumo")


def test_hints_that_say_nothing_declare_nothing() -> None:
    def untyped(params): ...
    def plain(params: dict) -> None: ...  # type: ignore[type-arg]
    def any_values(parametros: dict[str, Any]) -> None: ...
    def typed(params: Filtro) -> None: ...
    def numbers(params: dict[str, int]) -> None: ...
    def without_schema(params: Worker) -> None: ...

    assert [typed_parameters(one) for one in (untyped, plain, any_values, without_schema)] == [None] * 4
    found = typed_parameters(typed)
    assert found is not None and found.schema["required"] == ["termo"]
    assert found.read({"termo": "x"}) == {"termo": "x"}
    found = typed_parameters(numbers)
    assert found is not None and found.schema["additionalProperties"] == {"type": "integer"}
