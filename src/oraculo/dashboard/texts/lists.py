"""What the list of orchestrations says, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "views": ("Views", "Visões"),
    "views.all": ("All", "Todas"),
    "views.open": ("Open", "Abertas"),
    "views.failed": ("Failed in 24 h", "Falhas em 24 h"),
    "views.paused": ("Paused", "Pausadas"),
    "js.views.save": ("Save this view", "Salvar esta visão"),
    "js.views.name": ("Name of the view", "Nome da visão"),
    "js.views.forget": ("Forget the view {name}", "Esquecer a visão {name}"),
    "js.save": ("Save", "Salvar"),
    "col.uses": ("Type and queues", "Tipo e filas"),
    "sort.note": ("Sorts the rows of this page", "Ordena as linhas desta página"),
    "filter.age": ("Began", "Início"),
    "filter.any_time": ("any time", "qualquer hora"),
    "filter.age.1h": ("in the last hour", "na última hora"),
    "filter.age.24h": ("in the last 24 hours", "nas últimas 24 horas"),
    "filter.age.7d": ("in the last 7 days", "nos últimos 7 dias"),
    "filter.age.30d": ("in the last 30 days", "nos últimos 30 dias"),
    "filter.since": ("From (UTC)", "De (UTC)"),
    "filter.until": ("To (UTC)", "Até (UTC)"),
    "js.filter.local": ("your time", "sua hora"),
}
EN = {key: english for key, (english, _) in _TEXTS.items()}
PT = {key: portuguese for key, (_, portuguese) in _TEXTS.items()}
