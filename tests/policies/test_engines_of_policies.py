"""What evaluates policies when they, or it, are bad: a clear error for the input concerned, and bounded in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tools.servers.opa import Opa
from tools.servers.server import Server

import servers
from oraculo.adapters.policies.embedded import EmbeddedPolicies, PolicyFolder, read_folder
from oraculo.adapters.policies.opa import OpaOptions, OpaPolicies
from oraculo.errors import PolicyError
from waiting import until

GOOD = "package p\nimport rego.v1\nallow := true\n"
LOOPS = """package p
import rego.v1
allow if not input.slow
allow if {
    input.slow
    count([1 | some i in numbers.range(1, 4000); some j in numbers.range(1, 4000); i * j > 0]) > 0
}
"""
CONFLICT = "package p\nimport rego.v1\nallow := true\nmore := 1 if input.bad\nmore := 2 if input.bad\n"
GOOD_Q = "package q\nimport rego.v1\nallow if input.is_good\n"
PATIENCE_S = 60.0


def folder(tmp_path: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (tmp_path / f"{name}.rego").write_text(text)
    return tmp_path


@asynccontextmanager
async def embedded(text: str, timeout_s: float = PATIENCE_S) -> AsyncIterator[EmbeddedPolicies]:
    made = EmbeddedPolicies(PolicyFolder({"p.rego": text}), ["p"], timeout_s)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.parametrize(
    ("modules", "wrong"),
    [
        ({}, "there is no .rego file"),
        ({"a": "import rego.v1\nallow := true"}, "a.rego: the module has no package"),
        ({"a": "package p\nviolations[x] { x := 1 }"}, "a.rego: `import rego.v1` is missing"),
        ({"a": 'package p\nimport rego.v1\nallow := opa.runtime().env.HOME == "x"'}, "a.rego: opa.runtime"),
        ({"a": 'package p\nimport rego.v1\nallow := http.send({"url": "x"})'}, "a.rego: http.send"),
    ],
)
def test_a_folder_that_cannot_be_used_says_which_file_and_why(
    tmp_path: Path, modules: dict[str, str], wrong: str
) -> None:
    with pytest.raises(PolicyError, match="(?s)" + wrong.replace(".", r"\.").replace("(", r"\(")):
        read_folder(folder(tmp_path, **modules))


def test_words_in_texts_and_comments_are_not_taken_for_code(tmp_path: Path) -> None:
    made = read_folder(
        folder(tmp_path, a='package p\nimport rego.v1\n# opa.runtime\nsaid := "http.send is not used"\n')
    )
    assert made.packages == ("p",)


async def test_a_policy_that_does_not_compile_names_its_place() -> None:
    engine = EmbeddedPolicies(PolicyFolder({"p.rego": "package p\nimport rego.v1\nallow if {"}), ["p"])
    with pytest.raises(PolicyError, match=r"do not compile: p\.rego:3:10: this is unclosed"):
        await engine.open()


async def test_a_package_that_is_not_there_is_named_before_anything_is_asked() -> None:
    with pytest.raises(PolicyError, match="there is no package q; the folder has p"):
        await EmbeddedPolicies(PolicyFolder({"p.rego": GOOD}), ["q"]).open()


async def test_a_policy_that_loops_is_stopped_and_harms_its_own_input_only() -> None:
    async with embedded(LOOPS, 1.0) as engine:
        (before,), (slow,), (after,) = await engine.evaluate(["p"], [b"{}", b'{"slow": true}', b"{}"])
        assert before.value["allow"] is True and after.value["allow"] is True
        assert slow.kind == "timeout" and slow.error == "no answer in 1 s (ORACULO_POLICIES_TIMEOUT_S)"
        assert engine.status().restarts == 1


async def test_the_event_loop_goes_on_while_a_policy_loops() -> None:
    async with embedded(LOOPS, 0.5) as engine:
        asked = asyncio.create_task(engine.evaluate(["p"], [b'{"slow": true}']))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 10
        assert asked.result()[0][0].kind == "timeout"


async def test_a_rule_with_two_values_is_an_error_and_not_a_yes() -> None:
    async with embedded(CONFLICT) as engine:
        (good,), (bad,) = await engine.evaluate(["p"], [b"{}", b'{"bad": true}'])
        assert good.value["allow"] is True
        assert bad.kind == "evaluation" and bad.value is None


async def test_a_process_that_died_is_begun_anew() -> None:
    async with embedded(GOOD) as engine:
        assert engine._process is not None
        engine._process.kill()
        await engine._process.wait()
        (first,), (second,) = await engine.evaluate(["p"], [b"{}", b"{}"])
        assert first.kind == "evaluation" and second.value == {"allow": True}


async def test_policies_see_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is refused; and if it were not, there would be nothing to see."""
    monkeypatch.setenv("ORACULO_API_KEY", "muito-secreto")
    async with embedded("package p\nimport rego.v1\nallow := true\nseen := opa.runtime()\n") as engine:
        ((found,),) = await engine.evaluate(["p"], [b"{}"])
        assert "muito-secreto" not in str(found.value)


# -- OPA -------------------------------------------------------------------------------------------------------------

QUICK = OpaOptions(timeout_s=PATIENCE_S, attempts=1, failures=0)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Server]:
    rules = tmp_path / "rules"
    rules.mkdir()
    folder(rules, p=CONFLICT, q=GOOD_Q)
    server = servers.own("opa", tmp_path)
    assert isinstance(server, Opa)
    server.policies = rules
    with server:
        yield server


@asynccontextmanager
async def asked(url: str, options: OpaOptions = QUICK) -> AsyncIterator[OpaPolicies]:
    engine = OpaPolicies(url, options)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


async def test_opa_answers_many_inputs_in_one_question_and_errors_stay_with_theirs(served: Server) -> None:
    async with asked(served.url) as engine:
        found = await engine.evaluate(["p", "q"], [b"{}", b'{"bad": true}', b'{"is_good": true}'])
        assert [one.error == "" for one, _ in found] == [True, False, True]
        assert found[1][0].kind == "evaluation"
        assert found[0][1].value == {} and found[2][1].value == {"allow": True}
        assert len(engine.version) == 16 and set(engine.sources.values()) == {CONFLICT, GOOD_Q}


async def test_a_package_that_opa_does_not_have_is_an_error(served: Server) -> None:
    async with asked(served.url) as engine:
        ((there, missing),) = await engine.evaluate(["p", "no.such.package"], [b"{}"])
        assert there.value == {"allow": True}
        assert missing.kind == "missing" and "has no package no.such.package" in missing.error


async def test_opa_that_is_killed_is_an_error_opens_the_circuit_and_is_found_again(served: Server) -> None:
    options = OpaOptions(timeout_s=PATIENCE_S, attempts=1, failures=2, reset_s=0.05)
    async with asked(served.url, options) as engine:
        served.kill()
        ((down,),) = await engine.evaluate(["p"], [b"{}"])
        assert down.kind == "unavailable" and "cannot be reached" in down.error
        await engine.evaluate(["p"], [b"{}"])
        assert engine.status().circuit in ("open", "half_open")
        served.start()
        await until(lambda: engine.status().circuit == "half_open")
        ((up,),) = await engine.evaluate(["p"], [b"{}"])
        assert up.value == {"allow": True} and engine.status().circuit == "closed"


async def answering(body: bytes, status: bytes = b"200 OK") -> tuple[asyncio.Server, str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (
            b"500 Internal Server Error",
            b'{"code":"internal_error","message":"broken"}',
            "unavailable",
            "answered 500: broken",
        ),
        (b"404 Not Found", b"not here", "unavailable", "answered 404"),
        (b"200 OK", b"[]", "unavailable", "no JSON object"),
        (b"200 OK", b"{}", "missing", "gave no result"),
        (b"200 OK", b'{"result":[{"x0":[]}]}', "missing", "has no package p"),
    ],
)
async def test_anything_else_that_opa_may_say_is_an_error(status: bytes, body: bytes, kind: str, said: str) -> None:
    server, url = await answering(body, status)
    async with server, asked(url) as engine:
        ((found,),) = await engine.evaluate(["p"], [b"{}"])
        assert (found.kind, found.value) == (kind, None) and said in found.error


async def test_opa_that_does_not_answer_in_time_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with asked(url, OpaOptions(timeout_s=0.2, attempts=1, failures=0)) as engine:
            ((found,),) = await engine.evaluate(["p"], [b"{}"])
            assert found.kind == "timeout" and "did not answer in 0.2 s" in found.error
