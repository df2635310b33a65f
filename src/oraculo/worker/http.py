"""Workers over plain HTTP: orders are leased from the orchestrator, kept alive, answered and given back.

A server that is away is waited for: the worker goes on with what it has and sends its answers when the server is back.
A lease that is gone does no harm, since an answer counts for its ticket and not for its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import orjson
import structlog

from oraculo.chunks import chunks_by_count, chunks_by_size
from oraculo.client.async_client import AsyncClient
from oraculo.client.calls import API, HttpCall, path_segment
from oraculo.client.tls import TlsFiles
from oraculo.errors import ApiError, NotFoundError
from oraculo.wire.signatures import MEMBER
from oraculo.worker import references
from oraculo.worker.host_beats import HostBeats
from oraculo.worker.transport import Job, WorkerNews

log = structlog.get_logger("oraculo.worker")

LEASE_WAIT_S = 20.0
ANSWERS_MAX_COUNT, ANSWERS_MAX_BYTES = 1000, 8 * 1024 * 1024  # in one call
EARLY_ANSWER_PAUSE_S = 0.25  # before asking again a server that did not wait, because it is stopping
UNREADABLE_DELAY_S = 60.0  # until an order that could not be read is offered again
TEMPORARY_STATUSES = (401, 403, 408, 429)  # other 4xx say that the answer itself is at fault
REFUSAL_TEXT_MAX_LENGTH = 1000


class HttpTransport:
    """Orders and answers over HTTP. `lease_s` is how long the orchestrator waits for a sign of life before it gives an
    order to another worker; `sign` signs answers; with `together` the workers of this host beat in one request."""

    take_grace = 0.5

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        worker_name: str,
        lease_s: float = 30.0,
        tls: TlsFiles | None = None,
        sign: Callable[[bytes], bytes] | None = None,
        *,
        together: bool = False,
    ) -> None:
        self.sign = sign
        self._client = AsyncClient(url, api_key, tls=tls)
        self._host = HostBeats(self._client.url, api_key, self._beat_for_all) if together else None
        self._worker = worker_name
        self._lease_s = lease_s
        self.keep_every: float | None = lease_s / 3

    @property
    def url(self) -> str:
        return self._client.url

    async def check(self) -> None:
        """Raise ApiError or ServerUnreachableError when no work can be had from there now."""
        try:
            await self._client.whoami()
        except NotFoundError:  # a server of before there were keys with roles
            await self._client.workers()

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]:
        wait = min(wait, LEASE_WAIT_S)
        body = {"max": limit, "wait": wait, "worker": self._worker, "lease_s": self._lease_s}
        began = monotonic()
        got = await self._client.call(
            HttpCall("POST", f"{API}/queues/{path_segment(queue)}/lease", body=body, server_wait_s=wait)
        )
        if not got.body["mensagens"] and monotonic() - began < wait / 2:
            await asyncio.sleep(EARLY_ANSWER_PAUSE_S)
        return [Job(queue, orjson.dumps(one["mensagem"]), one["lease_id"]) for one in got.body["mensagens"]]

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        """Send answers. Raises when some may not have arrived; sending all of them again is safe."""
        for job, body in answers:
            if not body:
                await self._release(job, UNREADABLE_DELAY_S)
        sized = chunks_by_size((body for _, body in answers if body), ANSWERS_MAX_BYTES, _size_in_list)
        for bodies in (part for chunk in sized for part in chunks_by_count(chunk, ANSWERS_MAX_COUNT)):
            await self._send(bodies)

    async def _send(self, bodies: Sequence[bytes]) -> None:
        content = bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]"
        try:
            got = await self._client.call(HttpCall("POST", f"{API}/results", body=content))
            for refused in got.body["recusados"]:
                log.error("answer became a dead letter", reason=refused["motivo"], detail=refused["detalhe"])
        except ApiError as error:
            if error.status >= 500 or error.status in TEMPORARY_STATUSES:
                raise
            if len(bodies) > 1:
                for body in bodies:
                    await self._send([body])
                return
            await self._report_refusal(bodies[0], error)

    async def _report_refusal(self, body: bytes, error: ApiError) -> None:
        """Send a failure in place of an answer that the server will never take, so that the ticket can end."""
        log.error("answer refused", error=str(error), size=len(body))
        try:
            report = _refused(body, error)
            await self._client.call(
                HttpCall("POST", f"{API}/results", body=report if self.sign is None else self.sign(report))
            )
        except ApiError as again:
            if again.status >= 500 or again.status in TEMPORARY_STATUSES:
                raise
            log.error("report of a refused answer refused; the ticket will time out", error=str(again))

    async def give_back(self, job: Job) -> None:
        await self._release(job, 0.0)

    async def _release(self, job: Job, delay: float) -> None:
        path = f"{API}/leases/{path_segment(job.handle)}/release"
        try:
            await self._client.call(HttpCall("POST", path, body={"delay_s": delay}))
        except ApiError as error:
            if error.status not in (404, 410):
                raise

    async def resolve(self, reference: Mapping[str, Any]) -> Any:
        return await references.fetch(self._client, reference)

    async def declare(self, queue: str, schema: Mapping[str, Any]) -> None:
        await declare(self._client, queue, schema)

    async def keep(self, job: Job) -> bool:
        try:
            await self._client.call(HttpCall("POST", f"{API}/leases/{path_segment(job.handle)}/extend"))
        except ApiError as error:
            if error.status == 410:
                return False
            if error.status != 404:  # the lease is gone, but the answer still counts
                raise
        return True

    async def announce(self, kind: str, said: dict[str, Any]) -> WorkerNews | None:
        body = orjson.loads(orjson.dumps(said, option=orjson.OPT_UTC_Z))
        name = path_segment(said["worker"])
        if kind == "registro":
            got = await self._client.call(HttpCall("POST", f"{API}/workers", body=body))
        elif kind == "batimento":
            told = None if self._host is None else await self._host.beat(body)
            if told is not None:
                return _news(told)
            del body["worker"]
            try:
                got = await self._client.call(HttpCall("PUT", f"{API}/workers/{name}/heartbeat", body=body))
            except NotFoundError:
                return WorkerNews(register_again=True)
        else:
            with contextlib.suppress(NotFoundError):
                await self._client.call(HttpCall("DELETE", f"{API}/workers/{name}"))
            return None
        return _news(got.body)

    async def _beat_for_all(self, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
        got = await self._client.call(HttpCall("POST", f"{API}/workers/heartbeats", body=said))
        items: list[dict[str, Any]] = got.body["itens"]
        return items

    async def told(self, worker: str, wait: float) -> WorkerNews:
        """Nothing comes by itself: what there is to tell comes with the answer to a heartbeat."""
        await asyncio.sleep(wait)
        return WorkerNews()

    async def pass_over(self, offers: Sequence[Job]) -> None:
        """Nothing is offered over HTTP."""

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()
        await self._client.close()


def _news(told: Mapping[str, Any]) -> WorkerNews:
    """What the answer to a registration or a heartbeat means; a problem in a list: the worker is not registered."""
    if "proximo_s" not in told:
        return WorkerNews(register_again=True)
    stop = tuple((one["ticket_id"], one["tentativa"]) for one in told.get("parar", ()))
    return WorkerNews(told["drenar"], next_s=told["proximo_s"], stop=stop)


async def declare(client: AsyncClient, queue: str, schema: Mapping[str, Any]) -> None:
    """Declare to the server which parameters the orders of a queue have to have."""
    path = f"{API}/queues/{path_segment(queue)}/schema"
    await client.call(HttpCall("PUT", path, body={"parametros": schema}))


def _size_in_list(body: bytes) -> int:
    return len(body) + 1  # and a comma


def _refused(body: bytes, error: ApiError) -> bytes:
    envelope: dict[str, Any] = orjson.loads(body)
    envelope.pop(MEMBER, None)  # the signature of what was refused
    names = {key: value for key, value in envelope["payload"].items() if key in ("fonte", "executador")}
    erro = {"codigo": "resultado_recusado", "mensagem": str(error)[:REFUSAL_TEXT_MAX_LENGTH], "definitivo": True}
    envelope["payload"] = {**names, "status": "erro", "dados": None, "erros": [erro]}
    return orjson.dumps(envelope)
