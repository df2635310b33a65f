"""What the pages say about policies, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "js.ev.P.plano": ("The policies are asked about the plan", "As políticas são consultadas sobre o plano"),
    "js.ev.P.ticket": ("{what}: the policies are asked", "{what}: as políticas são consultadas"),
    "js.ev.V": (
        "The policies ({version}) allow: {point}, {n} asked about",
        "As políticas ({version}) permitem: {point}, {n} consultados",
    ),
    "js.ev.V.said": (
        "The policies ({version}) allow {point}: {said}",
        "As políticas ({version}) permitem {point}: {said}",
    ),
    "js.ev.V.refused": (
        "The policies ({version}) refuse {refused} of {n} ({point}): {said}",
        "As políticas ({version}) recusam {refused} de {n} ({point}): {said}",
    ),
    "js.ev.A": (
        "{what} answered (attempt {n}); the policies are asked",
        "{what} respondeu (tentativa {n}); as políticas são consultadas",
    ),
    "js.point.plano": ("plan", "plano"),
    "js.point.ticket": ("release", "liberação"),
    "js.point.alocacao": ("allocation", "alocação"),
    "js.point.resultado": ("result", "resultado"),
    "js.why.judged": ("a verdict of the policies on {names} ({n})", "o parecer das políticas sobre {names} ({n})"),
}
EN = {key: texts[0] for key, texts in _TEXTS.items()}
PT = {key: texts[1] for key, texts in _TEXTS.items()}
