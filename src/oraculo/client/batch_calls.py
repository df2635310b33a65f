"""The call plans of many requests at once; see calls.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from oraculo.chunks import chunks_by_count, chunks_by_size
from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, is_plan, path_segment, refusal, submit_plan
from oraculo.client.results import Submitted
from oraculo.errors import ApiError, BatchRefusedError

BATCH_MAX_REQUESTS = 1000  # that the server takes in one call
BATCH_MAX_BYTES = 15 * 1024 * 1024
BATCH_TIMEOUT_S = 60.0  # what a full batch may take longer than one request

Item = Submitted | ApiError


def submit_many(requests: Iterable[Mapping[str, Any]], idempotency_key: str | None = None) -> CallPlan[list[Submitted]]:
    """Hand in many requests, each accepted or refused on its own. BatchRefusedError when some were refused."""
    wanted = list(requests)
    items: dict[int, Item] = {}
    texts = [(place, orjson.dumps(dict(one))) for place, one in enumerate(wanted) if not is_plan(one)]
    for some in chunks_by_size(texts, BATCH_MAX_BYTES, lambda pair: len(pair[1]) + 1):
        for chunk in chunks_by_count(some, BATCH_MAX_REQUESTS):
            items |= yield from _batch(dict(chunk), idempotency_key)
    for place, one in enumerate(wanted):
        if is_plan(one):
            items[place] = yield from _plan(one)
    found = [items[place] for place in range(len(wanted))]
    if any(isinstance(one, ApiError) for one in found):
        raise BatchRefusedError(found)
    return [one for one in found if isinstance(one, Submitted)]


def _batch(texts: Mapping[int, bytes], idempotency_key: str | None) -> CallPlan[dict[int, Item]]:
    headers = {} if idempotency_key is None else {"Idempotency-Key": f"{idempotency_key}:{min(texts)}"}
    got: HttpAnswer = yield HttpCall(
        "POST",
        f"{API}/orchestrations/batch",
        body=b"[" + b",".join(texts.values()) + b"]",
        headers=headers,
        server_wait_s=BATCH_TIMEOUT_S,
    )
    answers = got.body["itens"] if "itens" in got.body else got.body["items"]  # in the words of the client
    return {place: _item(answer) for place, answer in zip(texts, answers, strict=True)}


def _item(answer: dict[str, Any]) -> Item:
    if answer["status"] != 202:
        return refusal(answer["status"], answer)
    name = answer["correlation_id"]
    return Submitted(name, "pendente", f"{API}/orchestrations/{path_segment(name)}", answer)


def _plan(plan: Mapping[str, Any]) -> CallPlan[Item]:
    try:
        return (yield from submit_plan(plan))
    except ApiError as error:
        return error
