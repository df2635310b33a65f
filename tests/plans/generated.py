"""Valid plans, one for each seed: every kind of task and every word, in Portuguese."""

from __future__ import annotations

import random
from typing import Any

TEXTS = [
    "",
    "x",
    "são paulo",
    "a: b",
    "- c",
    "#",
    "no",
    "null",
    "1e3",
    "0x1F",
    "2026-01-31",
    "linha\noutra",
    "  ",
    "'\"",
    "$${{ x }}",
    "🙂",
    "{a}",
    "~",
    "=",
    "\t",
]
NAMES = [
    "a",
    "data",
    "source",
    "tasks",
    "no",
    "yes",
    "b2",
    "_x",
    "Título".encode("ascii", "ignore").decode(),
    "videos",
    "top",
    "item2",
    "status",
    "result",
]


class PlanMaker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kinds: dict[str, str] = {}

    def plan(self, level: int = 1) -> dict[str, Any]:
        chance = self._random
        outer, self._kinds = self._kinds, {}
        names = chance.sample(NAMES, chance.randint(1, 7))
        tasks: dict[str, Any] = {}
        for name in names:
            task, kind = self._task(name, level)
            tasks[name] = task
            self._kinds[name] = kind
        plan: dict[str, Any] = {"tarefas": tasks}
        if chance.random() < 0.7:
            plan["entrada"] = self._value_map(2) or {"canal": "x"}
        if chance.random() < 0.7:
            plan["saida"] = self._value(2)
        if chance.random() < 0.3:
            plan["timeout_s"] = chance.choice([1, 60, 0.5, 86400])
        if chance.random() < 0.2:
            plan["rotulos"] = ["cliente:acme", "b"]
        if chance.random() < 0.2:
            plan["notificar"] = {"webhook": "https://example.com/x", "fila": "fila.x"}
        if level == 1 and chance.random() < 0.3:
            plan["correlation_id"] = "abc 123/é"
        if level == 1 and chance.random() < 0.3:
            plan["unica"] = chance.choice([{"modo": "aberta"}, {"modo": "janela", "janela_s": 5, "chave": "x"}])
        self._kinds = outer
        return {key: value for key, value in plan.items() if value is not None}

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _task(self, name: str, level: int) -> tuple[dict[str, Any], str]:
        chance = self._random
        kind = chance.choice(["fonte", "executador", "executador", "para_cada", "espera", "filha", "repete"])
        if level > 2 and kind == "filha":
            kind = "fonte"
        match kind:
            case "para_cada":
                item = chance.choice(["item", "um", "coisa"])
                task: dict[str, Any] = {"para_cada": self._list()}
                if item != "item":
                    task["como"] = item
                if chance.random() < 0.5:
                    task["ao_mesmo_tempo"] = chance.randint(1, 50_000)
                task["faz"] = self._body([item, f"{item}.x", "indice"], level, when=True)
            case "espera":
                task = {"espera": self._wait()}
            case "repete":
                own = [f"{name}.resultado", "indice"]
                loop = {
                    "faz": self._body(["indice"], level, when=False),
                    "pare_quando": "${{ " + chance.choice([f"{own[0]}.ok", "indice > 3", f"{name}.ok"]) + " }}",
                    "no_maximo": chance.randint(1, 10_000),
                }
                if chance.random() < 0.5:
                    loop["pausa_s"] = chance.choice([0, 0.5, 60])
                if chance.random() < 0.5:
                    loop["ao_esgotar"] = "segue"
                task = {"repete": loop}
            case _:
                task = self._call_or_child(kind, [], level)
        return {**task, **self._options(kind)}, kind

    def _call_or_child(self, kind: str, names: list[str], level: int) -> dict[str, Any]:
        if kind == "filha":
            return {"filha": self._child(names, level)}
        call: dict[str, Any] = {kind: self._random.choice(["youtube", "a-b.c", "x_1", "9"])}
        if params := self._value_map(2, names):
            call["parametros"] = params
        return call

    def _child(self, names: list[str], level: int) -> dict[str, Any]:
        match self._random.choice(["tipo", "coletas", "tarefas"]):
            case "tipo":
                return {"tipo": "semanal", "parametros": self._value_map(1, names)}
            case "coletas":
                call = {"fonte": "blog", "parametros": {"url": self._text(names)}, "timeout_s": 3}
                return {"coletas": [call, {"fonte": "rss"}], "fan_in": {"modo": "quorum", "minimo": 1}}
            case _:
                given = self._value_map(1, names)
                child = self.plan(level + 1)
                child.pop("entrada", None)
                return {**({"entrada": given} if given else {}), **child}

    def _body(self, names: list[str], level: int, *, when: bool) -> dict[str, Any]:
        kind = self._random.choice(["fonte", "executador", "filha" if level < 3 else "fonte"])
        body = self._call_or_child(kind, names, level)
        if when and self._random.random() < 0.3:
            body["quando"] = self._condition(names)
        if self._random.random() < 0.3:
            body["desfaz"] = {"executador": "apaga", "parametros": {"x": self._text([*names, "feito.x"])}}
        return body

    def _wait(self) -> dict[str, Any]:
        chance = self._random
        match chance.choice(["sinal", "aprovacao", "segundos", "ate"]):
            case "sinal":
                wait: dict[str, Any] = {"sinal": "revisao"}
                if chance.random() < 0.5:
                    wait |= {"timeout_s": 86400, "ao_expirar": "segue"}
            case "aprovacao":
                wait = {"aprovacao": {}}
                if chance.random() < 0.7:
                    wait["aprovacao"] = {"pergunta": "Pagar " + self._text([]) + "?", "papeis": ["operador", "admin"]}
                if chance.random() < 0.5:
                    wait["ao_recusar"] = "segue"
            case "segundos":
                wait = {"segundos": chance.choice([0, 1.5, 3600, "${{ entrada.pausa }}"])}
            case _:
                wait = {
                    "ate": chance.choice(["2026-12-24T18:00:00-03:00", "2026-12-24T18:00:00Z", "${{ entrada.ate }}"])
                }
        return wait

    def _options(self, kind: str) -> dict[str, Any]:
        chance = self._random
        options: dict[str, Any] = {}
        if self._kinds and chance.random() < 0.5:
            options["depende"] = chance.sample(list(self._kinds), chance.randint(1, len(self._kinds)))
        if chance.random() < 0.3:
            options["quando"] = chance.choice([True, False, self._condition([])])
        if kind != "espera" and chance.random() < 0.2:
            options["timeout_s"] = chance.choice([1, 2.5])
        if chance.random() < 0.2:
            options["max_tentativas"] = chance.randint(1, 9)
        if chance.random() < 0.2:
            options["retentativa"] = {"base_s": 1, "teto_s": 60.5, "nao_em": ["http_404", "definitivo"]}
        if chance.random() < 0.2:
            options["desfaz"] = {"executador": "estorno", "parametros": {"id": "${{ feito.id }}"}, "max_tentativas": 5}
        if chance.random() < 0.2:
            options["opcional"] = True
        if chance.random() < 0.2:
            options["prioridade"] = chance.randint(1, 9)
        if kind == "para_cada" and chance.random() < 0.4:
            options["fan_in"] = chance.choice([{"modo": "todas_ok"}, {"modo": "quorum", "minimo": 900}])
        elif kind != "para_cada" and options.get("depende") and chance.random() < 0.5:
            options["fan_in"] = chance.choice(
                [{"modo": "todos"}, {"modo": "primeiro"}, {"modo": "fechadas"}, {"modo": "quorum", "minimo": 1}]
            )
        return options

    # -- values ------------------------------------------------------------------------------------------------------

    def _list(self) -> Any:
        chance = self._random
        known = [f"{name}.{self._field(name)}" for name in self._kinds]
        return chance.choice(["${{ entrada.itens }}", [1, "a", {"b": None}], *(f"${{{{ {one} }}}}" for one in known)])

    def _field(self, name: str) -> str:
        return {"para_cada": "resultados", "fonte": "dados", "espera": "dados"}.get(self._kinds[name], "resultado")

    def _condition(self, names: list[str]) -> str:
        return "${{ " + self._operand(names) + self._random.choice([" == 1", " != 'a}}b'", " in [1, 2]"]) + " }}"

    def _operand(self, names: list[str]) -> str:
        known = [
            f"{name}.{self._random.choice([self._field(name), 'ok', 'status', 'erros', 'tentativas'])}"
            for name in self._kinds
        ]
        return self._random.choice(["entrada.canal", "entrada['x y']", *names, *known])

    def _text(self, names: list[str]) -> str:
        chance = self._random
        if chance.random() < 0.4:
            return chance.choice(TEXTS)
        one = "${{ " + self._operand(names) + " }}"
        mapped = "${{ [1].map(entrada_, entrada_ + 1) + [" + self._operand(names) + "] }}"
        return chance.choice([one, "${{" + self._operand(names) + "}}", f"a {one} b {one}", mapped])

    def _value(self, depth: int, names: list[str] | None = None) -> Any:
        chance = self._random
        if depth and chance.random() < 0.3:
            return self._value_map(depth - 1, names)
        if depth and chance.random() < 0.3:
            return [self._value(depth - 1, names) for _ in range(chance.randint(0, 3))]
        plain: list[Any] = [None, True, False, 0, -1, 2**53, 1.5, 1e100, self._text(names or [])]
        return chance.choice([*plain, self._text(names or [])])

    def _value_map(self, depth: int, names: list[str] | None = None) -> dict[str, Any]:
        keys = self._random.sample([*TEXTS, "dados", "params", "parametros"], self._random.randint(0, 3))
        return {key: self._value(depth, names) for key in keys}
