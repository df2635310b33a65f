"""Plans to begin with, for the editor: one for each usual shape, in the words of the reader's language."""

from __future__ import annotations

from functools import cache

from oraculo.plans.source.source_reader import SourceFormat, read_text
from oraculo.plans.source.yaml_writer import to_yaml
from oraculo.plans.words import Words
from oraculo.plans.writer import write

_TEMPLATES = {  # key of its name → YAML
    "report": """
tarefas:
  videos: {fonte: youtube, parametros: {canal: x}}
  artigos: {fonte: blog, opcional: true, max_tentativas: 2}
  relatorio: {executador: relatorio, depende: [videos, artigos]}
""",
    "map": """
entrada: {canal: x}
tarefas:
  lista: {fonte: youtube, parametros: {canal: "${{ entrada.canal }}"}}
  resumos:
    para_cada: ${{ lista.dados }}
    ao_mesmo_tempo: 20
    faz: {executador: resumo, parametros: {item: "${{ item }}", n: "${{ indice }}"}, max_tentativas: 3}
saida: ${{ resumos.resultados }}
""",
    "condition": """
entrada: {valor: 120}
tarefas:
  pedido: {fonte: pedido, parametros: {valor: "${{ entrada.valor }}"}}
  grande: {executador: analise, quando: "${{ entrada.valor > 100 }}", depende: [pedido]}
  pequeno: {executador: aceite, quando: "${{ entrada.valor <= 100 }}", depende: [pedido]}
  fim: {executador: aviso, depende: [grande, pequeno]}
""",
    "approval": """
entrada: {valor: 120}
tarefas:
  proposta: {executador: proposta, parametros: {valor: "${{ entrada.valor }}"}}
  ok:
    espera: {aprovacao: {pergunta: "pagar ${{ entrada.valor }}?", papeis: [aprovador]}, timeout_s: 86400}
    depende: [proposta]
  pagamento: {executador: pagamento, depende: [ok], parametros: {valor: "${{ entrada.valor }}"}}
""",
    "saga": """
tarefas:
  voo: {executador: voo, desfaz: {executador: cancela_voo, parametros: {id: "${{ feito.id }}"}}}
  hotel: {executador: hotel, depende: [voo], desfaz: {executador: cancela_hotel, parametros: {id: "${{ feito.id }}"}}}
  pagamento: {executador: pagamento, depende: [hotel]}
""",
    "polling": """
tarefas:
  exporta: {executador: exporta}
  pronto:
    repete:
      faz: {fonte: estado, parametros: {id: "${{ exporta.resultado.id }}"}}
      pare_quando: ${{ pronto.resultado.fim }}
      no_maximo: 120
      pausa_s: 30
  baixa: {executador: baixa, depende: [pronto]}
timeout_s: 7200
""",
    "child": """
tarefas:
  paginas:
    para_cada: [1, 2, 3]
    ao_mesmo_tempo: 2
    faz:
      filha:
        entrada: {n: "${{ item }}"}
        tarefas:
          baixa: {fonte: site, parametros: {n: "${{ entrada.n }}"}}
          texto: {executador: texto, depende: [baixa]}
        saida: ${{ texto.resultado }}
saida: ${{ paginas.resultados }}
""",
}
NAMES = tuple(_TEMPLATES)


@cache
def plan_templates(words: Words) -> dict[str, str]:
    """The YAML text of each template in one of the vocabularies."""
    found: dict[str, str] = {}
    for name, text in _TEMPLATES.items():
        request = read_text(text.encode(), SourceFormat.YAML).request
        assert request is not None, f"the template {name} has faults"
        found[name] = to_yaml(write(request, words))
    return found
