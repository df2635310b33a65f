"""A collector in plain aiokafka: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.

pip install aiokafka
KAFKA_SERVERS=127.0.0.1:9092 FONTE=eco python worker.py
"""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

SERVERS = os.environ.get("KAFKA_SERVERS", "127.0.0.1:9092")
FONTE = os.environ.get("FONTE", "eco")
QUEUE, RESULTS = f"escavador_{FONTE}", "orquestrador_resultados"
GROUP = f"oraculo.{QUEUE}"  # all workers of one queue are one group, whoever wrote them


def collect(parametros):
    return [{"fonte": FONTE, "parametros": parametros}]


def answer(body):
    order = json.loads(body)
    result = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": FONTE, "status": "ok", "dados": collect(order["payload"].get("parametros", {}))},
        "timestamp": datetime.now(UTC).isoformat(),  # noqa: TID251
        "ticket_id": order["ticket_id"],  # which order this answers: several of one source may be open
        "tentativa": order["tentativa"],
        "token": order.get("token"),  # where answers have to prove whose they are
    }
    return json.dumps(result).encode()


async def main():
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    consumer = AIOKafkaConsumer(
        QUEUE,
        bootstrap_servers=SERVERS,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        metadata_max_age_ms=5000,  # so that a topic that grows or comes later is noticed soon
        max_poll_interval_ms=600_000,  # longer than any work here takes
    )
    producer = AIOKafkaProducer(bootstrap_servers=SERVERS, acks="all", enable_idempotence=True)
    async with producer, consumer:
        print(f"waiting for {QUEUE}", flush=True)
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=500, max_records=10)).values():
                for record in records:
                    await producer.send_and_wait(RESULTS, answer(record.value))
                await consumer.commit()  # last: whoever dies before this is followed by another


if __name__ == "__main__":
    asyncio.run(main())
