"""Everything that reads, hides or shows what somebody else wrote, in one table: it is tried for its time with shapes
that were slow once, and for its errors with what chance makes of documents that are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request

from oraculo import logs, redaction
from oraculo.adapters.calendars import cron_calendar, cron_fault
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.api import languages, paging, session, words
from oraculo.api.cookies import cookies_of
from oraculo.api.problems import ProblemError
from oraculo.collectors import dates, text
from oraculo.collectors.parse import parse_feed
from oraculo.dashboard import formats, frame, plan_templates
from oraculo.dashboard.dead_letters import hex_lines
from oraculo.errors import OraculoError
from oraculo.expressions.expression import compile_expression
from oraculo.expressions.template import parse_template
from oraculo.plans import reader
from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.ports.broker import Delivery
from oraculo.runtime.answers import AnswerReader
from oraculo.wire import (
    control_messages,
    mensagem,
    names,
    parameter_schema,
    quarantine,
    requests,
    schedules,
    signatures,
    sla,
    strict_json,
    trace_context,
    worker_messages,
)
from oraculo.wire.flow import approvals, plans, results
from oraculo.wire.flow.codec import Codec
from oraculo.wire.flow.decisions import decision_of
from oraculo.wire.json_items import split_items
from oraculo.wire.ticket_tokens import TokenKey, TokenReader
from wire.flow.samples import SAMPLES

PIECES = (
    "[],", "{},", '"é",', "1,", "1e308,", "[[[[[[]]]]]],", '{"a":0},', '"a\\n\\u00e9",', "eyJ-", "eyJhbGciOi.",
    "[", "]", "{", "}", '{"a":', "[[", '"', "\\", '\\"', "\\u0000", "\\ud800", ",", ":", "1e", "-", "0.1,", "<a ",
    "<", ">", "<!--", "-->", "<![CDATA[", "&amp;", "&#", "</", "<entry>", "<item><title>", "a@b:", "://",
    "amqp://u:p@h/", "?key=", "password=", "token: ", "Bearer ", "-----BEGIN PRIVATE KEY-----", "ghp_", "AKIA",
    "=", ";", " ", "\t", "\n", "\r\n", "é", "\u2028", "\U0001f600", "a", "aa", "${", "${a}", "}}", "{{", "(", ")",
    "((", "a.", "a[", "!", "!!", "-a", "a?", "a?a:", "'", "''", "0", "99", "//",
)  # fmt: skip


MIB = 1024 * 1024
_ENVELOPE = b'{"correlation_id":"a","tipo_evento":"resultado_coleta","timestamp":"2025-10-14T12:00:00Z","payload":%b}'
_OBJECT_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "array", "items": {"$ref": "#/$defs/x"}}},
    "$defs": {"x": {"anyOf": [{"type": "string", "maxLength": 5}, {"enum": [1, None]}]}},
}


@dataclass(frozen=True)
class Reader:
    """A function that takes a text, and the longest that it is ever given. Of bytes that are no UTF-8 the text has
    halves of surrogates (`surrogateescape`), unless `raw` is false: then it never gets any. `seeds` are texts that it
    takes; `refusals` are what it may raise."""

    name: str
    limit: int
    run: Callable[[str], Any]
    seeds: tuple[str, ...] = ()
    raw: bool = True
    refusals: tuple[type[Exception], ...] = (OraculoError,)


def sent(given: str) -> bytes:
    """The bytes that a text stands for."""
    return given.encode("utf-8", "surrogateescape")


def _json(function: Callable[[Any], Any]) -> Callable[[str], Any]:
    return lambda given: function(strict_json.loads(sent(given)))


def _record(record: str, function: Callable[[dict[str, Any]], Any]) -> Callable[[str], Any]:
    """Of what Kafka carries: a JSON object, or Avro behind the number of its schema."""
    return lambda given: function(_CODEC.decode(record, sent(given)))


def _framed(record: str) -> str:
    raw = _CODEC.encode(record, SAMPLES[record])
    return raw.decode("utf-8", "surrogateescape")


def _cookies(given: str) -> object:
    found = cookies_of(Headers(raw=[(b"cookie", given.encode("latin-1", "replace"))]))
    return [_SESSIONS.read(value) for value in found.values()]


def _note(given: str) -> object:
    cookie = (b"cookie", f"{frame.FLASH_COOKIE}={given}".encode("latin-1", "replace"))
    return frame._flash(Request({"type": "http", "headers": [cookie]}))


def _cron(given: str) -> object:
    if cron_fault(given) is not None:
        return None
    return cron_calendar(given, "America/Sao_Paulo")(datetime(2026, 1, 1, tzinfo=UTC))


def _letter(given: str) -> object:
    headers = {quarantine.REASON: given, quarantine.DETAIL: given}
    return quarantine.letter(Delivery("q.dlq", sent(given), None, headers=headers))


def _answer(given: str) -> object:
    return AnswerReader()(_ENVELOPE % sent(given), names.RESULTS)


def _signature(given: str) -> object:
    return signatures.signature_of(b"{}", {signatures.HEADER: given})


def _words(given: str) -> object:
    return words._asked({"query_string": sent(given), "headers": []})


def _schema(given: str) -> object:
    schema = parameter_schema.checked(strict_json.loads(sent(given)))
    return parameter_schema.faults(schema, {"a": 1, "b": ["x" * 9, None, {}]})


def _logged(given: str) -> object:
    """A line of the log as people read it and as machines do, with what was said as name and as value."""
    line = {"event": given, "level": "info", "@timestamp": "x", "error": given, given[:80]: [given[:80]]}
    for render in (logs._as_sentence, logs._ecs):
        render(None, "", logs._redacted(None, "", dict(line)))
    return None


def _feed(given: str) -> object:
    return parse_feed(sent(given), "http://a.example/")


def _description(given: str) -> object:
    return _feed(f"<rss><channel><item><description><![CDATA[{given}]]></description></item></channel></rss>")


_SESSIONS = session.Sessions("a-key-of-more-than-thirty-two-letters")
_CODEC = Codec(LocalRegistry())
_KEY = TokenKey("a", lambda said: said[:64].ljust(64, b"."), b"p" * 32)
_TOKENS = TokenReader([_KEY])
_FEED = (
    '<?xml version="1.0"?><rss version="2.0"><channel><title>a</title><item><title>b &amp; c</title>'
    "<link>http://a.example/1</link><pubDate>Tue, 14 Oct 2025 12:00:00 GMT</pubDate><description>&lt;b&gt;x&lt;/b&gt;"
    "</description></item></channel></rss>",
    '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title type="html">a</title><link rel="alternate" href="/x"/>'
    "<updated>2025-10-14T12:00:00Z</updated><summary>s</summary></entry></feed>",
)
_PLANS_YAML = tuple(plan_templates._TEMPLATES.values())
_PLAN, *_PLANS = (json.dumps(read_text(one.encode(), SourceFormat.YAML).data) for one in _PLANS_YAML)
_REQUEST = json.dumps(
    {
        "correlation_id": "a",
        "coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}, "prazo_s": 5}],
        "execucoes": [{"executador": "relatorio", "parametros": {"formato": "pdf"}}],
        "rotulos": ["a"],
        "unica": {"por": 60},
        "prioridade": 5,
    }
)
_ANSWER = json.dumps(
    {"fonte": "youtube", "status": "ok", "dados": [{"t": "x", "n": 1.5}], "erros": [{"mensagem": "e"}]}
)
_MESSAGE = (_ENVELOPE % _ANSWER.encode()).decode()
_SCHEDULE = json.dumps({"cron": "*/5 8-18 * * 1-5", "fuso": "America/Sao_Paulo", "requisicao": json.loads(_REQUEST)})
_SLO = json.dumps({"indicador": "runs_no_prazo", "objetivo": 0.99, "janela_dias": 30, "limite_s": 5.5})
_REGISTRATION = json.dumps(
    {"tipo": "registro", "worker": "w", "filas": ["escavador_a"], "capacidade": 3, "versao": "1"}
)
_RESULT, _APPROVAL, _COGNITIVE, _DECISION = (
    json.dumps(SAMPLES[record])
    for record in ("ExecutionResult", "ApprovalResponse", "CognitivePlan", "ConsolidatedDecision")
)
READERS = [
    Reader("strict_json", MIB, lambda given: strict_json.loads(sent(given)), (_PLAN, _MESSAGE)),
    Reader("strict_json: a text", MIB, lambda given: strict_json.loads(strict_json.dumps(given)), (_PLAN,), raw=False),
    Reader("strict_json: a list", MIB, lambda given: strict_json.loads(b"[" + sent(given) + b"0]"), ("1,", "{},")),
    Reader("json_items", 128 * 1024, lambda given: list(split_items(b"[" + sent(given) + b"]")), (_MESSAGE,)),
    Reader("mensagem", MIB, lambda given: mensagem.parse(sent(given)), (_MESSAGE,)),
    Reader("an order", MIB, lambda given: mensagem.parse_order(sent(given)), (_MESSAGE,)),
    Reader("result", MIB, _answer, (_ANSWER,)),
    Reader(
        "result: an error",
        MIB,
        lambda given: _answer(strict_json.dumps({"erros": [{"mensagem": given}]}).decode()),
        raw=False,
    ),
    Reader("request", MIB, _json(requests.parse), (_REQUEST, _PLAN, *_PLANS)),
    Reader("request: a name", MIB, lambda given: requests.parse({"coletas": [{"fonte": given}]}), raw=False),
    Reader("plan document", MIB, _json(reader.read), (_PLAN, *_PLANS)),
    Reader(
        "plan document: a condition",
        MIB,
        lambda given: reader.read({"tarefas": {"a": {"se": given}}}),
        ("${{ a.b }}",),
        False,
    ),
    Reader("plan in a file: JSON", MIB, lambda given: read_text(sent(given), SourceFormat.JSON), (_PLAN,)),
    Reader(
        "plan in a file: YAML",
        64 * 1024,
        lambda given: read_text(sent(given), SourceFormat.YAML),
        (*_PLANS_YAML, "a: &x {b: [c]}\nd: *x\n"),
    ),
    Reader("schedule", MIB, _json(schedules.parse), (_SCHEDULE,)),
    Reader("schedule: cron", 200, _cron, ("0 8 * * 1-5", "0 0 29 2 1", "*/5 1,2 L * *"), False),
    Reader("service level", MIB, _json(sla.parse), (_SLO,)),
    Reader("schema of parameters", MIB, _schema, (json.dumps(_OBJECT_SCHEMA),)),
    Reader("parameters", MIB, _json(partial(parameter_schema.faults, _OBJECT_SCHEMA)), ('{"a":1,"b":["x"]}',)),
    Reader("worker's control message", MIB, lambda given: worker_messages.read_control(sent(given)), (_REGISTRATION,)),
    Reader("order to a worker", MIB, lambda given: control_messages.order_of(sent(given)), ('{"ordem":"drene"}',)),
    Reader("signature", MIB, lambda given: signatures.signature_of(sent(given), {}), ('{"assinatura":"k.x"}',)),
    Reader("signature: header", 64 * 1024, _signature, ("k.x",)),
    Reader("signing key", 64 * 1024, signatures.read_signing_key, ("orcw_k_x",)),
    Reader("token", 64 * 1024, _TOKENS.read, (f"{_KEY.header.decode()}.e30.{'.' * 86}",)),
    Reader("Fluxo C: plan", MIB, _record("CognitivePlan", plans.read), (_COGNITIVE, _framed("CognitivePlan"))),
    Reader(
        "Fluxo C: result",
        MIB,
        _record("ExecutionResult", lambda value: results.answer(value, b"")),
        (_RESULT, _framed("ExecutionResult")),
    ),
    Reader(
        "Fluxo C: approval",
        MIB,
        _record("ApprovalResponse", approvals.answer),
        (_APPROVAL, _framed("ApprovalResponse")),
    ),
    Reader("decision", MIB, _json(decision_of), (_DECISION,)),
    Reader("expression", 64 * 1024, compile_expression, ("a.b[0] > 2 ? 'x' : size(c)",), False),
    Reader("template", 64 * 1024, parse_template, ("a ${{ b.c + 1 }} d",), False),
    Reader("redact", MIB, redaction.redact, ("amqp://u:p@h/ token=abc Bearer abcd",)),
    Reader("redact: whole", 64 * 1024, lambda given: redaction.redact(given, len(given)), ("a: b",)),
    Reader("redaction of URLs", 64 * 1024, redaction.urls, ("amqp://u:p@h:1/v?token=x,redis://:p@h",)),
    Reader("secrets of URLs", 64 * 1024, redaction.passwords_of, ("amqp://u:p@h:1/v?token=x",)),
    Reader("redaction of fields", MIB, lambda given: redaction.clean({"a": [given]}), ("token=x",)),
    Reader("a line of the log", MIB, _logged, ("token=x",), False),
    Reader("cookies", 64 * 1024, _cookies, ("oraculo_lang=pt; s=a.b.c",)),
    Reader("note in a cookie", 4 * 1024, _note, ("WyJrZXkiLHsia2V5IjoxfV0", "WyJjYW5jZWxsZWQiLHsibiI6MX1d")),
    Reader("where to after the login", 64 * 1024, frame.local_path, ("/runs?q=1",), False),
    Reader(
        "Accept-Language",
        64 * 1024,
        lambda given: languages.preferred_language(given, "pt"),
        ("en-US,en;q=0.9,pt;q=0.8",),
    ),
    Reader("words of a query", 64 * 1024, _words, ("words=en&a=b",), refusals=(ProblemError,)),
    Reader("cursor", 64 * 1024, partial(paging.decode, "o"), (paging.encode("o", 5),), refusals=(ProblemError,)),
    Reader("traceparent", 64 * 1024, trace_context.parse, ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",)),
    Reader("dead letter", MIB, _letter, ("bad_json",)),
    Reader("a feed", 256 * 1024, _feed, _FEED),
    Reader("a feed: descriptions", 256 * 1024, _description, ("<p>a <b>b</b> &amp; c</p>",)),
    Reader("markup", 256 * 1024, text.plain, ("<p>a <b>b</b> &amp; c<br/><!-- x --></p>",)),
    Reader("a date", 64 * 1024, dates.parse_instant, ("Tue, 14 Oct 2025 12:00:00 GMT", "2025-10-14T12:00:00Z")),
    Reader("an address", 64 * 1024, text.http_url, ("https://a.example:8/x?y#z",)),
    Reader("bytes on a page", MIB, lambda given: hex_lines(sent(given)), ("abc",)),
    Reader("a tree on a page", MIB, _json(formats.tree), (_PLAN,)),
]
