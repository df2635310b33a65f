"""Workers over plain HTTP: orders are leased from the orchestrator, kept alive, answered and given back.

A server that is away is waited for: the worker goes on with what it has and sends its answers when the server is back.
A lease that is gone does no harm, since an answer counts for its ticket and not for its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import Any

import orjson
import structlog

from oraculo.client import AsyncClient
from oraculo.client_calls import API, Call, part
from oraculo.errors import ApiError
from oraculo.worker_transport import Job

log = structlog.get_logger("oraculo.worker")

WAIT = 20.0
AT_ONCE, AT_ONCE_BYTES = 1000, 8 * 1024 * 1024  # answers in one call
STOPPING = 0.25  # seconds to leave a server in peace that lets nobody wait, because it stops
UNREADABLE = 60.0  # seconds until an order that could not be read is offered again
LATER = (401, 403, 408, 429)  # refusals that may be over later; other 4xx say that the answer itself is at fault


class HttpTransport:
    """`lease_s` is how long the orchestrator waits for a sign of life before it gives an order to somebody else."""

    take_grace = 0.5

    def __init__(self, url: str | None, api_key: str | None, worker_name: str, lease_s: float = 30.0) -> None:
        self._client = AsyncClient(url, api_key)
        self._worker = worker_name
        self._lease_s = lease_s
        self.keep_every: float | None = lease_s / 3

    @property
    def url(self) -> str:
        return self._client.url

    async def check(self) -> None:
        """ApiError or ServerUnreachableError when no work can be had from there now."""
        await self._client.workers()

    async def take(self, queue: str, limit: int, wait: float) -> list[Job]:
        wait = min(wait, WAIT)
        body = {"max": limit, "wait": wait, "worker": self._worker, "lease_s": self._lease_s}
        began = monotonic()
        got = await self._client.call(Call("POST", f"{API}/queues/{part(queue)}/lease", body=body, patience=wait))
        if not got.body["mensagens"] and monotonic() - began < wait / 2:
            await asyncio.sleep(STOPPING)
        return [Job(queue, orjson.dumps(one["mensagem"]), one["lease_id"]) for one in got.body["mensagens"]]

    async def answer(self, answers: list[tuple[Job, bytes]]) -> None:
        """Raises when some may not have arrived; sending all of them again is safe."""
        for job, body in answers:
            if not body:
                await self._release(job, UNREADABLE)
        for chunk in _chunks([body for _, body in answers if body]):
            await self._send(chunk)

    async def _send(self, bodies: list[bytes]) -> None:
        content = bodies[0] if len(bodies) == 1 else b"[" + b",".join(bodies) + b"]"
        try:
            got = await self._client.call(Call("POST", f"{API}/results", body=content))
            for refused in got.body["recusados"]:
                log.error("an answer became a dead letter", reason=refused["motivo"], detail=refused["detalhe"])
        except ApiError as error:
            if error.status >= 500 or error.status in LATER:
                raise
            if len(bodies) > 1:
                for body in bodies:
                    await self._send([body])
                return
            await self._confess(bodies[0], error)

    async def _confess(self, body: bytes, error: ApiError) -> None:
        """An answer that is refused for what it is will never be taken. Say so instead, so that the ticket can end."""
        log.error("an answer was refused", error=str(error), size=len(body))
        try:
            await self._client.call(Call("POST", f"{API}/results", body=_refused(body, error)))
        except ApiError as again:
            if again.status >= 500 or again.status in LATER:
                raise
            log.error("and so was the note about it; the ticket will time out", error=str(again))

    async def give_back(self, job: Job) -> None:
        await self._release(job, 0.0)

    async def _release(self, job: Job, delay: float) -> None:
        path = f"{API}/leases/{part(job.handle)}/release"
        try:
            await self._client.call(Call("POST", path, body={"delay_s": delay}))
        except ApiError as error:
            if error.status not in (404, 410):
                raise

    async def keep(self, job: Job) -> bool:
        try:
            await self._client.call(Call("POST", f"{API}/leases/{part(job.handle)}/extend"))
        except ApiError as error:
            if error.status == 410:
                return False
            if error.status != 404:  # the lease is gone, but the answer still counts
                raise
        return True

    async def close(self) -> None:
        await self._client.close()


def _chunks(bodies: list[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for body in bodies:
        if chunk and (size + len(body) > AT_ONCE_BYTES or len(chunk) == AT_ONCE):
            yield chunk
            chunk, size = [], 0
        chunk.append(body)
        size += len(body) + 1
    if chunk:
        yield chunk


def _refused(body: bytes, error: ApiError) -> bytes:
    envelope: dict[str, Any] = orjson.loads(body)
    names = {key: value for key, value in envelope["payload"].items() if key in ("fonte", "executador")}
    erro = {"codigo": "resultado_recusado", "mensagem": str(error)[:1000], "definitivo": True}
    envelope["payload"] = {**names, "status": "erro", "dados": None, "erros": [erro]}
    return orjson.dumps(envelope)
