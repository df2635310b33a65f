"""The tools: what each is called, needs and does. They ask a server over its API, with the key that was given.

A tool is offered when the key may use it, and the server judges every call anyway. Nothing is remembered between calls:
the id of a run is all that is needed to ask for it, from another process, too.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oraculo.client.async_client import AsyncClient
from oraculo.client.calls import API, HttpCall
from oraculo.client.results import RunDetails, RunResult
from oraculo.client.why_results import OpenTicketDetails
from oraculo.core.access import Scope
from oraculo.errors import NotFoundError
from oraculo.mcp import corrections, type_tools

WAIT_MAX_S = 60.0  # clients give up on a call soon after
WAIT_DEFAULT_S = 20.0
RESULT_MAX_CHARS = 60_000
RUNS_MAX, LETTERS_MAX, DECISIONS_SHOWN = 100, 100, 200
STATUSES = ("pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada")
OPEN = ("pendente", "em_execucao")
LARGE_FIELDS = ("dados", "resultado", "resultados", "saida")

Arguments = Mapping[str, Any]
Answer = dict[str, Any]
Handler = Callable[[AsyncClient, Arguments], Awaitable[Answer]]

_RUN = {"type": "string", "minLength": 1, "maxLength": 200, "description": "id of the run"}
_WAIT = {
    "type": "number",
    "minimum": 0,
    "maximum": WAIT_MAX_S,
    "description": "seconds to wait for the end of the run before answering with how it stands",
}
_NEW_RUN = {
    **_RUN,
    "description": "id for the run, chosen by you: a call that is repeated with the same id and the same arguments "
    "starts nothing twice. Without it the server makes one",
}


@dataclass(frozen=True, slots=True)
class OraculoTool:
    """One tool. `scopes` are all needed; `writes` says that it changes something, `destroys` that nothing undoes it."""

    name: str
    description: str
    properties: Mapping[str, Any]
    handler: Handler
    scopes: tuple[Scope, ...]
    required: tuple[str, ...] = ()
    writes: bool = False
    destroys: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }


def type_tool(task_type: str, template: Mapping[str, Any]) -> OraculoTool:
    async def start(client: AsyncClient, given: Arguments) -> Answer:
        request = {"tipo": task_type, "parametros": dict(given.get("parametros") or {})}
        return await _submitted(client, request, given)

    properties = {"parametros": type_tools.parameters_schema(template), "run": _NEW_RUN, "wait_s": _WAIT}
    description = type_tools.described(task_type, template)
    return OraculoTool(
        type_tools.tool_name(task_type), description, properties, start, (Scope.RUN_SUBMIT, Scope.RUN_READ), writes=True
    )


async def submit_request(client: AsyncClient, given: Arguments) -> Answer:
    return await _submitted(client, dict(given["request"]), given)


async def _submitted(client: AsyncClient, request: dict[str, Any], given: Arguments) -> Answer:
    if given.get("run"):
        request["correlation_id"] = given["run"]
    accepted = await client.submit(request)
    return await _standing(client, accepted.correlation_id, float(given.get("wait_s", WAIT_DEFAULT_S)))


async def get_run(client: AsyncClient, given: Arguments) -> Answer:
    return await _standing(client, given["run"], float(given.get("wait_s", 0)))


async def _standing(client: AsyncClient, run: str, wait_s: float) -> Answer:
    result = await client.result(run, wait=wait_s)
    if result is not None:
        return {"run": run, "status": result["status"], "ended": True, **_fitted(result)}
    details = await client.get(run)
    tickets = details["tickets"]
    done = sum(one["status"] not in OPEN for one in tickets)
    return {
        "run": run,
        "status": details["status"],
        "ended": False,
        "waiting_for": details["espera"],
        "tickets": {"ended": done, "total": len(tickets)},
        "next": "get_run with this id gives the result when it has ended, in any session",
    }


def _fitted(result: RunResult) -> Answer:
    """The result, or, when it is too long for a conversation, without the data in it."""
    if len(json.dumps(result, ensure_ascii=False)) <= RESULT_MAX_CHARS:
        return {"result": result}
    return {
        "result": _without_data(result),
        "shortened": "the data are left out: they are too long; read them with `oraculo show` or the API",
    }


def _without_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_data(one) for key, one in value.items() if key not in LARGE_FIELDS}
    return [_without_data(one) for one in value] if isinstance(value, list) else value


async def list_runs(client: AsyncClient, given: Arguments) -> Answer:
    page = await client.list(
        status=given.get("status"), label=given.get("label"), since=given.get("since"), limit=given.get("limit", 20)
    )
    return {"runs": page.items, "more": page.cursor is not None}


async def why_waiting(client: AsyncClient, given: Arguments) -> Answer:
    found = await client.why(given["run"])
    answer: Answer = {
        "run": given["run"],
        "status": found["status"],
        "waiting_for": found["resumo"],
        "expected_end": found["previsao"],
        "open_tickets": [_open_ticket(one) for one in found["abertos"]],
        "open_tickets_total": found["abertos_total"],
    }
    queues = {one["destino"] for one in found["abertos"] if one["destino"]}
    if queues and Scope.SYSTEM_READ in (await client.whoami())["scopes"]:
        known = (await client.workers())["filas"]
        answer["queues"] = [
            {"queue": one["fila"], "waiting": one["aguardando"], "consumers": one["consumidores"]}
            for one in known
            if one["fila"] in queues
        ]
    return answer


def _open_ticket(ticket: OpenTicketDetails) -> Answer:
    return {
        "ticket_id": ticket["ticket_id"],
        "task": ticket["tarefa"],
        "queue": ticket["destino"],
        "status": ticket["status"],
        "attempt": ticket["tentativas"],
        "since": ticket["desde"],
        "deadline": ticket["prazo"],
        "why": " · ".join([ticket["frase"], *ticket["detalhes"]]),
    }


async def explain_run(client: AsyncClient, given: Arguments) -> Answer:
    found = await client.why(given["run"], given.get("ticket"))
    said = [{"at": one["em"], "decision": one["frase"], "details": one["detalhes"]} for one in found["decisoes"]]
    left = max(0, len(said) - DECISIONS_SHOWN)
    answer: Answer = {"run": given["run"], "status": found["status"], "stands": found["resumo"]}
    return {**answer, "decisions": said[left:], "earlier_decisions_left_out": left}


async def cancel_run(client: AsyncClient, given: Arguments) -> Answer:
    return {**await client.cancel(given["run"], given.get("reason", ""))}


async def list_dead_letters(client: AsyncClient, given: Arguments) -> Answer:
    page = await client.dead_letters(queue=given.get("queue"), reason=given.get("reason"), limit=given.get("limit", 20))
    return {"dead_letters": page.items, "groups": page.groups, "more": page.cursor is not None}


async def propose_correction(client: AsyncClient, given: Arguments) -> Answer:
    letter = await client.dead_letter(given["letter"])
    found, by_hand = corrections.proposals(letter, await _run_of(client, letter["correlation_id"]))
    answer: Answer = {
        "dead_letter": letter,
        "proposals": [{"why": one.why, "body": one.body} for one in found],
        "changed": "nothing: apply_correction hands in a body, when the user has asked for it",
    }
    return {**answer, "by_hand": by_hand} if by_hand else answer


async def _run_of(client: AsyncClient, run: str | None) -> RunDetails | None:
    if run is None:
        return None
    try:
        return await client.get(run)
    except NotFoundError:
        return None


async def apply_correction(client: AsyncClient, given: Arguments) -> Answer:
    body = {"corpo": given["body"]} if given.get("body") is not None else None
    asked = await client.call(HttpCall("POST", f"{API}/dead-letters/{int(given['letter'])}/requeue", body=body))
    return dict(asked.body)


_LIMIT = {"type": "integer", "minimum": 1}
FIXED: tuple[OraculoTool, ...] = (
    OraculoTool(
        "submit_request",
        "Start an orchestration from a whole request: coletas and execucoes, or a plan (tarefas). Gives the id of the "
        "run, and its result when it ends within wait_s.",
        {
            "request": {"type": "object", "description": "as for POST /api/v1/orchestrations"},
            "run": _NEW_RUN,
            "wait_s": _WAIT,
        },
        submit_request,
        (Scope.RUN_SUBMIT, Scope.RUN_READ),
        ("request",),
        writes=True,
    ),
    OraculoTool(
        "get_run",
        "How a run stands, and its result when it has ended. Works for every run, whichever session started it.",
        {"run": _RUN, "wait_s": _WAIT},
        get_run,
        (Scope.RUN_READ,),
        ("run",),
    ),
    OraculoTool(
        "list_runs",
        "Runs, newest first, with their status.",
        {
            "status": {"type": "array", "items": {"enum": list(STATUSES)}, "minItems": 1},
            "label": {"type": "string", "description": "label that they have"},
            "since": {"type": "string", "description": "instant in ISO 8601"},
            "limit": {**_LIMIT, "maximum": RUNS_MAX},
        },
        list_runs,
        (Scope.RUN_READ,),
    ),
    OraculoTool(
        "why_waiting",
        "Why a run has not ended: what it waits for, each open ticket and its reason, a pause, and whether anything "
        "consumes their queues.",
        {"run": _RUN},
        why_waiting,
        (Scope.RUN_READ,),
        ("run",),
    ),
    OraculoTool(
        "explain_run",
        "Every decision of a run, or of one ticket, as sentences: who got what and why not others, verdicts of "
        "policies, what was predicted and what came, retries, and why it ended so.",
        {"run": _RUN, "ticket": {"type": "string", "description": "only this one: its id, or the name of its task"}},
        explain_run,
        (Scope.RUN_READ,),
        ("run",),
    ),
    OraculoTool(
        "cancel_run",
        "Cancel a run and its open tickets. There is no way back.",
        {"run": _RUN, "reason": {"type": "string", "maxLength": 1000}},
        cancel_run,
        (Scope.RUN_CANCEL,),
        ("run",),
        writes=True,
        destroys=True,
    ),
    OraculoTool(
        "list_dead_letters",
        "Messages that could not be handled, newest first, and how many there are by queue and reason.",
        {"queue": {"type": "string"}, "reason": {"type": "string"}, "limit": {**_LIMIT, "maximum": LETTERS_MAX}},
        list_dead_letters,
        (Scope.DLQ_READ,),
    ),
    OraculoTool(
        "propose_correction",
        "What could be handed in instead of a dead letter, and why. Changes nothing.",
        {"letter": {**_LIMIT, "description": "number of the dead letter"}},
        propose_correction,
        (Scope.DLQ_READ, Scope.RUN_READ),
        ("letter",),
    ),
    OraculoTool(
        "apply_correction",
        "Hand a dead letter in again, with another body or as it is. Only when the user has seen what is handed in and "
        "asked for it: say so with asked_by_user.",
        {
            "letter": {**_LIMIT, "description": "number of the dead letter"},
            "body": {"type": "string", "description": "in the place of its bytes; without it they are as they came"},
            "asked_by_user": {"const": True},
        },
        apply_correction,
        (Scope.DLQ_REQUEUE,),
        ("letter", "asked_by_user"),
        writes=True,
        destroys=True,
    ),
)


async def offered(client: AsyncClient, *, read_only: bool) -> dict[str, OraculoTool]:
    """The tools that the key may use, by name; with `read_only` those that change nothing."""
    scopes = set((await client.whoami())["scopes"])
    types = await client.task_types() if Scope.RUN_READ in scopes else {}
    every = (*FIXED, *(type_tool(name, types[name]) for name in sorted(types)))
    return {one.name: one for one in every if set(one.scopes) <= scopes and not (read_only and one.writes)}
