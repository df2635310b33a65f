"""What the page of a run says beside its events, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "run.tabs": ("Parts of this page", "Partes desta página"),
    "tab.picture": ("Graph and times", "Grafo e tempos"),
    "tab.attempts": ("Attempts", "Tentativas"),
    "tab.events": ("Events", "Eventos"),
    "tab.why": ("Why", "Por quê"),
    "why.ticket": ("Why it is as it is", "Por que está como está"),
    "why.open": ("What waits, and for what", "O que espera, e por quê"),
    "why.open_more": ("and {n} more open tickets", "e mais {n} tickets abertos"),
    "why.decisions": ("Decisions", "Decisões"),
    "why.note": (
        "Read from the journal, oldest first: who got what and why not others, which policies, what was predicted and "
        "what came.",
        "Lidas do diário, da mais antiga à mais nova: quem recebeu o quê e por que não outros, quais políticas, o que "
        "se previu e o que veio.",
    ),
    "why.more": ("Go on", "Continuar"),
    "why.when": ("When", "Quando"),
    "why.what": ("Decision", "Decisão"),
    "tab.data": ("Data", "Dados"),
    "copy.link": ("Link to what is shown", "Link para o que se vê"),
    "run.gantt": ("Timeline", "Linha do tempo"),
    "gantt.key.owed": ("to the broker", "rumo ao broker"),
    "gantt.key.queued": ("in its queue", "na fila"),
    "gantt.key.sent": ("with a worker", "com um worker"),
    "gantt.key.untold": ("either: the worker does not say", "um ou outro: o worker não diz"),
    "gantt.key.held": ("for a person, a signal or a time", "por uma pessoa, um sinal ou uma hora"),
    "gantt.key.backoff": ("until the next attempt", "até a próxima tentativa"),
    "attempts.title": ("Attempts side by side", "Tentativas lado a lado"),
    "attempts.note": (
        "Tickets that failed or were tried again; click one for its errors in full.",
        "Tickets com falha ou repetidos; clique em um para ver os erros inteiros.",
    ),
    "js.attempts.none": ("Nothing failed and nothing was tried again.", "Nada falhou e nada foi repetido."),
    "js.attempts.more": ("and {n} more: the timeline lists all", "e mais {n}: a linha do tempo lista todos"),
    "js.col.ticket": ("Ticket", "Ticket"),
    "js.outcome.ended": ("{status} in {took}", "{status} em {took}"),
    "js.outcome.failed": ("{n} of {total} tickets failed", "{n} de {total} tickets falharam"),
    "js.outcome.first": ("First error", "Primeiro erro"),
    "js.outcome.all": ("Show all {n}", "Mostrar todos os {n}"),
    "js.map": ("Where in the graph", "Onde no grafo"),
    "ticket.side_by_side": ("What went wrong, attempt by attempt", "O que deu errado, tentativa por tentativa"),
    "ticket.attempt": ("Attempt {n}", "Tentativa {n}"),
    "ticket.no_answer": ("No answer came in time.", "Nenhuma resposta chegou a tempo."),
    "ticket.stack": ("Stack", "Pilha"),
    "ticket.log": ("Log ({n} lines)", "Log ({n} linhas)"),
    "ticket.log.one": ("Log (1 line)", "Log (1 linha)"),
    "ticket.retry_from": ("Retry from here", "Repetir daqui"),
    "confirm.retry_task": (
        "The task {task} and all that depends on it are done again; the rest is taken over.",
        "A tarefa {task} e tudo que depende dela são feitos de novo; o resto é aproveitado.",
    ),
    "flash.retry_refused": ("It could not be started again: {why}", "Não pôde ser iniciada de novo: {why}"),
}
EN = {key: english for key, (english, _) in _TEXTS.items()}
PT = {key: portuguese for key, (_, portuguese) in _TEXTS.items()}
