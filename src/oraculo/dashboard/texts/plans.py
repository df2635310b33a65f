"""What the pages say about plans: the editor and the picture, in both languages."""

from __future__ import annotations

_TEXTS = {  # key → English, Portuguese
    "new.editor": ("JSON or YAML", "JSON ou YAML"),
    "new.template": ("Template", "Modelo"),
    "new.template.report": ("several sources, one report", "várias fontes, um relatório"),
    "new.template.map": ("the same for each item of a list", "o mesmo para cada item de uma lista"),
    "new.template.condition": ("one way or the other", "um caminho ou o outro"),
    "new.template.approval": ("approve before paying", "aprovar antes de pagar"),
    "new.template.saga": ("undo what was done", "desfazer o que foi feito"),
    "new.template.polling": ("ask again until it is done", "perguntar até ficar pronto"),
    "new.template.child": ("a plan for each item", "um plano para cada item"),
    "new.line": ("line {line}, column {column}", "linha {line}, coluna {column}"),
    "js.waits": ("waiting", "aguardando"),
    "js.zoom": ("Size of the picture", "Tamanho do desenho"),
    "js.zoom.in": ("Enlarge", "Ampliar"),
    "js.zoom.out": ("Reduce", "Reduzir"),
    "js.zoom.fit": ("Fit", "Ajustar"),
    "js.zoom.whole": ("100%", "100%"),
}
EN = {key: english for key, (english, _) in _TEXTS.items()}
PT = {key: portuguese for key, (_, portuguese) in _TEXTS.items()}
