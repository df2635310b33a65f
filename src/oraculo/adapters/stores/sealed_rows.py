"""What of a store's rows is sealed, and for which place: steps, results, dead letters and schedules.

Names, types, labels, statuses, times and counts stay in clear, because they are what rows are looked up by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

import orjson

from oraculo.adapters.sealing.codec import SEALED_OVERHEAD_BYTES, Sealing, is_sealed
from oraculo.adapters.stores.instants import from_micros, from_micros_or_none, to_micros, to_micros_or_none
from oraculo.core.tenants import tenant_of
from oraculo.errors import ErasedError, StoreError
from oraculo.ports.data_keys import DataKeys, StoredDataKey, UnknownDataKeyError
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Recorded
from oraculo.ports.schedules import StoredSchedule
from oraculo.wire import records

T = TypeVar("T")

DATA_KEY_COLUMNS = "id, tenant, generation, wrapped, master, created_at, forgotten_at"
ERASED_DETAIL = "erased: the key of its tenant was forgotten"
UNSEALED = Sealing()  # of a store without a master key


def step_place(run: int, first: int) -> str:
    return f"journal/{run}/{first}"


def result_place(run: int) -> str:
    return f"result/{run}"


def letter_place(tenant: str, column: str) -> str:
    return f"dead-letter/{tenant}/{column}"


def schedule_place(name: str, column: str) -> str:
    return f"schedule/{name}/{column}"


# -- keys --------------------------------------------------------------------------------------------------------------


def data_key_row(one: StoredDataKey) -> tuple[Any, ...]:
    """The columns of DATA_KEY_COLUMNS."""
    times = to_micros(one.created_at), to_micros_or_none(one.forgotten_at)
    return one.id, one.tenant, one.generation, one.wrapped, one.master, *times


def data_key_of(row: Sequence[Any]) -> StoredDataKey:
    """Of DATA_KEY_COLUMNS."""
    id, tenant, generation, wrapped, master, created, forgotten = row
    wrapped = None if wrapped is None else bytes(wrapped)
    return StoredDataKey(id, tenant, generation, wrapped, master, from_micros(created), from_micros_or_none(forgotten))


def tenants_of(batch: Batch) -> set[str]:
    """The tenants that something in a batch belongs to."""
    return {tenant_of(step.state.correlation_id) for step in batch.steps} | {letter.tenant for letter in batch.dead}


async def refresh(sealing: Sealing, keys: DataKeys, tenants: Iterable[str] = ()) -> None:
    """Bring the keys in memory up to date; tenants that have none to seal with get one."""
    if sealing.stale:
        sealing.take(await keys.data_keys())
    for tenant in sealing.lacking(tenants):
        await keys.add_data_key(sealing.new_key(tenant))
        sealing.take(await keys.data_keys())


async def opened(sealing: Sealing, keys: DataKeys, read: Callable[[], Awaitable[T]]) -> T:
    """What `read` gives; once more with the newest keys where it found one that is not known."""
    if sealing.stale:
        sealing.take(await keys.data_keys())
    try:
        return await read()
    except UnknownDataKeyError:
        sealing.take(await keys.data_keys())
    try:
        return await read()
    except UnknownDataKeyError as error:
        raise StoreError(f"something is sealed with the key {error}, which the store does not have") from None


# -- the journal -------------------------------------------------------------------------------------------------------


def recorded(row: Sequence[Any], sealing: Sealing) -> Recorded:
    """A step of run, first, at, format, events, position; without events when its tenant's key was forgotten."""
    run, first, at, format, events, position = row
    text = events if events[0] == "[" else sealing.open_text(step_place(run, first), events)
    if text is None:
        return Recorded(run, first, from_micros(at), [], position)
    return Recorded(run, first, from_micros(at), records.decode(text, format), position, text)


def by_run(steps: Iterable[Recorded]) -> dict[int, list[Recorded]]:
    """Run → its steps; runs of which a step cannot be read any more are left out."""
    found: dict[int, list[Recorded]] = {}
    erased: set[int] = set()
    for step in steps:
        if step.erased:
            erased.add(step.run)
        else:
            found.setdefault(step.run, []).append(step)
    for run in erased:
        found.pop(run, None)
    return found


def beyond(steps: Iterable[Recorded], after: int) -> list[Recorded]:
    """The steps that hold events numbered above `after`."""
    found: list[Recorded] = []
    for step in steps:
        if step.erased:
            raise ErasedError("orchestration")
        if step.first + len(step.events) > after + 1:
            found.append(step)
    return found


def result_of(rows: Sequence[Sequence[Any]], run: int, sealing: Sealing) -> bytes | None:
    """The stored result of a run: the one column of one row, or of none."""
    if not rows:
        return None
    text = sealing.open_text(result_place(run), rows[0][0])
    if text is None:
        raise ErasedError("result")
    return text.encode()


# -- dead letters ------------------------------------------------------------------------------------------------------


def letter_texts(one: DeadLetter, sealing: Sealing) -> tuple[str, str, bytes]:
    """detail, headers, body as they are kept."""
    headers = orjson.dumps(one.headers)
    if not sealing.on:
        return one.detail, headers.decode(), one.body
    tenant = one.tenant
    return (
        sealing.seal_text(tenant, letter_place(tenant, "detail"), one.detail.encode("utf-8", "replace")),
        sealing.seal_text(tenant, letter_place(tenant, "headers"), headers),
        sealing.seal_bytes(tenant, letter_place(tenant, "body"), one.body),
    )


def letter_of(row: Sequence[Any], sealing: Sealing) -> DeadLetter:
    """Of id, queue, reason, detail, correlation_id, headers, at, size, body. Headers say whether it is sealed: they are
    JSON otherwise, while a body may be anything."""
    id, queue, reason, detail, correlation_id, headers, at, size, body = row
    erased = False
    if is_sealed(headers):
        tenant = tenant_of(queue)
        known = sealing.open_text(letter_place(tenant, "headers"), headers)
        erased = known is None
        headers = "{}" if known is None else known
        detail = ERASED_DETAIL if erased else sealing.open_text(letter_place(tenant, "detail"), detail)
        size -= SEALED_OVERHEAD_BYTES
        body = b"" if erased or not body else sealing.open_bytes(letter_place(tenant, "body"), bytes(body))
    found = DeadLetter(queue, reason, detail, body, correlation_id, orjson.loads(headers), id, from_micros(at), size)
    found.erased = erased
    return found


# -- schedules ---------------------------------------------------------------------------------------------------------


def schedule_texts(one: StoredSchedule, sealing: Sealing) -> tuple[str, str]:
    """body and state as they are kept."""
    if not sealing.on:
        return one.body.decode(), one.state.decode()
    tenant = tenant_of(one.name)
    return (
        sealing.seal_text(tenant, schedule_place(one.name, "body"), one.body),
        sealing.seal_text(tenant, schedule_place(one.name, "state"), one.state),
    )


def schedule_parts(name: str, body: str, state: str, sealing: Sealing) -> tuple[bytes, bytes]:
    """body and state of a row."""
    plain_body = sealing.open_text(schedule_place(name, "body"), body)
    plain_state = sealing.open_text(schedule_place(name, "state"), state)
    if plain_body is None or plain_state is None:
        raise ErasedError("schedule")
    return plain_body.encode(), plain_state.encode()
