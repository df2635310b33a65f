"""Whatever is read, hidden or shown takes time in proportion to its length: nothing that is sent stops the event loop.

Processor time of one thread is measured, at a length and at four times that length. Work in proportion takes four times
as long, a search that begins anew at every character sixteen times. The shapes are those that were slow once, in this
project or in others, and pieces of them put together at random.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from starlette.datastructures import Headers

from oraculo import redaction
from oraculo.api.cookies import cookies_of
from oraculo.collectors import dates, text
from oraculo.collectors.parse import parse_feed
from oraculo.dashboard import formats
from oraculo.dashboard.dead_letters import hex_lines
from oraculo.errors import OraculoError
from oraculo.expressions.expression import compile_expression
from oraculo.expressions.template import parse_template
from oraculo.plans import reader
from oraculo.ports.broker import Delivery
from oraculo.runtime.answers import AnswerReader
from oraculo.wire import mensagem, names, quarantine, requests, strict_json, trace_context
from oraculo.wire.flow.decisions import decision_of
from oraculo.wire.json_items import split_items

RATIO_MAX = 10.0  # of four times the length; in proportion it is 4, with each character looked at from each other 16
NOTHING_S = 0.03  # processor time that holds up nobody: less at the limit is not worth a ratio
TRIES = 4
PIECES = (
    "[],", "{},", '"é",', "1,", "1e308,", "[[[[[[]]]]]],", '{"a":0},', '"a\\n\\u00e9",', "eyJ-", "eyJhbGciOi.",
    "[", "]", "{", "}", '{"a":', "[[", '"', "\\", '\\"', "\\u0000", "\\ud800", ",", ":", "1e", "-", "0.1,", "<a ",
    "<", ">", "<!--", "-->", "<![CDATA[", "&amp;", "&#", "</", "<entry>", "<item><title>", "a@b:", "://",
    "amqp://u:p@h/", "?key=", "password=", "token: ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "ghp_", "AKIA",
    "=", ";", " ", "\t", "\n", "\r\n", "é", "\u2028", "\U0001f600", "a", "aa", "${", "${a}", "}}", "{{", "(", ")",
    "((", "a.", "a[", "!", "!!", "-a", "a?", "a?a:", "'", "''", "0", "99", "//",
)  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A function that takes a text, and the longest that it is ever given."""

    name: str
    limit: int
    run: Callable[[str], Any]


def _json(function: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lambda given: function(strict_json.loads(given.encode()))


def _cookies(given: str) -> object:
    return cookies_of(Headers(raw=[(b"cookie", given.encode("latin-1", "replace"))]))


def _letter(given: str) -> object:
    headers = {quarantine.REASON: given, quarantine.DETAIL: given}
    return quarantine.letter(Delivery("q.dlq", given.encode(), None, headers=headers))


MIB = 1024 * 1024
_ENVELOPE = '{"correlation_id":"a","tipo_evento":"resultado_coleta","timestamp":"2025-10-14T12:00:00Z","payload":%s}'
READERS = [
    Reader("strict_json", MIB, lambda given: strict_json.loads(given.encode())),
    Reader("strict_json: a text", MIB, lambda given: strict_json.loads(strict_json.dumps(given))),
    Reader("strict_json: a list", MIB, lambda given: strict_json.loads(b"[" + given.encode() + b"0]")),
    Reader("json_items", 128 * 1024, lambda given: list(split_items(b"[" + given.encode() + b"]"))),
    Reader("mensagem", MIB, lambda given: mensagem.parse(given.encode())),
    Reader("result", MIB, lambda given: AnswerReader()((_ENVELOPE % given).encode(), names.RESULTS)),
    Reader(
        "result: an error",
        MIB,
        lambda given: AnswerReader()(
            (_ENVELOPE % strict_json.dumps({"erros": [{"mensagem": given}]}).decode()).encode(), names.RESULTS
        ),
    ),
    Reader("request", MIB, _json(requests.parse)),
    Reader("request: a name", MIB, lambda given: requests.parse({"coletas": [{"fonte": given}]})),
    Reader("plan document", MIB, _json(reader.read)),
    Reader("plan document: a condition", MIB, lambda given: reader.read({"tarefas": {"a": {"se": given}}})),
    Reader("decision", MIB, _json(decision_of)),
    Reader("expression", 64 * 1024, compile_expression),
    Reader("template", 64 * 1024, parse_template),
    Reader("redact", MIB, redaction.redact),
    Reader("redact: whole", 64 * 1024, lambda given: redaction.redact(given, len(given))),
    Reader("redaction of URLs", 64 * 1024, redaction.urls),
    Reader("redaction of fields", MIB, lambda given: redaction.clean({"a": [given]})),
    Reader("cookies", 64 * 1024, _cookies),
    Reader("traceparent", 64 * 1024, trace_context.parse),
    Reader("dead letter", MIB, _letter),
    Reader("a feed", 256 * 1024, lambda given: parse_feed(given.encode(), "http://a.example/")),
    Reader(
        "a feed: descriptions",
        256 * 1024,
        lambda given: parse_feed(
            f"<rss><channel><item><description><![CDATA[{given}]]></description></item></channel></rss>".encode(),
            "http://a.example/",
        ),
    ),
    Reader("markup", 256 * 1024, text.plain),
    Reader("a date", 64 * 1024, dates.parse_instant),
    Reader("an address", 64 * 1024, text.http_url),
    Reader("bytes on a page", MIB, lambda given: hex_lines(given.encode())),
    Reader("a tree on a page", MIB, _json(formats.tree)),
]  # fmt: skip


def _seconds(run: Callable[[str], Any], given: str) -> float:
    """Processor time of this thread, refusals included."""
    began = time.thread_time()
    with suppress(OraculoError, ValueError, RecursionError, UnicodeError):
        run(given)
    return time.thread_time() - began


def _is_slow(reader: Reader, shape: str) -> str | None:
    """What was measured, when it is more than in proportion; the quickest of several tries counts."""
    long = (shape * (reader.limit // len(shape.encode()) + 1))[: reader.limit]
    short = long[: len(long) // 4]
    whole = _seconds(reader.run, long)
    if whole < NOTHING_S:
        return None
    quarter = _seconds(reader.run, short)
    for _ in range(TRIES):
        if whole <= RATIO_MAX * max(quarter, NOTHING_S / 4):
            return None
        whole = min(whole, _seconds(reader.run, long))
        quarter = max(quarter, _seconds(reader.run, short))
    return f"{shape[:60]!r} × {len(long) // len(shape)}: {whole:.3f} s, a quarter of it {quarter:.4f} s"


@pytest.fixture(autouse=True)
def no_collection() -> Any:
    """The garbage of other tests is not the work of a reader."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_time_is_in_proportion_to_the_length(reader: Reader) -> None:
    random = Random(reader.name)
    mixed = ["".join(random.choices(PIECES, k=random.randint(2, 6))) for _ in range(10)]
    found = [_is_slow(reader, shape) for shape in (*PIECES, *mixed)]
    assert [one for one in found if one is not None] == []


def test_the_measure_sees_a_search_that_begins_anew_at_every_character() -> None:
    """In doubt the measure lets a reader pass, and a busy machine gives it doubts; so it may look several times."""
    quadratic = Reader("quadratic", 16 * 1024, re.compile("a*b").search)  # as searches for secrets once were
    assert any(_is_slow(quadratic, "a") is not None for _ in range(20))
    assert _is_slow(Reader("linear", MIB, lambda given: given.count("b")), "a") is None
