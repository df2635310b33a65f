"""A collector in plain redis-py: orders from `escavador_<fonte>`, answers to `orquestrador_resultados`.

pip install redis
REDIS_URL=redis://127.0.0.1:6379/0 FONTE=eco python worker.py
"""

import json
import os
import signal
import socket
from datetime import UTC, datetime

import redis

FONTE = os.environ.get("FONTE", "eco")
QUEUE, RESULTS, GROUP = f"escavador_{FONTE}", "orquestrador_resultados", "oraculo"
NAME = f"{socket.gethostname()}-{os.getpid()}"
ABANDONED_MS = 60_000  # longer than any work here takes: what another worker held for so long is taken over


def collect(parametros):
    return [{"fonte": FONTE, "parametros": parametros}]


def handle(client, entry_id, fields):
    order = json.loads(fields[b"mensagem"])
    result = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": FONTE, "status": "ok", "dados": collect(order["payload"].get("parametros", {}))},
        "timestamp": datetime.now(UTC).isoformat(),  # noqa: TID251
        "ticket_id": order["ticket_id"],  # which order this answers: several of one source may be open
        "tentativa": order["tentativa"],
        "token": order.get("token"),  # where answers have to prove whose they are
    }
    client.xadd(RESULTS, {"mensagem": json.dumps(result)})
    client.xack(QUEUE, GROUP, entry_id)  # last: whoever dies before this is followed by another


def main():
    # Block for less than the socket timeout, and never send a command twice by yourself.
    client = redis.Redis.from_url(
        os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"), socket_timeout=10, retry=None
    )
    try:
        client.xgroup_create(QUEUE, GROUP, "0", mkstream=True)
    except redis.ResponseError as error:
        if "BUSYGROUP" not in str(error):
            raise
    running = True

    def stop(*_):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(f"{NAME} waits for {QUEUE}", flush=True)
    while running:
        entries = client.xautoclaim(QUEUE, GROUP, NAME, ABANDONED_MS, count=10)[1]
        if not entries:
            found = client.xreadgroup(GROUP, NAME, {QUEUE: ">"}, count=10, block=1000)
            entries = found[0][1] if found else []
        for entry_id, fields in entries:
            handle(client, entry_id, fields)


if __name__ == "__main__":
    main()
