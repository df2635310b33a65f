"""How a worker was chosen and why others were not, in words."""

from __future__ import annotations

from oraculo.core.allocations import AllocationMethod, NotChosen
from oraculo.core.sentences import Language

METHODS: dict[AllocationMethod, dict[Language, str]] = {
    AllocationMethod.BEST: {"en": "best score", "pt": "melhor nota"},
    AllocationMethod.TWO_DRAWN: {
        "en": "near-equal ones: of two drawn, the one with less to do",
        "pt": "quase iguais: de dois sorteados, o que tem menos a fazer",
    },
    AllocationMethod.ONLY: {"en": "the only one that asked and fits", "pt": "o único que pediu e serve"},
    AllocationMethod.TURN: {"en": "it was passed over for long enough", "pt": "já foi preterido por tempo demais"},
    AllocationMethod.OVERDUE: {
        "en": "faster ones did not come in time",
        "pt": "os mais rápidos não vieram a tempo",
    },
}
REASONS: dict[NotChosen, dict[Language, str]] = {
    NotChosen.CAPABILITIES: {"en": "it lacks a capability", "pt": "falta-lhe uma capacidade"},
    NotChosen.SECURITY: {"en": "its security level is too low", "pt": "seu nível de segurança é baixo demais"},
    NotChosen.UNHEALTHY: {"en": "most of what it does fails", "pt": "quase tudo o que faz falha"},
    NotChosen.NO_ROOM: {"en": "it has no room", "pt": "não tem vaga"},
    NotChosen.RESOURCES: {"en": "not enough resources are left", "pt": "não lhe restam recursos"},
    NotChosen.DRAINED: {"en": "it is drained", "pt": "está drenado"},
    NotChosen.POLICY: {"en": "a policy refused it", "pt": "uma política o recusou"},
    NotChosen.SLOWER: {"en": "others would be done sooner", "pt": "outros terminariam antes"},
    NotChosen.LOWER_SCORE: {"en": "its score is lower", "pt": "sua nota é menor"},
    NotChosen.NOT_ASKING: {"en": "it did not ask", "pt": "não pediu"},
}


def method_said(method: str, language: Language) -> str:
    return METHODS[AllocationMethod(method)][language]


def reason_said(reason: str, language: Language) -> str:
    return REASONS[NotChosen(reason)][language]
