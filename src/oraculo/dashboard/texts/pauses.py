"""What the pages say about pauses and breakers, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "bulk.pause": ("Pause", "Pausar"),
    "bulk.resume": ("Resume", "Retomar"),
    "runs.paused": ("paused", "pausada"),
    "confirm.pause": ("Pause", "Pausar"),
    "confirm.resume": ("Resume", "Retomar"),
    "confirm.pause_runs": ("This will pause {n} orchestrations", "Isto vai pausar {n} orquestrações"),
    "confirm.pause_runs.one": ("This will pause 1 orchestration", "Isto vai pausar 1 orquestração"),
    "confirm.pause_none": (
        "Nothing chosen can be paused: it has ended, or is paused already",
        "Nada do que foi escolhido pode ser pausado: já terminou, ou já está pausado",
    ),
    "confirm.pause_yes": ("Pause {n}", "Pausar {n}"),
    "confirm.resume_runs": ("This will let {n} orchestrations go on", "Isto vai retomar {n} orquestrações"),
    "confirm.resume_runs.one": ("This will let 1 orchestration go on", "Isto vai retomar 1 orquestração"),
    "confirm.resume_none": ("Nothing chosen is paused", "Nada do que foi escolhido está pausado"),
    "confirm.resume_yes": ("Resume {n}", "Retomar {n}"),
    "flash.paused": ("{n} paused.", "{n} pausadas."),
    "flash.paused.one": ("1 paused.", "1 pausada."),
    "flash.resumed": ("{n} go on.", "{n} seguem."),
    "flash.resumed.one": ("1 goes on.", "1 segue."),
    "pauses.title": ("Paused destinations", "Destinos pausados"),
    "pauses.queue": ("Pause a destination (empty: all)", "Pausar um destino (vazio: todos)"),
    "pauses.everything": ("everything", "tudo"),
    "pauses.by": ("By", "Por"),
    "pauses.since": ("Since", "Desde"),
    "pauses.reason": ("Why", "Por quê"),
    "js.why.paused": (
        "Paused since {since}: nothing goes out, and deadlines stand still.",
        "Pausada desde {since}: nada sai, e os prazos estão parados.",
    ),
    "js.why.paused.by": (
        "Paused by {by} since {since}: nothing goes out, and deadlines stand still.",
        "Pausada por {by} desde {since}: nada sai, e os prazos estão parados.",
    ),
    "js.why.paused.because": (
        "Paused since {since} because: {reason}. Nothing goes out, and deadlines stand still.",
        "Pausada desde {since} porque: {reason}. Nada sai, e os prazos estão parados.",
    ),
    "js.why.paused.by.because": (
        "Paused by {by} since {since} because: {reason}. Nothing goes out, and deadlines stand still.",
        "Pausada por {by} desde {since} porque: {reason}. Nada sai, e os prazos estão parados.",
    ),
    "js.ev.N": ("Priority {n}", "Prioridade {n}"),
    "js.ev.N.because": ("Priority {n}: {reason}", "Prioridade {n}: {reason}"),
    "js.ev.z.paused": ("Paused", "Pausada"),
    "js.ev.z.paused.because": ("Paused: {reason}", "Pausada: {reason}"),
    "js.ev.z.resumed": ("Goes on", "Segue"),
    "js.ev.z.resumed.because": ("Goes on: {reason}", "Segue: {reason}"),
    "js.status.paused": ("paused", "pausada"),
    "breakers.title": ("Open breakers", "Disjuntores abertos"),
    "breakers.note": (
        "These destinations failed again and again: their orders wait until a probe is answered",
        "Estes destinos falharam repetidamente: suas ordens esperam até que uma sonda seja respondida",
    ),
    "breakers.failures": ("Failures in a row", "Falhas seguidas"),
    "breakers.next": ("Next probe", "Próxima sonda"),
    "breakers.out": ("out now", "em curso"),
    "breakers.probe": ("Probe now", "Sondar agora"),
}
EN = {key: texts[0] for key, texts in _TEXTS.items()}
PT = {key: texts[1] for key, texts in _TEXTS.items()}
