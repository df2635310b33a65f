"""Dead letters: by cause, with their bytes; taken in again as they are or corrected, or discarded."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from oraculo.api import dead_letters as letters
from oraculo.api import paging, paths
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.credentials import asks_for_key
from oraculo.api.dead_letters import DiscardManyQuery, Filter
from oraculo.api.problems import ProblemError
from oraculo.api.serving import Running, store_of
from oraculo.core.access import Actor, Scope
from oraculo.dashboard import commands
from oraculo.dashboard.formats import indented
from oraculo.dashboard.forms import Fields, Form
from oraculo.dashboard.frame import elsewhere, render
from oraculo.errors import OraculoError, WireError
from oraculo.ports.dead_letters import DeadLetter
from oraculo.service import Oraculo
from oraculo.wire import strict_json, views
from oraculo.wire.ticket_tokens import without_signatures

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)

DEAD_LETTERS_PER_PAGE = 50
HEX_PER_LINE = 16
MOST_HEX = 4096
PRETTY_MAX_BYTES = 100_000  # longer ones stand as they came


@router.get("/dead-letters")
@needs(Scope.DLQ_READ)
async def browse(request: Request, oraculo: Running) -> Response:
    store = store_of(oraculo)
    fila = request.query_params.get("fila") or None
    motivo = request.query_params.get("motivo") or None
    before = paging.decode("d", request.query_params.get("cursor") or None)
    groups = await store.dead_letter_groups()
    found = await store.dead_letters(
        before=before, limit=DEAD_LETTERS_PER_PAGE + 1, queue=fila, reason=motivo, bodies=False
    )
    shown = found[:DEAD_LETTERS_PER_PAGE]
    pairs = [(name, value) for name, value in (("fila", fila), ("motivo", motivo)) if value]
    following = [*pairs, ("cursor", paging.encode("d", shown[-1].id))] if len(found) > DEAD_LETTERS_PER_PAGE else None
    return render(
        request,
        "dead_letters.html",
        groups=[{"fila": one, "motivo": why, "total": total} for one, why, total in groups],
        total=sum(total for _, _, total in groups),
        here_total=sum(total for one, why, total in groups if fila in (None, one) and motivo in (None, why)),
        rows=shown,
        fila=fila,
        motivo=motivo,
        next=f"/dead-letters?{urlencode(following)}" if following else None,
    )


@router.get("/dead-letters/{id:segment}")
@needs(Scope.DLQ_READ)
async def show(request: Request, oraculo: Running, id: str) -> Response:
    letter = await letters.letter_of(oraculo, id)
    return _page(request, oraculo, letter)


def _page(request: Request, oraculo: Oraculo, letter: DeadLetter, status: int = 200, **more: str) -> Response:
    shown = views.dead_letter(letter, body=True)
    base, keyed = commands.base_url(request), asks_for_key(oraculo.settings)
    here = f"{paths.API}/dead-letters/{letter.id}"
    readable = shown["codificacao"] == "utf-8"
    return render(
        request,
        "dead_letter.html",
        status,
        letter=shown,
        readable=readable,
        hex_lines=hex_lines(without_signatures(letter.body)),
        hex_more=max(0, len(letter.body) - MOST_HEX),
        text=more.get("text", _pretty(shown["corpo"]) if readable else ""),
        refused=more.get("refused"),
        curl=commands.curl(base, "POST", f"{here}/requeue", keyed=keyed),
        cli=commands.cli(base, "dlq", "requeue", str(letter.id)),
    )


def _pretty(text: str) -> str:
    """JSON with a line for each value; anything else as it came."""
    try:
        strict_json.loads(text.encode(), max_bytes=PRETTY_MAX_BYTES)
    except WireError:
        return text
    return indented(text)


def hex_lines(body: bytes) -> list[tuple[str, str, str]]:
    """(offset, bytes, what can be read)."""
    lines = []
    for start in range(0, min(len(body), MOST_HEX), HEX_PER_LINE):
        part = body[start : start + HEX_PER_LINE]
        readable = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
        lines.append((f"{start:06x}", part.hex(" "), readable))
    return lines


@router.post("/ui/dead-letters/{what}")
@needs(Scope.DLQ_DISCARD, "what", requeue=Scope.DLQ_REQUEUE)
async def act(request: Request, oraculo: Running, what: str, fields: Form) -> Response:
    """Requeue or discard the ticked dead letters, or all of one cause, after a page that shows the count."""
    if what not in ("requeue", "discard"):
        raise ProblemError("not_found", "allowed: requeue, discard")
    fila, motivo, ids = fields.get("fila") or None, fields.get("motivo") or None, fields.all("id")
    back = fields.get("back") or "/dead-letters"
    count = len(ids) if ids else await _count(oraculo, fila, motivo)
    if fields.get("confirm") != "1":
        return render(
            request, "confirm_letters.html", what=what, count=count, ids=ids, fila=fila, motivo=motivo, back=back
        )
    if what == "discard":
        return elsewhere(request, back, "discarded", n=await _discard(oraculo, actor_of(request), fields))
    if ids:
        found = [await letters.letter_of(oraculo, one) for one in ids]
        outcomes = await letters.take_in(oraculo, found, actor_of(request))
        gone = sum(outcome["removida"] for outcome in outcomes)
        return elsewhere(request, back, "requeued", n=gone, kept=len(outcomes) - gone)
    told = await letters.take_in_many(oraculo, Filter(fila=fila, motivo=motivo), actor_of(request))
    return elsewhere(request, back, "requeued", n=told["reenviadas"], kept=told["mantidas"])


async def _count(oraculo: Oraculo, fila: str | None, motivo: str | None) -> int:
    if fila is None and motivo is None:
        raise ProblemError("filter_required", "choose messages, or a cause")
    groups = await store_of(oraculo).dead_letter_groups()
    return sum(total for one, why, total in groups if fila in (None, one) and motivo in (None, why))


async def _discard(oraculo: Oraculo, actor: Actor, fields: Fields) -> int:
    reason = fields.get("razao")[:1000]
    ids = fields.all("id")
    if not ids:
        wanted = DiscardManyQuery(fila=fields.get("fila") or None, motivo=fields.get("motivo") or None, razao=reason)
        return await letters.throw_away_many(oraculo, wanted, actor)
    for one in ids:
        await letters.throw_away(oraculo, await letters.letter_of(oraculo, one), reason, actor)
    return len(ids)


@router.post("/ui/dead-letters/{id:segment}/edited")
@needs(Scope.DLQ_REQUEUE)
async def edited(request: Request, oraculo: Running, id: str, fields: Form) -> Response:
    """Other bytes in the place of the original ones. When they are refused too, nothing is lost."""
    letter = await letters.letter_of(oraculo, id)
    text = fields.get("corpo").replace("\r\n", "\n")
    try:
        [told] = await letters.take_in(oraculo, [letters.with_body(letter, text)], actor_of(request))
    except OraculoError as error:
        return _page(request, oraculo, letter, 422, text=text, refused=str(error))
    if told["removida"]:
        return elsewhere(request, "/dead-letters", "requeued", n=1, kept=0)
    return _page(request, oraculo, letter, 422, text=text, refused=told["motivo"] or told["situacao"])
