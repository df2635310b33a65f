"""A collector in plain nats-py: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.

pip install nats-py
NATS_URL=nats://127.0.0.1:4222 FONTE=eco python worker.py
"""

import asyncio
import json
import os
import signal
from datetime import UTC, datetime

import nats
from nats.js.api import ConsumerConfig, RetentionPolicy
from nats.js.errors import BadRequestError, NotFoundError

FONTE = os.environ.get("FONTE", "eco")
QUEUE, RESULTS, GROUP = f"escavador_{FONTE}", "orquestrador_resultados", "oraculo"
LEASE_S = 60  # longer than any work here takes: what a worker held for so long goes to another one


def collect(parametros):
    return [{"fonte": FONTE, "parametros": parametros}]


async def stream_of(js, subject):
    """The stream that keeps this subject; one is made when the worker is the first to need it."""
    try:
        return await js.find_stream_name_by_subject(subject)
    except NotFoundError:
        try:
            await js.add_stream(name=subject, subjects=[subject], retention=RetentionPolicy.WORK_QUEUE)
            return subject
        except BadRequestError:  # somebody was quicker
            return await js.find_stream_name_by_subject(subject)


async def handle(js, message):
    order = json.loads(message.data)
    result = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": FONTE, "status": "ok", "dados": collect(order["payload"].get("parametros", {}))},
        "timestamp": datetime.now(UTC).isoformat(),  # noqa: TID251
        "ticket_id": order["ticket_id"],  # which order this answers: several of one source may be open
        "tentativa": order["tentativa"],
        "token": order.get("token"),  # where answers have to prove whose they are
    }
    await js.publish(RESULTS, json.dumps(result).encode())  # returns once JetStream has it
    await message.ack()  # last: whoever dies before this is followed by another


async def main():
    connection = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    js = connection.jetstream()
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await stream_of(js, RESULTS)
    stream = await stream_of(js, QUEUE)
    orders = await js.pull_subscribe(QUEUE, durable=GROUP, stream=stream, config=ConsumerConfig(ack_wait=LEASE_S))
    print(f"waiting for {QUEUE}", flush=True)
    while not stop.is_set():
        try:
            messages = await orders.fetch(10, timeout=1)
        except TimeoutError:  # nothing came; nats-py raises its own kind of it, or the built-in one
            continue
        for message in messages:
            await handle(js, message)
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
