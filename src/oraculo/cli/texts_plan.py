"""What `oraculo plan` says, in English and in Portuguese."""

from __future__ import annotations

PLAN_TEXTS: dict[str, tuple[str, str]] = {
    "plan": ("Plans of any shape in files.", "Planos de qualquer forma em arquivos."),
    "plan.check": (
        "Check a plan: every fault at once, each with its line and column. Exit status 1 when there is one.",
        "Confere um plano: todas as falhas de uma vez, cada uma com linha e coluna. Código 1 quando há alguma.",
    ),
    "plan.show": (
        "Draw a plan: its tasks, and what each of them needs.",
        "Desenha um plano: suas tarefas, e o que cada uma precisa.",
    ),
    "plan.convert": (
        "Write a plan in another format, or in the words of the other language.",
        "Escreve um plano em outro formato, ou nas palavras da outra língua.",
    ),
    "o.mermaid": ("A Mermaid flowchart on standard output.", "Um fluxograma Mermaid na saída padrão."),
    "o.plan-to": (
        "Format (default: by the name of --output, or as it is).",
        "Formato (padrão: pelo nome de --output, ou como está).",
    ),
    "o.plan-words": ("Language of the words (default: as they are).", "Língua das palavras (padrão: como estão)."),
    "o.plan-output": ("File to write to (default: standard output).", "Arquivo onde escrever (padrão: saída padrão)."),
    "o.plan-file": (
        "A plan in JSON, YAML or Python (.json, .yaml, .yml, .py, which is run), or - for standard input.",
        "Um plano em JSON, YAML ou Python (.json, .yaml, .yml, .py, que é executado), ou - para a entrada padrão.",
    ),
    "plan-ok": ("{file}: in order", "{file}: em ordem"),
    "plan-fault": ("{file}: 1 fault", "{file}: 1 falha"),
    "plan-faults": ("{file}: {count} faults", "{file}: {count} falhas"),
    "plan-more": ("{count} more faults are not shown", "mais {count} falhas não são mostradas"),
    "warning": ("warning", "aviso"),
    "stages.mapa": ("maps", "mapas"),
    "stages.repete": ("loops", "repetições"),
    "stages.espera": ("waits", "esperas"),
    "stages.filha": ("children", "filhas"),
    "parent": ("child of", "filha de"),
    "merges": ("merged requests", "requisições juntadas"),
    "merged": ("merged into the run of an equal request", "juntada à execução de uma requisição igual"),
    "rounds": (": {total} rounds, {concluidos} done", ": {total} rodadas, {concluidos} feitas"),
    "items": (
        ": {concluidos} of {total} items done, {falhas} failed",
        ": {concluidos} de {total} itens feitos, {falhas} com falha",
    ),
}
