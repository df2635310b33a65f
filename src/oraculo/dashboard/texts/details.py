"""Details of dead letters in Portuguese. They are kept in English, one sentence for each cause; what is no sentence of
ours is shown as it was written."""

from __future__ import annotations

import re

_SENTENCES = (  # what is kept, what a reader of Portuguese sees
    (r"no orchestration has the correlation_id (.+)", r"nenhuma orquestração tem o correlation_id \1"),
    (
        r"the orchestration has no ticket that this answer could belong to",
        r"a orquestração não tem ticket a que esta resposta possa pertencer",
    ),
    (
        r"more than one ticket could have given this answer; echo ticket_id to tell them apart",
        r"mais de um ticket poderia ter dado esta resposta; devolva o ticket_id para distingui-los",
    ),
    (r"the answer is for an attempt that was never made", r"a resposta é de uma tentativa que nunca houve"),
    (
        r"the orchestration has ended, and its result is final: start it anew",
        r"a orquestração terminou, e seu resultado é definitivo: comece-a de novo",
    ),
    (
        r"the end of this ticket was counted already, or it did not fail: start the run anew",
        r"o fim deste ticket já foi contado, ou ele não falhou: comece a execução de novo",
    ),
    (
        r"the ticket holds as many answers that disagree as it may, and this is another one",
        r"o ticket já guarda todas as respostas conflitantes que pode; esta é mais uma",
    ),
    (r"no answer from (.+) in (\S+) s \(attempt (\d+)\)", r"sem resposta de \1 em \2 s (tentativa \3)"),
    (
        r"somebody put it into the dead-letter queue without saying why",
        r"alguém a pôs na fila de mensagens mortas sem dizer por quê",
    ),
    (r"the broker moved it here: (.+)", r"o broker a trouxe para cá: \1"),
    (r"missing: (.+)", r"falta: \1"),
)
_PATTERNS = tuple((re.compile(kept), shown) for kept, shown in _SENTENCES)


def detail_in(language: str, detail: str) -> str:
    """The detail of a dead letter as a reader of this language sees it."""
    if language == "pt-BR":
        for kept, shown in _PATTERNS:
            if kept.fullmatch(detail):
                return kept.sub(shown, detail)
    return detail
