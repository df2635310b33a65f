"""What `oraculo signal`, `approve` and `reject` say, in English and in Portuguese."""

from __future__ import annotations

WAIT_TEXTS: dict[str, tuple[str, str]] = {
    "signal": (
        "Send a signal to a run; it is kept when no task waits for it yet.",
        "Envia um sinal a uma orquestração; fica guardado quando nenhuma tarefa o espera ainda.",
    ),
    "approve": (
        "Approve a task, or a plan of Fluxo C, that waits for a human.",
        "Aprova uma tarefa, ou um plano do Fluxo C, que espera por uma pessoa.",
    ),
    "reject": (
        "Refuse a task, or a plan of Fluxo C, that waits for a human.",
        "Recusa uma tarefa, ou um plano do Fluxo C, que espera por uma pessoa.",
    ),
    "o.por": ("Who decides (default: your name on this machine).", "Quem decide (padrão: seu nome nesta máquina)."),
    "o.decided-task": ("The task, where several wait.", "A tarefa, quando várias esperam."),
    "o.signal-name": ("The name of the signal.", "O nome do sinal."),
    "o.signal-data": ("What comes with it, as JSON (default: null).", "O que vem com ele, em JSON (padrão: null)."),
    "o.signal-key": (
        "The same key again is the same signal.",
        "A mesma chave outra vez é o mesmo sinal.",
    ),
    "signal-kept": ("kept {name}: no task waits for it yet", "guardou {name}: nenhuma tarefa o espera ainda"),
    "signal-taken": ("took {name}: {task}", "recebeu {name}: {task}"),
    "signal-not-json": ("not JSON: {error}", "não é JSON: {error}"),
    "approved": ("approved", "aprovada"),
    "refused": ("refused", "recusada"),
    "not-waiting": ("does not wait for a decision: {status}", "não espera por uma decisão: {status}"),
    "o.undo": (
        "undo what was done, as far as the plan says how",
        "desfazer o que foi feito, até onde o plano diz como",
    ),
    "column.desfecho": ("ends as", "termina como"),
    "undoing": ("undoing", "desfazendo"),
    "priority": ("(priority {n})", "(prioridade {n})"),
}
