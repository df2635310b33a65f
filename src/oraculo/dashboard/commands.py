"""The same thing without the dashboard: as curl and as command line, ready to be pasted into a shell."""

from __future__ import annotations

import shlex
from typing import Any

from fastapi import Request

from oraculo.api import paths
from oraculo.api.credentials import asks_for_key
from oraculo.wire import strict_json

EXAMPLE = {"coletas": [{"fonte": "eco", "parametros": {"n": 1}}], "timeout_s": 60}


def base_url(request: Request) -> str:
    """As the reader reached us, so that the commands can be pasted."""
    host = request.headers.get("host") or "127.0.0.1:8000"
    return f"{request.url.scheme}://{host}"


def curl(base: str, method: str, path: str, body: Any = None, *, keyed: bool = False) -> str:
    parts = ["curl", *([] if method == "GET" else ["-X", method]), shlex.quote(base + path)]
    if keyed:
        parts += ["-H", '"Authorization: Bearer $ORACULO_API_KEY"']
    if body is not None:
        text = strict_json.dumps(body).decode()
        parts += ["-H", "'Content-Type: application/json'", "-d", shlex.quote(text)]
    return " ".join(parts)


def cli(base: str, *words: str) -> str:
    where = "" if base == "http://127.0.0.1:8000" else f"ORACULO_URL={shlex.quote(base)} "
    safe = ["--", words[-1]] if words and words[-1].startswith("-") else [words[-1]]
    return where + " ".join(shlex.quote(word) for word in ("oraculo", *words[:-1], *safe))


def of_run(request: Request, correlation_id: str) -> dict[str, str]:
    base = base_url(request)
    keyed = asks_for_key(request.app.state.oraculo.settings)
    here = paths.orchestration(correlation_id)
    return {
        "curl": curl(base, "GET", here, keyed=keyed),
        "curl_stream": curl(base, "GET", f"{here}/stream", keyed=keyed),
        "cli": cli(base, "watch", correlation_id),
        "cli_show": cli(base, "show", correlation_id),
        "cli_replay": cli("http://127.0.0.1:8000", "replay", "--url", base, correlation_id),  # without: a local store
    }


def first(request: Request) -> dict[str, str]:
    """What to type when there is nothing yet."""
    base = base_url(request)
    keyed = asks_for_key(request.app.state.oraculo.settings)
    return {
        "curl": curl(base, "POST", paths.ORCHESTRATIONS, EXAMPLE, keyed=keyed),
        "workers": cli(base, "worker", "oraculo.collectors.all:worker"),
    }
