"""A document → JSON data, in either vocabulary. What is as it would be anyway is left out; `read` gives it back."""

from __future__ import annotations

from collections.abc import Collection

from oraculo.core.vocabulary import Kind
from oraculo.plans.expression_words import value_in_words
from oraculo.plans.model import (
    ITEM_NAME,
    ApprovalWait,
    CallNode,
    ChildNode,
    InstantWait,
    JoinRule,
    Json,
    LoopNode,
    MapNode,
    Node,
    NodeOptions,
    Otherwise,
    Params,
    PlanDocument,
    RequestDocument,
    RequestOptions,
    RetryRule,
    SignalWait,
    StagesDocument,
    TimerWait,
    TypeDocument,
    UndoRule,
    UniqueRule,
    Wait,
    WaitNode,
)
from oraculo.plans.words import Words, field_in, value_in

KIND_WORDS = {Kind.COLETA: "fonte", Kind.EXECUCAO: "executador"}
NO_NAMES: frozenset[str] = frozenset()


def write(request: RequestDocument, words: Words = "pt") -> Params:
    """The request as JSON data."""
    return _Writer(words, NO_NAMES).request(request)


class _Writer:
    """`tasks`: the names of the tasks that expressions here may ask."""

    def __init__(self, words: Words, tasks: Collection[str]) -> None:
        self._words = words
        self._tasks = tasks

    def _named(self, **fields: Json) -> Params:
        """The fields that are there, under their words."""
        return {field_in(self._words, field): value for field, value in fields.items() if value is not None}

    def _value(self, field: str, word: str) -> str:
        return value_in(self._words, field, word)

    def _json(self, value: Json) -> Json:
        return value_in_words(value, self._words, self._tasks) if self._tasks else value

    def _params(self, params: Params) -> Json:
        return self._json(params) or None

    # -- requests ----------------------------------------------------------------------------------------------------

    def request(self, request: RequestDocument) -> Params:
        """A request that stands by itself, or inside of a `filha`: then what the parent gives is in its names."""
        match request:
            case PlanDocument():
                inner = _Writer(self._words, frozenset(request.tasks))
                shape = self._named(
                    entrada=self._params(request.input),
                    tarefas={name: inner._node(node) for name, node in request.tasks.items()},
                    saida=inner._json(request.output),
                )
            case TypeDocument():
                shape = self._named(tipo=request.type, parametros=self._json(request.params))
            case StagesDocument():
                shape = self._named(
                    coletas=[self._node(call) for call in request.collects] or None,
                    execucoes=[self._node(call) for call in request.executes] or None,
                    fan_in=self._join(request.fan_in),
                )
        return {**shape, **self._request_options(request.options)}

    def _request_options(self, options: RequestOptions) -> Params:
        notify = options.notify
        return self._named(
            timeout_s=options.timeout_s,
            correlation_id=options.correlation_id,
            notificar=None if notify is None else self._named(webhook=notify.webhook, fila=notify.queue),
            rotulos=list(options.labels) or None,
            unica=None if options.unique is None else self._unique(options.unique),
        )

    def _unique(self, rule: UniqueRule) -> Params:
        return self._named(modo=self._value("modo", rule.mode.value), janela_s=rule.window_s, chave=rule.key)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> Params:
        match node:
            case CallNode():
                shape = self._call(node.kind, node.destination, node.params)
            case ChildNode():
                shape = self._named(filha=self.request(node.request))
            case MapNode():
                shape = self._named(
                    para_cada=self._json(node.items),
                    como=None if node.as_ == ITEM_NAME else node.as_,
                    ao_mesmo_tempo=node.at_once,
                    faz=self._node(node.do),
                )
            case LoopNode():
                loop = self._named(
                    faz=self._node(node.do),
                    pare_quando=self._json(node.stop_when),
                    no_maximo=node.at_most,
                    pausa_s=node.pause_s,
                    ao_esgotar=self._otherwise("ao_esgotar", node.on_exhaust),
                )
                shape = self._named(repete=loop)
            case WaitNode():
                shape = self._named(espera=self._wait(node.wait))
        return {**shape, **self._options(node.options)}

    def _call(self, kind: Kind, destination: str, params: Params) -> Params:
        return self._named(**{KIND_WORDS[kind]: destination}, parametros=self._params(params))

    def _wait(self, wait: Wait) -> Params:
        match wait:
            case SignalWait():
                on_expire = self._otherwise("ao_expirar", wait.on_expire)
                return self._named(sinal=wait.signal, timeout_s=wait.timeout_s, ao_expirar=on_expire)
            case ApprovalWait():
                return self._named(
                    aprovacao=self._named(pergunta=self._json(wait.question), papeis=list(wait.roles) or None),
                    timeout_s=wait.timeout_s,
                    ao_expirar=self._otherwise("ao_expirar", wait.on_expire),
                    ao_recusar=self._otherwise("ao_recusar", wait.on_refuse),
                )
            case TimerWait():
                return self._named(segundos=self._json(wait.seconds))
            case InstantWait():
                return self._named(ate=self._json(wait.until))

    def _options(self, options: NodeOptions) -> Params:
        return self._named(
            depende=list(options.needs) or None,
            quando=self._json(options.when),
            timeout_s=options.timeout_s,
            max_tentativas=options.max_attempts,
            retentativa=self._retry(options.retry),
            desfaz=self._undo(options.undo),
            opcional=options.optional or None,
            prioridade=options.priority,
            fan_in=self._join(options.fan_in),
        )

    def _retry(self, retry: RetryRule | None) -> Params | None:
        if retry is None:
            return None
        return self._named(base_s=retry.base_s, teto_s=retry.cap_s, nao_em=list(retry.not_on) or None)

    def _undo(self, undo: UndoRule | None) -> Params | None:
        if undo is None:
            return None
        more = self._named(
            timeout_s=undo.timeout_s, max_tentativas=undo.max_attempts, retentativa=self._retry(undo.retry)
        )
        return {**self._call(undo.kind, undo.destination, undo.params), **more}

    def _join(self, rule: JoinRule | None) -> Params | None:
        if rule is None:
            return None
        return self._named(modo=self._value("modo", rule.mode.value), minimo=rule.at_least)

    def _otherwise(self, field: str, otherwise: Otherwise) -> str | None:
        return None if otherwise is Otherwise.FALHA else self._value(field, otherwise.value)
