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
    "none.tickets": ("no tickets", "nenhum ticket"),
}
