"""On every broker: requests by message, poison, notices, dead letters, and what the system says of its broker."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import servers
from acceptance.fleet import NAMES, Fleet
from contracts.engine_cases import answer
from oraculo.adapters.brokers.connect import broker_of
from oraculo.adapters.signing.ed25519 import key_of, new_secret, private_key
from oraculo.ports.broker import Delivery, Outgoing, Settlement, publish_confirmed
from oraculo.wire.signatures import HEADER as SIGNATURE_HEADER
from oraculo.wire.signatures import encoded, signed_body, signed_header, signing_key_text
from oraculo.wire.ticket_tokens import HEADER as TOKEN_HEADER
from oraculo.wire.ticket_tokens import without_signatures

RESULTS, REQUESTS = "orquestrador_resultados", "orquestrador_requisicoes"
TIMESTAMP = "2025-10-14T12:00:00Z"


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(f"stories-{name}")) for name in NAMES]
)
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    service = servers.own(request.param, folder)
    with Fleet(folder, service.url, [service]) as fleet:
        yield fleet


def send(fleet: Fleet, queue: str, *bodies: bytes) -> None:
    """As somebody who has nothing but a broker."""

    async def publish() -> None:
        broker = broker_of(fleet.worker.broker)
        try:
            await publish_confirmed(broker, [Outgoing(queue, body, "") for body in bodies])
        finally:
            await broker.close()

    asyncio.run(publish())


def take(fleet: Fleet, queue: str, patience: float = 60) -> list[Delivery]:
    async def fetch() -> list[Delivery]:
        broker = broker_of(fleet.worker.broker)
        try:
            async with asyncio.timeout(patience):
                while not (found := await broker.fetch(queue, limit=10, wait=5)):
                    pass
            await broker.settle([Settlement(one) for one in found])
            return found
        finally:
            await broker.close()

    return asyncio.run(fetch())


def envelope(name: str, event: str, payload: Any, **more: Any) -> bytes:
    document = {"correlation_id": name, "tipo_evento": event, "payload": payload, "timestamp": TIMESTAMP, **more}
    return json.dumps(document).encode()


def letters(fleet: Fleet, **wanted: str) -> list[dict[str, Any]]:
    query = "&".join(f"{key}={value}" for key, value in wanted.items())
    found: list[dict[str, Any]] = fleet.json(f"/api/v1/dead-letters?limit=200&{query}")["dead_letters"]
    return found


def test_a_request_by_message(fleet: Fleet) -> None:
    body = {
        "coletas": [{"fonte": "bench_a", "parametros": {"n": 2}}, {"fonte": "bench_b", "parametros": {"n": 3}}],
        "execucoes": [{"executador": "bench_soma"}],
    }
    message = envelope("por-mensagem", "iniciar_coleta", body)
    send(fleet, REQUESTS, message, message)  # sent twice, it is one
    fleet.until(lambda: fleet.json("/api/v1/orchestrations/por-mensagem") is not None, "the request is taken")
    result = fleet.server.result("por-mensagem")
    assert result["status"] == "concluida" and result["execucoes"][0]["resultado"]["soma"] == 5
    other = envelope("por-mensagem", "iniciar_coleta", {"coletas": [{"fonte": "bench_a"}]})
    send(fleet, REQUESTS, other)
    fleet.until(lambda: bool(letters(fleet, motivo="conflict")), "another body with the same id is refused")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "not_json"),
        (envelope("errada", "iniciar_coleta", {}), "invalid_plan"),
        (envelope("errada", "resultado_coleta", {"coletas": []}), "unexpected_event"),
        (envelope("errada", "iniciar_coleta", {"coletas": [{"fonte": 7}]}), "invalid_request"),
        (envelope("errada", "iniciar_coleta", {"tipo": "nunca_visto"}), "invalid_plan"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_makes_no_sense_is_refused_with_a_reason(fleet: Fleet, body: bytes, reason: str) -> None:
    before = len(letters(fleet, fila=REQUESTS, motivo=reason))
    send(fleet, REQUESTS, body)
    fleet.until(lambda: len(letters(fleet, fila=REQUESTS, motivo=reason)) > before, f"a dead letter: {reason}")
    newest = fleet.json(f"/api/v1/dead-letters/{letters(fleet, fila=REQUESTS, motivo=reason)[0]['id']}")
    assert newest["corpo"].encode() == body and newest["detalhe"]


def test_poison_among_results_harms_no_neighbour(fleet: Fleet) -> None:
    asked = fleet.submit(1)
    ticket = fleet.json(f"/api/v1/orchestrations/{asked}")["tickets"][0]["ticket_id"]
    ok = {"fonte": "bench_a", "status": "ok", "dados": {}}
    poison = {
        "not_json": b"\xff\xfe not json",
        "not_an_object": b"[1, 2, 3]",
        "missing_field": b'{"correlation_id": "x"}',
        "unknown_event": envelope("x", "nunca_visto", {}),
        "invalid_field": envelope("x", "resultado_coleta", "not an object"),
        "unknown_correlation": envelope("ninguem", "resultado_coleta", ok),
        "unknown_ticket": envelope(asked, "resultado_coleta", ok, ticket_id="00000000-0000-8000-8000-000000000000"),
        "wrong_attempt": envelope(asked, "resultado_coleta", ok, ticket_id=ticket, tentativa=99),
    }
    before = {reason: len(letters(fleet, fila=RESULTS, motivo=reason)) for reason in poison}
    send(fleet, RESULTS, *poison.values())
    neighbours = [fleet.submit(number) for number in range(2, 7)]

    def quarantined() -> bool:
        return sum(len(letters(fleet, fila=RESULTS, motivo=r)) - n for r, n in before.items()) >= len(poison)

    try:
        fleet.until(quarantined, "all of it is quarantined")
    finally:
        print(fleet.json("/api/v1/dead-letters")["groups"])
    for name in (asked, *neighbours):
        assert fleet.server.result(name)["status"] == "concluida"


def test_two_mebibytes(fleet: Fleet) -> None:
    """Quarantined when the broker takes it, refused by the broker otherwise; neighbours live either way."""
    large = envelope("grande", "resultado_coleta", {"dados": "x" * 2 * 1024 * 1024})
    try:
        send(fleet, RESULTS, large)
    except Exception as error:
        assert "refused" in str(error) or getattr(error, "refused", None), error
    else:
        fleet.until(lambda: bool(letters(fleet, fila=RESULTS, motivo="too_large")), "it is quarantined")
    assert fleet.server.result(fleet.submit(8))["status"] == "concluida"


def test_an_order_that_no_worker_can_read_becomes_a_dead_letter_of_its_queue(fleet: Fleet) -> None:
    queue = "escavador_bench_a"
    assert fleet.server.result(fleet.submit(9))["status"] == "concluida"  # the queue exists and is known
    send(fleet, queue, b"not an order")
    fleet.until(lambda: bool(letters(fleet, fila=queue)), "it comes to the table by way of the dead-letter queue")
    (letter,) = letters(fleet, fila=queue)
    assert letter["motivo"] == "unreadable_order"
    told = fleet.server.call("POST", f"/api/v1/dead-letters/{letter['id']}/requeue")
    assert told is not None and told.json()["situacao"] == "published"
    fleet.until(lambda: [one["id"] for one in letters(fleet, fila=queue)] != [letter["id"]], "it comes again")
    fleet.until(lambda: len(letters(fleet, fila=queue)) == 1, "as a new letter")
    gone = fleet.server.call("DELETE", f"/api/v1/dead-letters?fila={queue}&razao=teste")
    assert gone is not None and gone.json() == {"descartadas": 1}


def test_a_notice_to_a_queue_that_nobody_has_made(fleet: Fleet) -> None:
    body = {
        "correlation_id": "avisado",
        "coletas": [{"fonte": "bench_a", "parametros": {"n": 1}}],
        "notificar": {"fila": "avisos_de_teste"},
    }
    answer = fleet.server.call("POST", "/api/v1/orchestrations", json=body)
    assert answer is not None and answer.status_code == 202
    (notice,) = take(fleet, "avisos_de_teste")
    assert json.loads(notice.body)["correlation_id"] == "avisado"


def test_what_it_says_of_its_broker(fleet: Fleet) -> None:
    fleet.until(lambda: all(one["durabilidade"] for one in fleet.brokers()["brokers"]), "probed and measured")
    (one,) = fleet.brokers()["brokers"]
    assert one["ok"] and one["publica"] and one["conectado"] and not one["aberto"] and one["sonda_ms"] > 0
    ready = fleet.json("/ready")
    assert ready["status"] == "ok"
    assert ready["checks"]["broker"]["durability"] == one["durabilidade"] in ("power-safe", "crash-safe", "best-effort")
    up = fleet.metric("orchestration_broker_up")
    assert list(up.values()) == [1.0]
    assert any(one["durabilidade"] in labels for labels in fleet.metric("orchestration_broker_durability"))
    queues = {one["fila"]: one for one in fleet.json("/api/v1/workers")["filas"]}
    assert RESULTS in queues


def test_the_doctor_looks_at_the_broker(fleet: Fleet) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oraculo", "doctor", "--json"],
        env={**os.environ, "ORACULO_BROKER": fleet.worker.broker, "ORACULO_URL": fleet.server.url},
        cwd=fleet.folder / "worker",
        capture_output=True,
        text=True,
    )
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert checks["broker"]["level"] in ("ok", "warning"), checks["broker"]
    assert "-safe" in checks["broker"]["detail"] or "best-effort" in checks["broker"]["detail"]


def test_a_plain_worker_that_echoes_nothing_is_served(fleet: Fleet) -> None:
    (service,) = fleet.services
    env = {
        "AMQP_URL": service.url,
        "REDIS_URL": service.url,
        "NATS_URL": service.url,
        "KAFKA_SERVERS": f"127.0.0.1:{service.port}",
        "FONTE": "youtube",
    }
    script = Path(__file__).parents[2] / "examples" / "workers" / service.name / "worker.py"
    worker = subprocess.Popen([sys.executable, str(script)], env={**os.environ, **env}, stdout=subprocess.DEVNULL)
    try:
        body = {
            "correlation_id": "simples",
            "coletas": [
                {"fonte": "youtube", "parametros": {"canal": "x"}},
                {"fonte": "bench_a", "parametros": {"n": 1}},
            ],
        }
        answer = fleet.server.call("POST", "/api/v1/orchestrations", json=body)
        assert answer is not None and answer.status_code == 202
        result = fleet.server.result("simples")
        assert result["status"] == "concluida"
        assert [one["tentativas"] for one in result["coletas"]] == [1, 1] and result["coletas"][0]["dados"]
    finally:
        worker.kill()
        worker.wait()


def test_the_worker_killed_in_the_middle_of_its_work_is_replaced(fleet: Fleet) -> None:
    fleet.worker.kill()
    name = fleet.submit(10)
    fleet.worker.start()
    assert fleet.server.result(name)["status"] == "concluida"


def forgeries(mine: dict[str, Any], other: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """(message, headers) of answers by one who knows everything of an order but its token."""
    said = answer(mine, "forjada")
    bare = {key: value for key, value in said.items() if key != "token"}
    unnamed = {key: value for key, value in bare.items() if key not in ("ticket_id", "tentativa")}
    header, body, signature = mine["token"].split(".")
    none = "eyJhbGciOiJub25lIiwidHlwIjoidGlja2V0K2p3dCJ9"
    return [
        (bare, {}),
        (unnamed, {}),
        ({**bare, "token": other["token"]}, {}),
        ({**bare, "token": f"{none}.{body}."}, {}),
        ({**bare, "token": f"{header}.{body}.{signature[::-1]}"}, {}),
        ({**bare, "token": ""}, {}),
        ({**said, "tentativa": 2}, {}),
        ({**said, "correlation_id": other["correlation_id"]}, {}),
        ({**bare, "payload": {**bare["payload"], "token": other["token"]}}, {}),
        (bare, {TOKEN_HEADER: other["token"]}),
    ]


def test_where_tokens_are_required_a_forged_answer_has_no_effect(fleet: Fleet) -> None:
    """The orchestrator is started anew for it and for the next. Our own worker hands tokens back."""
    fleet.server.kill()
    fleet.server.up(ORACULO_RESULT_TOKENS="require")
    asked = []
    for number in range(2):
        body = {"coletas": [{"fonte": f"forja_{number}", "timeout_s": 600}], "timeout_s": 600}
        accepted = fleet.server.call("POST", "/api/v1/orchestrations", json=body)
        assert accepted is not None and accepted.status_code == 202
        asked.append(accepted.json()["correlation_id"])
    mine, other = (json.loads(take(fleet, f"escavador_forja_{number}")[0].body) for number in range(2))
    forged = forgeries(mine, other)

    async def publish() -> None:
        broker = broker_of(fleet.worker.broker)
        try:
            messages = [Outgoing(RESULTS, json.dumps(one).encode(), "", dict(headers)) for one, headers in forged]
            await publish_confirmed(broker, messages)
        finally:
            await broker.close()

    asyncio.run(publish())

    def quarantined() -> int:
        """Bodies, since a broker may bring one twice; answers from before, which had no token, are not counted."""
        found = [one for one in letters(fleet, motivo="unauthenticated") if one["correlation_id"] in asked]
        return len({fleet.json(f"/api/v1/dead-letters/{one['id']}")["corpo"] for one in found})

    different = len({json.dumps(one) for one, _ in forged})
    fleet.until(lambda: quarantined() == different, "all are quarantined")

    def statuses(name: str) -> list[str]:
        return [ticket["status"] for ticket in fleet.json(f"/api/v1/orchestrations/{name}")["tickets"]]

    running = ["em_execucao"]
    fleet.until(lambda: all(statuses(name) == running for name in asked), "both orders are out and not answered")
    send(fleet, RESULTS, *(json.dumps(answer(order, "honesta")).encode() for order in (mine, other)))
    for name in asked:
        assert fleet.server.result(name)["coletas"][0]["dados"] == "honesta"
    assert fleet.server.result(fleet.submit(7))["execucoes"][0]["resultado"]["soma"] == 21
    assert quarantined() == different


def _put(fleet: Fleet, queue: str, *messages: tuple[bytes, dict[str, str]]) -> None:
    """Write messages with headers, as an administrator of the broker may."""

    async def publish() -> None:
        broker = broker_of(fleet.worker.broker)
        try:
            await publish_confirmed(broker, [Outgoing(queue, body, "", dict(headers)) for body, headers in messages])
        finally:
            await broker.close()

    asyncio.run(publish())


def test_with_signatures_an_administrator_of_the_broker_has_no_effect(fleet: Fleet) -> None:
    """Who reads and writes every queue forges, replays, changes and injects: answers, requests and orders."""
    secret = new_secret()
    made = fleet.server.call(
        "POST",
        "/api/v1/keys",
        json={
            "role": "trabalhador",
            "queues": [*(f"escavador_bench_{one}" for one in "abc"), "executador_bench_soma", "escavador_alvo"],
            "public_key": encoded(key_of(secret).public),
        },
    )
    assert made is not None and made.status_code == 201, made
    key_id = made.json()["id"]
    fleet.worker.terminate()  # asked to leave, they are not waited for by those who consume with them
    assert fleet.server.terminate() == 0
    fleet.server.up(
        ORACULO_RESULT_TOKENS="require",
        ORACULO_RESULT_SIGNATURES="require",
        ORACULO_REQUEST_SIGNATURES="require",
        ORACULO_ORDER_SIGNATURES="require",
    )
    fleet.worker.env = {
        "ORACULO_SIGNING_KEY": signing_key_text(key_id, secret),
        "ORACULO_ORDER_SIGNATURES": "require",
        "ORACULO_URL": fleet.server.url,
    }
    fleet.worker.start()
    assert fleet.server.result(fleet.submit(70))["execucoes"][0]["resultado"]["soma"] == 210

    body = {"coletas": [{"fonte": "alvo", "timeout_s": 600, "max_tentativas": 1}], "timeout_s": 600}
    asked = fleet.server.call("POST", "/api/v1/orchestrations", json=body)
    assert asked is not None and asked.status_code == 202
    name = asked.json()["correlation_id"]
    (stolen,) = take(fleet, "escavador_alvo")
    order = json.loads(stolen.body)
    said = json.dumps(answer(order, "forjada"), separators=(",", ":")).encode()
    mine = new_secret()
    elsewhere = signed_header(said.replace(b"forjada", b"outra"), key_id, private_key(secret).sign)
    forged = [
        (said, {}),  # with the token of the order, which it has read
        (signed_body(said, key_id, private_key(mine).sign), {}),
        (signed_body(said, "kzzzzzzzzzzz", private_key(mine).sign), {}),
        (said, {SIGNATURE_HEADER: elsewhere}),
        (said, dict(stolen.headers)),  # with the signature of the order
    ]
    _put(fleet, RESULTS, *forged)
    request = envelope("injetada", "iniciar_coleta", {"coletas": [{"fonte": "alvo"}]})
    injected = [(request, {}), (request, dict(stolen.headers))]
    _put(fleet, REQUESTS, *injected)
    theirs = json.dumps({**order, "payload": {"fonte": "bench_a", "parametros": {"n": 666}}}).encode()
    _put(fleet, "escavador_bench_a", (theirs, dict(stolen.headers)))

    def refused(queue: str, *sent: bytes) -> int:
        """Of what is sent here, since earlier stories forge too; once by reason, since a broker may bring one twice."""
        found = letters(fleet, fila=queue, motivo="unauthenticated")
        shown = [fleet.json(f"/api/v1/dead-letters/{one['id']}") for one in found]
        ours = {without_signatures(one) for one in sent}
        return len({(one["corpo"], one["detalhe"]) for one in shown if one["corpo"].encode() in ours})

    bodies = [one for one, _ in forged]
    fleet.until(lambda: refused(RESULTS, *bodies) == len(forged), "forged answers are quarantined")
    fleet.until(lambda: refused(REQUESTS, request) == len(injected), "the requests are quarantined")
    fleet.until(lambda: refused("escavador_bench_a", theirs) == 1, "the worker refuses the order")
    assert fleet.json("/api/v1/orchestrations/injetada") is None
    assert [one["status"] for one in fleet.json(f"/api/v1/orchestrations/{name}")["tickets"]] == ["em_execucao"]

    honest = signed_body(json.dumps(answer(order, "honesta")).encode(), key_id, private_key(secret).sign)
    _put(fleet, RESULTS, (honest, {}), (honest, {}))
    result = fleet.server.result(name)
    assert result["coletas"][0]["dados"] == "honesta" and result["coletas"][0]["tentativas"] == 1
    _put(fleet, RESULTS, (honest.replace(b"honesta", b"forjada"), {}))
    assert fleet.server.result(fleet.submit(71))["execucoes"][0]["resultado"]["soma"] == 213
    assert fleet.server.result(name) == result
