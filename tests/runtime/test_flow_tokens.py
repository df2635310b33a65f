"""Tokens of tickets of Fluxo C: in Avro and in JSON, on their way out and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from core.given import T0
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.core.commands import RecordResult
from oraculo.ports.work import Work
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire.flow.codec import Codec
from oraculo.wire.orders import OrderWriter
from oraculo.wire.ticket_tokens import HEADER
from wire.flow.samples import RESULT
from wire.flow.test_tickets import story

TOPIC = "execution.results"


@pytest.mark.parametrize("place", ["metadata", "header", "field"])
async def test_a_result_counts_with_the_token_of_its_ticket(place: str, tmp_path: Path) -> None:
    chosen = {"ORACULO_STORE": f"sqlite:///{tmp_path}/o.db", "ORACULO_RESULT_TOKENS": "require", "ORACULO_FLOW_C": "on"}
    told, codec = story(), Codec(LocalRegistry())
    assert told.state is not None
    async with Oraculo(load(chosen, None)) as oraculo:
        tokens, plans = oraculo.kernel_ports.tokens, oraculo.plans
        assert tokens is not None and plans is not None
        queue = told.state.plan.tasks[0].queue
        (order,) = OrderWriter(codec.encode, (queue,), issue=tokens.issue_for).write(
            told.state, [(0, 1)], oraculo.now()
        )
        ticket = codec.decode("ExecutionTicket", order.body)
        token = ticket["metadata"]["token"]
        assert order.headers is not None and order.headers[HEADER] == token

        def judged(said: dict[str, Any], headers: dict[str, str]) -> Work:
            return plans.result_from_message(orjson.dumps(said), TOPIC, headers)

        said = {**RESULT, "ticket_id": ticket["ticket_id"]}
        for wrong in (None, token[:-3] + "AAA", "x"):
            dead = judged(*_with(said, wrong, place)).dead
            assert dead is not None and dead.reason == "unauthenticated"
        right = judged(*_with(said, token, place))
        assert right.dead is None and isinstance(right.command, RecordResult)
        assert (right.command.ticket, right.command.attempt) == (ticket["ticket_id"], 1)
        assert token.encode() not in right.command.dados
        assert judged({**said, "status": "RUNNING"}, {}).command is None  # it changes nothing


def _with(said: dict[str, Any], token: str | None, place: str) -> tuple[dict[str, Any], dict[str, str]]:
    if token is None:
        return said, {}
    if place == "header":
        return said, {HEADER: token}
    if place == "field":
        return {**said, "token": token}, {}
    return {**said, "result": {**said["result"], "metadata": {**said["result"]["metadata"], "token": token}}}, {}


def test_in_json_a_ticket_is_an_order_with_its_token() -> None:
    told = story()
    assert told.state is not None
    (order,) = OrderWriter(issue=lambda message_id, *_: f"token de {message_id}").write(told.state, [(0, 1)], T0)
    document = orjson.loads(order.body)
    assert document["token"] == f"token de {document['message_id']}" and "token" not in document["metadata"]
