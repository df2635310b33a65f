"""What the commands about workers say, in English and in Portuguese."""

from __future__ import annotations

WORKER_TEXTS: dict[str, tuple[str, str]] = {
    "workers": (
        "Who works, on what, since when, how busy, and its last error; with a name, all about one that registered.",
        "Quem trabalha, em quê, desde quando, com que carga, e seu último erro; com um nome, tudo de um registrado.",
    ),
    "drain": (
        "Give a registered worker nothing more; it finishes what it has.",
        "Não dá mais nada a um worker registrado; ele termina o que tem.",
    ),
    "undrain": ("Let a drained worker work again.", "Deixa um worker drenado trabalhar de novo."),
    "o.worker-name": ("The worker that registered.", "O worker que se registrou."),
    "o.worker-one": ("A worker that registered; without it, all.", "Um worker que se registrou; sem ele, todos."),
    "o.capability": ("Only with this capability; may be repeated.", "Só com esta capacidade; pode repetir."),
    "o.worker-queue": ("Only those that take from this queue.", "Só os que pegam desta fila."),
    "o.situation": (
        "Only visto, ativo, degradado, doente, drenando or perdido.",
        "Só visto, ativo, degradado, doente, drenando ou perdido.",
    ),
    "o.worker-limit": ("The best so many of those that registered.", "Os tantos melhores dos que se registraram."),
    "why": (
        "Say why an orchestration, or one of its tickets, is as it is.",
        "Diz por que uma orquestração, ou um de seus tickets, está como está.",
    ),
    "o.why-ticket": (
        "Only what is about this ticket: its id, or the name of its task.",
        "Só o que trata deste ticket: seu id, ou o nome de sua tarefa.",
    ),
    "why-more": ("… {n} more open tickets", "… mais {n} tickets abertos"),
    "allocated": (
        "{ticket} attempt {n} → {worker} (score {score}, urgency {priority}): {how}",
        "{ticket} tentativa {n} → {worker} (nota {score}, urgência {priority}): {how}",
    ),
    "allocated-more": ("and {n} more; all that were not chosen: {counts}", "e mais {n}; todos os preteridos: {counts}"),
    "allocated-left": ("… {n} more choices: --json", "… mais {n} escolhas: --json"),
    "worker.visto": ("seen", "visto"),
    "worker.ativo": ("active", "ativo"),
    "worker.degradado": ("degraded", "degradado"),
    "worker.doente": ("unhealthy", "doente"),
    "worker.drenando": ("draining", "drenando"),
    "worker.perdido": ("lost", "perdido"),
    "worker.failures": ("failed", "com falha"),
    "column.situacao": ("state", "situação"),
    "column.falhas": ("failed", "falhas"),
    "column.ultimo_erro": ("last error", "último erro"),
    "column.capacidades": ("capabilities", "capacidades"),
    "column.recursos": ("resources", "recursos"),
    "column.versao": ("version", "versão"),
    "column.host": ("host", "host"),
    "column.registrado_em": ("registered", "registrado em"),
    "column.expira_em": ("lost if silent until", "perdido se calado até"),
    "column.drenagem": ("drained by", "drenado por"),
    "column.progresso": ("progress", "progresso"),
}
