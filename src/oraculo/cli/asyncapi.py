"""The queues of Oráculo as an AsyncAPI 3.0 document, generated from the names and the schemas that the code uses."""

from __future__ import annotations

from typing import Any

from oraculo import __version__
from oraculo.adapters.brokers.registry import plugins
from oraculo.cli import asyncapi_flow
from oraculo.core.vocabulary import TipoEvento
from oraculo.wire import names

ORDERS = {
    TipoEvento.INICIAR_COLETA: "an order for a collector",
    TipoEvento.INICIAR_EXECUCAO: "an order for an executor, with what was collected",
}
RESULTS = {
    TipoEvento.RESULTADO_COLETA: "what a collector found, or how it failed",
    TipoEvento.RESULTADO_EXECUCAO: "what an executor made, or how it failed",
}


def document(mensagem: dict[str, Any], requisicao: dict[str, Any]) -> dict[str, Any]:
    """The orchestrator's view: it sends orders and receives results and requests."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Oráculo",
            "version": __version__,
            "description": "Messages between the orchestrator, collectors (escavadores) and executors (executadores). "
            f"A queue is {_queues()}.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            "escavador": _channel("escavador_{fonte}", ["iniciar_coleta"], "orders for one source", "fonte"),
            "executador": _channel("executador_{nome}", ["iniciar_execucao"], "orders for one executor", "nome"),
            "resultados": _channel(names.RESULTS, list(RESULTS), "results of every worker"),
            "requisicoes": _channel(names.REQUESTS, ["requisicao"], "requests, as over HTTP"),
            "dlq": _channel(
                names.dead_letter_queue("{fila}"),
                ["mensagem_morta"],
                "what could not be handled: the original bytes, with reason and origin",
                "fila",
            ),
            **asyncapi_flow.channels(),
        },
        "operations": {
            "enviarColeta": _operation("send", "escavador", "resultados"),
            "enviarExecucao": _operation("send", "executador", "resultados"),
            "receberResultado": _operation("receive", "resultados"),
            "receberRequisicao": _operation("receive", "requisicoes"),
            "enviarMensagemMorta": _operation("send", "dlq"),
            **asyncapi_flow.operations(),
        },
        "components": {
            "messages": {
                **{event.value: _message(event, about) for event, about in {**ORDERS, **RESULTS}.items()},
                "requisicao": {
                    "name": "requisicao",
                    "summary": "an iniciar_coleta without ticket_id whose payload is a request",
                    "correlationId": _CORRELATION,
                    "payload": {
                        "allOf": [
                            _ref("mensagem"),
                            {"properties": {"tipo_evento": {"const": "iniciar_coleta"}, "payload": _ref("requisicao")}},
                        ]
                    },
                },
                "mensagem_morta": {"name": "mensagem_morta", "summary": "any bytes", "payload": {}},
                **asyncapi_flow.messages(),
            },
            "schemas": {
                "mensagem": _relocated(mensagem, "mensagem"),
                "requisicao": _relocated(requisicao, "requisicao"),
            },
        },
    }


def _queues() -> str:
    """What a queue is on each broker that is installed."""
    kinds = list(dict.fromkeys(f"the {plugin.queue}" for plugin in plugins().values() if plugin.queue))
    return " and ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))


_CORRELATION = {"location": "$message.payload#/correlation_id"}


def _ref(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}


def _message(event: TipoEvento, about: str) -> dict[str, Any]:
    only = {"properties": {"tipo_evento": {"const": event.value}}}
    return {
        "name": event.value,
        "summary": about,
        "correlationId": _CORRELATION,
        "payload": {"allOf": [_ref("mensagem"), only]},
    }


def _channel(address: str, messages: list[Any], about: str, parameter: str | None = None) -> dict[str, Any]:
    channel: dict[str, Any] = {
        "address": address,
        "description": about,
        "messages": {str(name): {"$ref": f"#/components/messages/{name}"} for name in messages},
    }
    if parameter is not None:
        channel["parameters"] = {parameter: {"description": f"matches {names.NAME_PATTERN}"}}
    return channel


def _operation(action: str, channel: str, reply: str | None = None) -> dict[str, Any]:
    operation: dict[str, Any] = {"action": action, "channel": {"$ref": f"#/channels/{channel}"}}
    if reply is not None:
        operation["reply"] = {"channel": {"$ref": f"#/channels/{reply}"}}
    return operation


def _relocated(schema: Any, home: str) -> Any:
    """The schema with its inner references made to work from where it is put."""
    if isinstance(schema, dict):
        return {
            key: f"#/components/schemas/{home}/{value[2:]}"
            if key == "$ref" and isinstance(value, str) and value.startswith("#/")
            else _relocated(value, home)
            for key, value in schema.items()
            if not (key == "$schema" and isinstance(value, str))
        }
    if isinstance(schema, list):
        return [_relocated(item, home) for item in schema]
    return schema
