"""What the commands about tickets of Fluxo C and about retention say, in English and in Portuguese."""

from __future__ import annotations

TICKET_TEXTS: dict[str, tuple[str, str]] = {
    "tickets": ("Tickets of Fluxo C.", "Tickets do Fluxo C."),
    "tickets.ls": ("List tickets, those of the newest plan first.", "Lista tickets, os do plano mais novo primeiro."),
    "tickets.submit": ("Start a ticket that comes alone.", "Inicia um ticket que vem sozinho."),
    "tickets.status": ("Tell how a ticket stands, as its worker.", "Diz como está um ticket, como seu worker."),
    "tickets.compensate": ("Compensate a ticket that was begun.", "Compensa um ticket que começou."),
    "tickets.token": ("The token of a ticket, for its answer.", "O token de um ticket, para sua resposta."),
    "o.ticket-plan": ("Only those of this plan.", "Só os deste plano."),
    "o.ticket-intent": ("Only those of this intent.", "Só os desta intenção."),
    "o.ticket-filter": ("Only PENDING, RUNNING, COMPLETED, …", "Só PENDING, RUNNING, COMPLETED, …"),
    "o.ticket-offset": ("Leave out the first so many.", "Deixa de fora os tantos primeiros."),
    "o.ticket-cursor": ("Go on behind a page.", "Continua depois de uma página."),
    "o.ticket-file": ("An ExecutionTicket in JSON or YAML.", "Um ExecutionTicket em JSON ou YAML."),
    "o.ticket-status": ("RUNNING, COMPLETED or FAILED.", "RUNNING, COMPLETED ou FAILED."),
    "o.ticket-error": ("Why it failed.", "Por que falhou."),
    "o.ticket-duration": ("How long the work took.", "Quanto o trabalho durou."),
    "o.ticket-token": ("The token of the ticket.", "O token do ticket."),
    "o.ticket-reason": ("Why it is compensated.", "Por que é compensado."),
    "o.ticket-action": ("What the worker is to do.", "O que o worker deve fazer."),
    "o.ticket-param": ("A parameter for it; may be repeated.", "Um parâmetro para isso; pode repetir."),
    "retention": ("What ended runs are forgotten by themselves.", "Que execuções encerradas são esquecidas por si."),
    "retention.status": (
        "The rules, the archive, and how many runs are older than they are kept.",
        "As regras, o arquivo e quantas execuções são mais velhas do que o que se guarda.",
    ),
    "retention.run": ("Forget now what the rules say.", "Esquece agora o que as regras dizem."),
    "o.retention-dry": ("Only count.", "Só conta."),
    "retention-off": (
        "ORACULO_RETENTION is empty: nothing is forgotten",
        "ORACULO_RETENTION está vazia: nada se esquece",
    ),
    "retention-rules": ("rules: {rules}; archive: {archive}", "regras: {rules}; arquivo: {archive}"),
    "confirm-retention": (
        "Forget in {store} what is older than {rules}?",
        "Esquecer em {store} o que passa de {rules}?",
    ),
    "column.idade": ("age", "idade"),
    "column.quantas": ("runs", "quantas"),
    "none.due": ("nothing is due", "nada a esquecer"),
    "none.tickets": ("no tickets", "nenhum ticket"),
}
