"""What `oraculo policy` says, in English and in Portuguese."""

from __future__ import annotations

POLICY_TEXTS: dict[str, tuple[str, str]] = {
    "policy": ("Policies in Rego.", "Políticas em Rego."),
    "policy.status": (
        "Who evaluates the policies of a server, which they are, and what they refused lately.",
        "Quem avalia as políticas de um servidor, quais são, e o que recusaram por último.",
    ),
    "policy.check": (
        "Check a folder of policies: they compile, and use nothing that is not allowed.",
        "Confere uma pasta de políticas: compilam, e não usam nada que não seja permitido.",
    ),
    "policy.eval": (
        "Evaluate a package over an input and print its document. Exit status 1 when it does not allow.",
        "Avalia um pacote sobre uma entrada e mostra seu documento. Código 1 quando não permite.",
    ),
    "policy.test": (
        "Say what the policies would say of a plan and of each of its tickets. Exit status 1 when one is refused.",
        "Diz o que as políticas diriam de um plano e de cada ticket. Código 1 quando algum é recusado.",
    ),
    "o.policy-folder": ("Folder of policies (default: the shipped ones).", "Pasta de políticas (padrão: as inclusas)."),
    "o.policy-from": (
        "Folder of policies (default: as the settings say, else the shipped ones).",
        "Pasta de políticas (padrão: conforme as configurações, senão as inclusas).",
    ),
    "o.policy-input": (
        "The input, a JSON file, or - for standard input.",
        "A entrada, um arquivo JSON, ou - para a entrada padrão.",
    ),
    "o.policy-package": ("Package that is asked, like resource_limits.", "Pacote consultado, como resource_limits."),
    "policy-ok": ("in order, version {version}", "em ordem, versão {version}"),
    "policy-off": ("off", "desligadas"),
    "policy-engine": ("policies: {engine}, version {version}", "políticas: {engine}, versão {version}"),
    "none.policies": ("no policies are asked", "nenhuma política é consultada"),
    "column.pacotes": ("packages", "pacotes"),
    "column.ponto": ("point", "ponto"),
    "column.mensagem": ("message", "mensagem"),
    "column.permitido": ("allowed", "permitido"),
}
