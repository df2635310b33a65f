"""The client for asyncio. Made from client.py by tools/client/generate.py: change it there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, TypeVar

import httpx2

from oraculo.client import (
    batch_calls,
    bulk_calls,
    calls,
    pause_calls,
    policy_calls,
    retry_calls,
    ticket_calls,
    why_calls,
    worker_calls,
)
from oraculo.client import pause_results as p
from oraculo.client import results as r
from oraculo.client.calls import CallPlan, HttpAnswer, HttpCall, Pause
from oraculo.client.config import EVENT_MAX_BYTES, HTTP_FAILURES, TIMEOUT_S, ClientConfig, renamed
from oraculo.client.policy_results import PoliciesStatus
from oraculo.client.stream import ResumableStream
from oraculo.client.ticket_results import CompensationAnswer, ExecutionTickets, TicketTokenAnswer
from oraculo.client.tls import TlsFiles
from oraculo.client.why_results import Explanation
from oraculo.errors import OraculoError

T = TypeVar("T")
RunEvents = list[r.RunEvent]
Submissions = list[r.Submitted]
Pauses = list[p.DestinationPauseDetails]
OpenBreakers = list[p.BreakerDetails]
Keys = list[r.KeyDetails]


class AsyncClient:
    """The client for asyncio. `url` defaults to ORACULO_URL, `api_key` to ORACULO_API_KEY; `timeout` is in seconds.
    Sentences in answers are in `language`, `pt` (the server's default) or `en`; the keys and statuses of answers are in
    `words`, by default those of the language. The types of answers know the Portuguese keys. `tls` are the files for a
    server over TLS (`oraculo.client.tls.TlsFiles`), by default those of ORACULO_URL_CA, ORACULO_URL_CERT and
    ORACULO_URL_KEY.

    One client may be used by several tasks. Close it, or use it as a context manager."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_S,
        *,
        language: str | None = None,
        words: str | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self._config = ClientConfig(url, api_key, timeout, language, tls, words)
        self._http = httpx2.AsyncClient(**self._config.options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._config.url

    # -- orchestrations ----------------------------------------------------------------------------------------------

    async def submit(
        self,
        request: Mapping[str, Any],
        idempotency_key: str | None = None,
        *,
        input: Mapping[str, Any] | None = None,
    ) -> r.Submitted:
        """Hand in a request, or a plan of Fluxo C; it is durable when this returns. With a key (or a `correlation_id`)
        a request may be repeated safely; a plan of Fluxo C always may. `input` is laid over the input of a plan of
        named tasks, or over the parameters of a task type."""
        return await self._run(calls.submit(request, idempotency_key, input))

    async def submit_many(
        self, requests: Iterable[Mapping[str, Any]], idempotency_key: str | None = None
    ) -> Submissions:
        """Hand in many requests at once, each accepted or refused on its own. BatchRefusedError when some were refused:
        its `items` say in order what became of each. With a key (or `correlation_id`s) the call may be repeated."""
        return await self._run(batch_calls.submit_many(requests, idempotency_key))

    async def result(self, correlation_id: str, wait: float = 30.0) -> r.RunResult | None:
        """Return the aggregate when the orchestration has ended, None when it still runs after `wait` seconds. A server
        that was there and goes away meanwhile is waited for as long as `wait` lasts."""
        return await self._run(calls.result(correlation_id, wait))

    async def get(self, correlation_id: str) -> r.RunDetails:
        """Return the orchestration as it stands: status, tickets, the aggregate so far."""
        return await self._run(calls.get(correlation_id))

    @renamed(fonte="source")
    async def list(
        self,
        *,
        status: str | Iterable[str] | None = None,
        source: str | None = None,
        label: str | None = None,
        since: datetime | str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> r.Page[r.RunSummary]:
        """List orchestrations, newest first, by page."""
        plan = calls.listing(status=status, source=source, label=label, since=since, limit=limit, cursor=cursor)
        return await self._run(plan)

    @renamed(motivo="reason")
    async def cancel(self, correlation_id: str, reason: str = "", *, undo: bool = False) -> r.CancelAnswer:
        """Cancel an orchestration and its open tickets, and `undo` what it did as far as its plan says how. One that
        has ended, or is being undone, is not changed."""
        return await self._run(calls.cancel(correlation_id, reason, undo))

    @renamed(motivo="reason")
    async def pause(self, correlation_id: str, reason: str = "") -> p.PauseAnswer:
        """Pause an orchestration: no new order goes out, and its deadlines stand still. ConflictError: it has ended."""
        return await self._run(pause_calls.pause(correlation_id, reason))

    @renamed(motivo="reason")
    async def resume(self, correlation_id: str, reason: str = "") -> p.PauseAnswer:
        """Let a paused orchestration go on. ConflictError: it has ended."""
        return await self._run(pause_calls.resume(correlation_id, reason))

    async def prioritise(self, correlation_id: str, priority: int, reason: str = "") -> p.PriorityAnswer:
        """Let all tickets of one orchestration count as this urgent from now on: from 1, the least, to 9."""
        return await self._run(pause_calls.prioritise(correlation_id, priority, reason))

    @renamed(fila="queue", motivo="reason")
    async def pause_queue(self, queue: str | None, reason: str = "") -> p.DestinationPauseAnswer:
        """Let no order go to a destination; None: to any."""
        return await self._run(pause_calls.pause_queue(queue, reason))

    @renamed(fila="queue", motivo="reason")
    async def resume_queue(self, queue: str | None, reason: str = "") -> p.DestinationPauseAnswer:
        """Let orders go to a destination again; None: end the pause of all. What is paused by itself stays so."""
        return await self._run(pause_calls.resume_queue(queue, reason))

    async def pauses(self) -> Pauses:
        """Return the destinations that are paused."""
        return await self._run(pause_calls.pauses())

    async def breakers(self) -> OpenBreakers:
        """Return the destinations whose breakers are open."""
        return await self._run(pause_calls.breakers())

    @renamed(fila="queue")
    async def probe_queue(self, queue: str) -> p.ProbeAnswer:
        """Let the next probe of a destination whose breaker is open go now."""
        return await self._run(pause_calls.probe_queue(queue))

    @renamed(de="start", tarefa="task")
    async def retry(
        self,
        correlation_id: str,
        *,
        start: str | None = None,
        task: str | None = None,
        idempotency_key: str | None = None,
    ) -> r.Submitted:
        """Try a run that has ended again, as a new run that takes over what had concluded. `start` is `failures` (what
        did not conclude; the default) or `start` (everything); `task` does that task and all behind it again."""
        return await self._run(retry_calls.retry(correlation_id, start, task, idempotency_key))

    @renamed(filtro="chosen", motivo="reason", de="start", simular="dry_run")
    async def bulk(
        self,
        action: str,
        chosen: Mapping[str, Any],
        *,
        reason: str = "",
        undo: bool = False,
        start: str | None = None,
        dry_run: bool = False,
    ) -> bulk_calls.BulkAnswer:
        """Do the same (`cancel`, `retry`, `pause` or `resume`) to every orchestration that `chosen` names, by the
        fields of the list: `status`, `source`, `executor`, `rotulo`, `pausada`, `since`, `until`, `texto`. `dry_run`
        only counts. Repeating it is safe: what was tried again before is left alone."""
        plan = bulk_calls.bulk(action, chosen, reason=reason, undo=undo, start=start, dry_run=dry_run)
        return await self._run(plan)

    @renamed(por="by", motivo="reason")
    async def decide(
        self, correlation_id: str, approved: bool, by: str = "", reason: str = "", *, task: str | None = None
    ) -> r.DecisionAnswer:
        """Approve or reject what waits for a human: a plan of Fluxo C, or a task, which has to be named where several
        wait. A plan that does not wait is not changed."""
        return await self._run(calls.decide(correlation_id, approved, by, reason, task))

    async def signal(
        self, correlation_id: str, name: str, data: Any = None, *, idempotency_key: str | None = None
    ) -> r.SignalAnswer:
        """Send a signal with any JSON as its data. It is kept when no task waits for it yet; the same key again is the
        same signal."""
        return await self._run(calls.signal(correlation_id, name, data, idempotency_key))

    async def events(self, correlation_id: str, after: int = 0) -> RunEvents:
        """Return the whole journal from event number `after` on."""
        return await self._run(calls.events(correlation_id, after))

    async def stream(self, correlation_id: str, after: int = 0) -> AsyncIterator[r.RunEvent]:
        """Yield every event from number `after` on, as it happens, until the orchestration has ended. Reconnects by
        itself; skips nothing and repeats nothing."""
        stream = ResumableStream(correlation_id, after)
        while not stream.over:
            try:
                async with self._http.stream(**self._config.request(stream.call(), stream=True)) as response:
                    if response.status_code != 200:
                        calls.read_answer(response.status_code, response.headers, await response.aread())
                    async for one in httpx2.EventSource(response, EVENT_MAX_BYTES):
                        event = stream.take(one.event, one.data)
                        if event is not None:
                            yield event
            except HTTP_FAILURES as error:
                await self._run(stream.broken(self._config.unreachable(error)))
            except OraculoError as error:
                await self._run(stream.broken(error))
            else:
                await self._run(stream.broken(self._config.unreachable(ConnectionError("the stream was cut"))))

    async def ticket(self, ticket_id: str) -> r.TicketDetails:
        """Return one ticket as it stands."""
        return await self._run(calls.ticket(ticket_id))

    async def why(self, correlation_id: str, ticket: str | None = None) -> Explanation:
        """Return what an orchestration waits for or how it ended, with every decision that made it so; of one `ticket`,
        by its id or the name of its task, only what is about it."""
        return await self._run(why_calls.why(correlation_id, ticket))

    # -- tickets of Fluxo C ------------------------------------------------------------------------------------------

    async def tickets(
        self,
        *,
        plan_id: str | None = None,
        intent_id: str | None = None,
        status: str | None = None,
        limit: int = 100,
        offset: int = 0,
        cursor: str | None = None,
    ) -> ExecutionTickets:
        """List tickets as ExecutionTicket, those of the newest plan first."""
        query = {"plan_id": plan_id, "intent_id": intent_id, "status": status, "limit": limit, "offset": offset}
        return await self._run(ticket_calls.tickets({**query, "cursor": cursor}))

    async def submit_ticket(self, ticket: Mapping[str, Any]) -> dict[str, Any]:
        """Start a ticket that comes alone; return its record. The same `idempotency_key` of its metadata, or the same
        `ticket_id`, is the same ticket."""
        return await self._run(ticket_calls.submit_ticket(ticket))

    async def tell_ticket(
        self,
        ticket_id: str,
        status: str,
        *,
        error: str | None = None,
        duration_ms: int | None = None,
        result: Mapping[str, Any] | None = None,
        token: str | None = None,
    ) -> dict[str, Any]:
        """Say that a ticket is RUNNING, COMPLETED or FAILED; return its record. ConflictError: no attempt is open."""
        return await self._run(ticket_calls.tell_ticket(ticket_id, status, error, duration_ms, result, token))

    async def compensate_ticket(
        self, ticket_id: str, reason: str, *, action: str = "rollback", parameters: Mapping[str, Any] | None = None
    ) -> CompensationAnswer:
        """Start what compensates a ticket, once, however often it is asked for."""
        return await self._run(ticket_calls.compensate_ticket(ticket_id, reason, action, parameters))

    async def ticket_token(self, ticket_id: str) -> TicketTokenAnswer:
        """Return what an answer to the present attempt of a ticket has to carry."""
        return await self._run(ticket_calls.ticket_token(ticket_id))

    # -- dead letters ------------------------------------------------------------------------------------------------

    @renamed(fila="queue", motivo="reason")
    async def dead_letters(
        self, *, queue: str | None = None, reason: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> r.Page[r.DeadLetterDetails]:
        """List messages that could not be handled, newest first, by page."""
        return await self._run(calls.dead_letters(queue=queue, reason=reason, limit=limit, cursor=cursor))

    @renamed(id="letter_id")
    async def dead_letter(self, letter_id: int) -> r.DeadLetterDetails:
        """Return one dead letter with its bytes."""
        return await self._run(calls.dead_letter(letter_id))

    @renamed(id="letter_id")
    async def requeue_dead_letter(self, letter_id: int) -> r.RequeueAnswer:
        """Hand the message in again, as it came. It stays a dead letter when it is refused again."""
        return await self._run(calls.requeue_dead_letter(letter_id))

    @renamed(fila="queue", motivo="reason")
    async def requeue_dead_letters(self, *, queue: str | None = None, reason: str | None = None) -> r.BulkRequeueAnswer:
        """Hand in again all that the filter names; one of the two is needed."""
        return await self._run(calls.requeue_dead_letters(queue=queue, reason=reason))

    @renamed(id="letter_id", razao="note")
    async def discard_dead_letter(self, letter_id: int, note: str = "") -> None:
        """Discard one dead letter; `note` is kept with the record of it."""
        return await self._run(calls.discard_dead_letter(letter_id, note))

    @renamed(fila="queue", motivo="reason", razao="note")
    async def discard_dead_letters(
        self, *, queue: str | None = None, reason: str | None = None, note: str = ""
    ) -> r.DiscardAnswer:
        """Discard all that the filter names; one of `queue` and `reason` is needed. `note` is kept with the record."""
        return await self._run(calls.discard_dead_letters(queue=queue, reason=reason, note=note))

    # -- task types --------------------------------------------------------------------------------------------------

    async def task_types(self) -> dict[str, Any]:
        """Return every task type and the request that it stands for."""
        return await self._run(calls.task_types())

    @renamed(tipo="name")
    async def task_type(self, name: str) -> dict[str, Any]:
        """Return the request that one task type stands for."""
        return await self._run(calls.task_type(name))

    @renamed(tipo="name")
    async def put_task_type(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a request under a name; return it as it was kept."""
        return await self._run(calls.put_task_type(name, request))

    @renamed(tipo="name")
    async def remove_task_type(self, name: str) -> None:
        """Forget a task type."""
        return await self._run(calls.remove_task_type(name))

    # -- keys --------------------------------------------------------------------------------------------------------

    async def keys(self) -> Keys:
        """List the keys of the API, newest first, without their secrets."""
        return await self._run(calls.keys())

    async def create_key(
        self,
        role: str,
        *,
        tenant: str | None = None,
        queues: Iterable[str] = (),
        expires_s: float | None = None,
        note: str = "",
        max_open: int | None = None,
        per_second: float | None = None,
        public_key: str | None = None,
    ) -> r.MadeKeyDetails:
        """Make a key. Its text is in `key`, this once. `queues` are those of the role `trabalhador`; `max_open` and
        `per_second` limit what may be submitted with it; `public_key` (Ed25519, base64url) is that of the pair that its
        owner signs messages with."""
        plan = calls.create_key(
            role,
            tenant=tenant,
            queues=queues,
            expires_s=expires_s,
            note=note,
            max_open=max_open,
            per_second=per_second,
            public_key=public_key,
        )
        return await self._run(plan)

    async def rotate_key(
        self, key_id: str, *, overlap_s: float | None = None, expires_s: float | None = None
    ) -> r.MadeKeyDetails:
        """Give a key a new secret; the one before stays good for `overlap_s` (a day when it is not given)."""
        return await self._run(calls.rotate_key(key_id, overlap_s=overlap_s, expires_s=expires_s))

    async def revoke_key(self, key_id: str) -> r.KeyDetails:
        """Make a key useless, and end its sessions."""
        return await self._run(calls.revoke_key(key_id))

    async def whoami(self) -> r.CallerDetails:
        """Return who the server takes this client for, and what it may do."""
        return await self._run(calls.whoami())

    # -- the server --------------------------------------------------------------------------------------------------

    async def workers(
        self,
        capabilities: Sequence[str] = (),
        *,
        queue: str | None = None,
        situation: str | None = None,
        limit: int | None = None,
    ) -> r.WorkersStatus:
        """Return who works on what, since when, how much each holds, and how full the queues are; with `limit` the best
        so many of those that registered."""
        return await self._run(worker_calls.workers(capabilities, queue, situation, limit))

    async def worker(self, name: str) -> r.WorkerStatus:
        """Return one worker that registered."""
        return await self._run(worker_calls.worker(name))

    async def drain_worker(self, name: str, reason: str = "") -> r.WorkerStatus:
        """Give a worker nothing more; it finishes what it has."""
        return await self._run(worker_calls.drain_worker(name, reason))

    async def resume_worker(self, name: str, reason: str = "") -> r.WorkerStatus:
        """Let a drained worker work again."""
        return await self._run(worker_calls.resume_worker(name, reason))

    async def brokers(self) -> r.BrokersStatus:
        """Return the brokers as the server sees them, and when publishing switched."""
        return await self._run(calls.brokers())

    async def policies(self) -> PoliciesStatus:
        """Return who evaluates policies, which they are, and what they refused lately."""
        return await self._run(policy_calls.policies())

    async def replicas(self) -> r.ReplicasStatus:
        """Return the processes that share the server's database."""
        return await self._run(calls.replicas())

    async def metrics(self) -> str:
        """Return the metrics of the server, in the text format of Prometheus."""
        return await self._run(calls.metrics())

    async def health(self) -> r.ServerHealth:
        """Return the version of the server; raises when it does not answer."""
        return await self._run(calls.health())

    async def ready(self) -> r.ServerReadiness:
        """Return what each check of the server found, also when it is not ready."""
        return await self._run(calls.ready())

    async def call(self, call: HttpCall) -> HttpAnswer:
        """Make one call as it is; for what has no method of its own."""
        try:
            response = await self._http.request(**self._config.request(call))
        except HTTP_FAILURES as error:
            raise self._config.unreachable(error) from error
        return calls.read_answer(response.status_code, response.headers, response.content)

    async def _run(self, plan: CallPlan[T]) -> T:
        """Do what the plan says, and return what it returns."""
        try:
            step = next(plan)
            while True:
                try:
                    got = await self._do(step)
                except OraculoError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(got)
        except StopIteration as stop:
            value: T = stop.value
            return value

    async def _do(self, step: HttpCall | Pause) -> HttpAnswer | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        return await self.call(step)
