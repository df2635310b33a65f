"""The executor `relatorio`: what was collected, as a PDF and an HTML file."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from anyascii import anyascii

from oraculo.adapters.clock import MonotonicClock
from oraculo.collectors import parameters
from oraculo.collectors.feeds import setting
from oraculo.collectors.report import build
from oraculo.collectors.report_html import render_html
from oraculo.collectors.report_pdf import render_pdf
from oraculo.errors import WorkError

_UNSAFE = re.compile(r"[^a-z0-9]+")


def relatorio(
    dados: list[dict[str, Any]], parametros: dict[str, Any], correlation_id: str | None = None
) -> dict[str, Any]:
    """Write `relatorio.pdf` and `relatorio.html`, and say where they are.

    `dados` is what an executor receives: `[{"fonte", "status", "dados"}, …]`. A source whose status is not
    `concluida`, or that has no data, is named in the report as missing. Parameters, all optional: `titulo`; `periodo`
    (shown as it is given; otherwise the first and last dates); `idioma`, `pt` (the default) or `en`; `destino`, a
    relative path below the root of the reports; `nome`, which becomes a directory of its own for this report.

    The root is `ORACULO_RELATORIOS`, or `relatorios` where the worker runs; nothing is ever written outside it.
    Without `nome` or `destino` the directory is named after the `correlation_id`, so that orchestrations do not replace
    each other's reports; a call without any of the three writes in the root itself. Files appear whole or not at all,
    and the same input writes the same report but for the instant that it was made at, so a retry is harmless.
    """
    report = build(dados, parametros, MonotonicClock().now(), correlation_id)
    page, document = render_html(report).encode(), render_pdf(report)
    directory = _directory(parametros, correlation_id)
    html, pdf = directory / "relatorio.html", directory / "relatorio.pdf"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(html, page)
        _write(pdf, document)
    except OSError as error:
        raise WorkError(f"não foi possível gravar o relatório em {directory}: {error}", codigo="disco") from error
    return {
        "resultado": "ok",
        "arquivo": str(pdf),
        "arquivos": [str(pdf), str(html)],
        "itens": report.total,
        "fontes": len(report.sources),
        "fontes_ausentes": [source.key for source in report.missing],
    }


def _directory(parametros: Mapping[str, Any], correlation_id: str | None) -> Path:
    """Where to write: below the root whatever the parameters say, symbolic links included."""
    root = Path(setting("ORACULO_RELATORIOS")).expanduser().resolve()
    directory = root
    destination = parameters.text(parametros, "destino")
    if destination is not None:
        directory /= _relative(destination)
    name = parameters.text(parametros, "nome")
    if name is not None:
        directory /= _slug(name)
    elif destination is None and correlation_id:
        directory /= _unique(correlation_id)
    try:
        resolved = directory.resolve()
    except (OSError, RuntimeError) as error:
        raise parameters.invalid(f"'destino' não é um caminho utilizável: {error}") from error
    if not resolved.is_relative_to(root):
        raise parameters.invalid("'destino' deve ficar dentro do diretório de relatórios")
    return resolved


def _relative(destination: str) -> PurePosixPath:
    path = PurePosixPath(destination.replace("\\", "/"))
    unusable = path.is_absolute() or PureWindowsPath(destination).anchor or ".." in path.parts
    if unusable or not destination.isprintable() or any(len(part.encode()) > 200 for part in path.parts):
        raise parameters.invalid("'destino' deve ser um caminho relativo, sem '..', dentro do diretório de relatórios")
    return path


def _slug(name: str) -> str:
    slug = _UNSAFE.sub("-", anyascii(name).lower()).strip("-")[:80].strip("-")
    if not slug:
        raise parameters.invalid("'nome' deve ter ao menos uma letra ou algarismo")
    return slug


def _unique(correlation_id: str) -> str:
    """The id itself when it can name a directory; otherwise a likeness that no other id has."""
    slug = _UNSAFE.sub("-", anyascii(correlation_id).lower()).strip("-")[:80]
    if slug == correlation_id:
        return slug
    return f"{slug}-{hashlib.sha256(correlation_id.encode(errors='replace')).hexdigest()[:12]}".lstrip("-")


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner reads: reports hold what was collected."""
    return os.open(path, flags, 0o600)


def _write(path: Path, content: bytes) -> None:
    """Replace the file in one step, so that a reader never sees half of it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb", opener=_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
