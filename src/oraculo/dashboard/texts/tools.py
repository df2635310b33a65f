"""What the palette, pages of queues and the lists of users say, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "palette.title": ("Go to or do", "Ir ou fazer"),
    "palette.hint": ("Page, action, or how an id begins", "Página, ação, ou o começo de um id"),
    "js.palette.find": ("Find “{text}” among orchestrations", "Procurar “{text}” nas orquestrações"),
    "queue.purge": ("Cancel runs that use it", "Cancelar as que a usam"),
    "queue.paused": ("Paused by {by}", "Pausada por {by}"),
    "queue.rates": ("Per second", "Por segundo"),
    "queue.up_to": ("up to {n}", "até {n}"),
    "queue.peek": ("Sent and not answered", "Enviados e não respondidos"),
    "queue.peek_note": (
        "As the journal knows it, from the newest open runs; nothing is taken out of the queue.",
        "Como o diário sabe, das orquestrações abertas mais novas; nada sai da fila.",
    ),
    "queue.attempt": ("Attempt", "Tentativa"),
    "queue.empty": ("Nothing waits for an answer from this queue.", "Nada espera resposta desta fila."),
    "security.users": ("Users with a password", "Usuários com senha"),
    "security.user.on": ("may log in", "pode entrar"),
    "security.user.off": ("disabled", "desativado"),
    "security.sessions": ("Open sessions", "Sessões abertas"),
    "security.sessions_note": (
        "Browsers that are logged in; those of ORACULO_API_KEY are signed cookies and in no list.",
        "Navegadores conectados; os de ORACULO_API_KEY são cookies assinados, fora de qualquer lista.",
    ),
    "security.no_sessions": ("None.", "Nenhuma."),
    "security.how": ("How", "Como"),
    "security.by.user": ("password", "senha"),
    "security.by.provider": ("identity provider", "provedor de identidade"),
    "security.by.key": ("key", "chave"),
}
EN = {key: english for key, (english, _) in _TEXTS.items()}
PT = {key: portuguese for key, (_, portuguese) in _TEXTS.items()}
