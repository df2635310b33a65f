"""Pages for people: the latest orchestrations, the routes, the problems. Written on the server, no script, no request
beyond this server, every text escaped."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

from oraculo.api import openapi, paths
from oraculo.api.middleware import PAGE_POLICY
from oraculo.api.problems import KINDS
from oraculo.api.serving import Running, store_of
from oraculo.errors import UnknownIdError
from oraculo.ports.store import Query, Summary
from oraculo.wire import strict_json, views

router = APIRouter(include_in_schema=False)

LATEST = 20
STYLE = """:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8884}
pre{background:#8882;padding:.8rem;overflow:auto;border-radius:.3rem}code{font-family:ui-monospace,monospace}
td{overflow-wrap:break-word}td code{white-space:nowrap}td:last-child{overflow-wrap:anywhere}
h3{margin-top:2.2rem}.verb{font-weight:700}
"""
_COMMON = {"400", "401", "403", "421", "500", "503"}


def page(title: str, content: str) -> Response:
    html = (
        '<!doctype html>\n<html lang="pt-BR"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="/oraculo.css"></head>'
        f"<body><main>{content}</main></body></html>\n"
    )
    return Response(html, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": PAGE_POLICY})


def base_url(request: Request) -> str:
    """As the reader reached us, so that the commands can be pasted."""
    host = request.headers.get("host") or "127.0.0.1:8000"
    return f"{request.url.scheme}://{host}"


def curl(base: str, method: str, path: str, body: Any = None) -> str:
    parts = ["curl", *([] if method == "GET" else ["-X", method]), shlex.quote(base + path)]
    if body is not None:
        text = strict_json.dumps(body).decode()
        parts += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(text)]
    return " ".join(parts)


@router.get("/oraculo.css")
async def style() -> Response:
    return Response(STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


@router.get("/")
async def home(request: Request, oraculo: Running) -> Response:
    latest = await store_of(oraculo).find(Query(limit=LATEST))
    if latest:
        rows = "".join(_row(one) for one in latest)
        content = (
            "<h2>Últimas orquestrações</h2><table><thead><tr><th>correlation_id</th><th>status</th><th>tickets</th>"
            f"<th>início</th><th>duração</th></tr></thead><tbody>{rows}</tbody></table>"
        )
    else:
        example = {"coletas": [{"fonte": "youtube", "parametros": {"canal": "x"}}], "timeout_s": 60}
        command = curl(base_url(request), "POST", paths.ORCHESTRATIONS, example)
        content = (
            "<h2>Nenhuma orquestração ainda</h2><p>Comece por aqui:</p>"
            f"<pre><code>{escape(command)}</code></pre><p>ou, com coletores e executadores de exemplo:</p>"
            "<pre><code>oraculo demo</code></pre>"
        )
    links = (
        '<p><a href="/docs">rotas da API</a> · <a href="/openapi.json">OpenAPI</a> · '
        f'<a href="{paths.ORCHESTRATIONS}">orquestrações (JSON)</a> · '
        '<a href="/api/v1/dead-letters">mensagens mortas (JSON)</a> · <a href="/metrics">métricas</a></p>'
    )
    return page("Oráculo", f"<h1>Oráculo</h1>{links}{content}")


def _row(one: Summary) -> str:
    shown = views.summary(one)
    took = "" if shown["duracao_ms"] is None else f"{shown['duracao_ms']} ms"
    address = escape(paths.orchestration(one.correlation_id))
    done = f"{one.total - one.open}/{one.total}"
    return (
        f'<tr><td><a href="{address}">{escape(one.correlation_id)}</a></td><td>{escape(one.status)}</td>'
        f"<td>{done}</td><td>{escape(views.instant(one.created_at) or '')}</td><td>{took}</td></tr>"
    )


def prose(text: str) -> str:
    """Escaped, with `code` as code."""
    return "".join(
        f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(escape(text).split("`"))
    )


@router.get("/docs")
async def docs(request: Request) -> Response:
    document = openapi.document(request.app)
    base = base_url(request)
    parts = [
        "<h1>Oráculo: API</h1>",
        f'<p>{prose(document["info"]["description"])}</p><p><a href="/openapi.json">openapi.json</a> · '
        '<a href="/problems">problems</a> · <a href="/">Oráculo</a></p>',
    ]
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2><p>{prose(tag['description'])}</p>")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if tag["name"] in operation.get("tags", ()):
                    parts.extend(_operation(base, path, method.upper(), operation, document))
    return page("Oráculo: API", "".join(parts))


def _operation(base: str, path: str, method: str, operation: dict[str, Any], document: Any) -> Iterator[str]:
    yield f'<h3><span class="verb">{method}</span> <code>{escape(path)}</code></h3>'
    yield f"<p>{escape(operation['summary'])}. {prose(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", ())
    if parameters:
        yield "<table><thead><tr><th>parameter</th><th>in</th><th></th></tr></thead><tbody>"
        for one in parameters:
            text = one.get("description") or one.get("schema", {}).get("description", "")
            yield f"<tr><td><code>{escape(one['name'])}</code></td><td>{one['in']}</td><td>{prose(text)}</td></tr>"
        yield "</tbody></table>"
    address = path
    for one in parameters:
        if one["in"] == "path":
            examples = one.get("schema", {}).get("examples") or one.get("examples") or ["x"]
            address = address.replace("{" + one["name"] + "}", str(examples[0]))
    yield f"<pre><code>{escape(curl(base, method, address, _example(operation, document)))}</code></pre>"
    answers = (
        f"<code>{status}</code> {escape(answer['description'])}"
        for status, answer in sorted(operation["responses"].items())
        if status not in _COMMON
    )
    yield f"<p>{'; '.join(answers)}</p>"


def _example(operation: dict[str, Any], document: dict[str, Any]) -> Any:
    media = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for example in media.get("examples", {}).values():
        return example["value"]
    name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return next(iter(document["components"]["schemas"].get(name, {}).get("examples", ())), None)


@router.get("/problems")
async def problems() -> Response:
    rows = "".join(_problem_row(code) for code in KINDS)
    table = f"<table><thead><tr><th>status</th><th>code</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
    return page("Oráculo: problems", f'<h1>Problems</h1>{table}<p><a href="/docs">API</a></p>')


@router.get("/problems/{slug:segment}")
async def problem(slug: str) -> Response:
    code = slug.replace("-", "_")
    if code not in KINDS:
        raise UnknownIdError("problem", slug)
    rows = _problem_row(code)
    return page(code, f'<h1>{code}</h1><table><tbody>{rows}</tbody></table><p><a href="/problems">all</a></p>')


def _problem_row(code: str) -> str:
    kind = KINDS[code]
    link = f'<a href="/problems/{code.replace("_", "-")}"><code>{code}</code></a>'
    return f"<tr><td>{kind.status}</td><td>{link}</td><td>{escape(kind.title)}</td></tr>"
