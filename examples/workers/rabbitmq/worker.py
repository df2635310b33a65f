"""A collector that knows nothing of Oráculo: pika, the queue names and seven fields of JSON.

pip install pika; AMQP_URL=amqp://guest:guest@localhost:5672/ python worker.py
"""

import json
import os
import time

import pika

FONTE = "youtube"


def collect(parametros: dict) -> list[dict]:
    """The work. Here: nothing is fetched."""
    return [{"titulo": f"vídeo de {parametros.get('canal', '?')}"}]


def on_order(channel, method, properties, body) -> None:
    order = json.loads(body)
    answer = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": FONTE, "status": "ok", "dados": collect(order["payload"].get("parametros", {}))},
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "ticket_id": order["ticket_id"],  # which order this answers: several of one source may be open
        "tentativa": order["tentativa"],
        "token": order.get("token"),  # where answers have to prove whose they are
    }
    channel.basic_publish(
        exchange="",
        routing_key="orquestrador_resultados",
        body=json.dumps(answer),
        properties=pika.BasicProperties(delivery_mode=2),  # survives a restart of the server
    )
    channel.basic_ack(method.delivery_tag)  # only now: if this process dies before, somebody else gets the order


def main() -> None:
    connection = pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://localhost/")))
    channel = connection.channel()
    for queue in (f"escavador_{FONTE}", "orquestrador_resultados"):
        channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()  # basic_publish returns when the server has the answer
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(f"escavador_{FONTE}", on_order)
    print("esperando ordens", flush=True)
    channel.start_consuming()


if __name__ == "__main__":
    main()
