"""What the pages say about workers that register, in both languages."""

from __future__ import annotations

from oraculo.core.allocation_words import METHODS, REASONS

_TEXTS = {  # key → English, Portuguese
    "js.ev.G": (
        "{what}: attempt {n} given to {worker} (score {score}: {how}). Not chosen: {others}",
        "{what}: tentativa {n} dada a {worker} (nota {score}: {how}). Preteridos: {others}",
    ),
    "js.ev.G.alone": (
        "{what}: attempt {n} given to {worker} (score {score}: {how})",
        "{what}: tentativa {n} dada a {worker} (nota {score}: {how})",
    ),
    "ticket.allocation": ("Why this worker", "Por que este worker"),
    "ticket.allocated": (
        "Attempt {n} went to {worker}: {how}. Urgency {priority}, {evaluated} looked at.",
        "A tentativa {n} foi para {worker}: {how}. Urgência {priority}, {evaluated} avaliados.",
    ),
    "col.candidate": ("Worker", "Worker"),
    "col.score": ("Score", "Nota"),
    "col.health": ("Health", "Saúde"),
    "col.success": ("Success", "Sucesso"),
    "col.speed": ("Speed", "Rapidez"),
    "col.room": ("Room", "Folga"),
    "col.affinity": ("Affinity", "Afinidade"),
    "col.why_not": ("Why not", "Por que não"),
    "workers.situation": ("State", "Situação"),
    "workers.since": ("Registered", "Registrado em"),
    "workers.doing": ("Doing now", "Fazendo agora"),
    "workers.error": ("Last error", "Último erro"),
    "workers.failed": ("{n} failed", "{n} com falha"),
    "workers.drain": ("Drain", "Drenar"),
    "workers.undrain": ("Let it work", "Deixar trabalhar"),
    "workers.more": ("and {n} more: oraculo workers lists all", "e mais {n}: oraculo workers lista todos"),
    "queues.trail": ("Trail", "Trilha"),
    "queues.trail_marks": (
        "fading marks: {ok} good, {warning} after a retry, {failed} failed",
        "marcas que se apagam: {ok} boas, {warning} após nova tentativa, {failed} falhas",
    ),
    "workers.is.visto": ("seen", "visto"),
    "workers.is.ativo": ("active", "ativo"),
    "workers.is.degradado": ("many failures", "muitas falhas"),
    "workers.is.doente": ("nearly all fails", "quase tudo falha"),
    "workers.is.drenando": ("draining", "drenando"),
    "workers.is.perdido": ("lost", "perdido"),
}
_TEXTS |= {f"js.method.{one}": (said["en"], said["pt"]) for one, said in METHODS.items()}
_TEXTS |= {f"js.notchosen.{one}": (said["en"], said["pt"]) for one, said in REASONS.items()}
EN = {key: english for key, (english, _) in _TEXTS.items()}
PT = {key: portuguese for key, (_, portuguese) in _TEXTS.items()}
