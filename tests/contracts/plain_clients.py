"""What programs without Oráculo publish, through the client libraries that they use, with headers of every kind."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from functools import partial

from tools.servers.server import Server


async def rabbitmq(server: Server, queue: str, body: bytes, *, declares: bool = True) -> None:
    import pika

    odd = {
        "number": 7,
        "big": 2**60,
        "yes": True,
        "nothing": None,
        "bytes": b"\xff\xfe",
        "list": [1, "two", None],
        "table": {"deep": {"er": 1}},
        "when": datetime.datetime(2025, 10, 14, 12, tzinfo=datetime.UTC),
        "é" * 60: "ü",
        "": "no name",
    }
    with pika.BlockingConnection(pika.URLParameters(server.url)) as connection:
        channel = connection.channel()
        if declares:
            channel.queue_declare(queue)
        properties = pika.BasicProperties(headers=odd, priority=200, content_type="image/png", expiration="600000")
        channel.basic_publish("", queue, body, properties)
        channel.basic_publish("", queue, body)


async def redis(server: Server, queue: str, body: bytes) -> None:
    from redis import Redis

    with Redis(host="127.0.0.1", port=server.port) as client:
        odd = {b"mensagem": body, b"\xff\xfe": b"\xfd", b"": b"no name", b"number": 7, b"headers": b"not json"}
        client.xadd(queue, odd)
        client.xadd(queue, {"data": body, "headers": '{"number": 7, "nothing": null, "list": [1]}'})


async def nats(server: Server, queue: str, body: bytes) -> None:
    from nats import connect

    client = await connect(server.url)
    try:
        await client.publish(queue, body, headers={"number": "7", "X-Odd_Name": "é ü", "empty": "", "Nats-Odd": "1"})
        await client.publish(queue, body)
    finally:
        await client.close()


async def kafka(server: Server, queue: str, body: bytes) -> None:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{server.port}") as producer:
        odd = [("bytes", b"\xff\xfe"), ("twice", b"1"), ("twice", b"2"), ("nothing", None), ("", b"no name")]
        await producer.send_and_wait(queue, body, key=b"\xff", headers=odd)
        await producer.send_and_wait(queue, body)


# Each publishes the body twice: once with all that is odd, once with nothing.
PLAIN: dict[str, Callable[[Server, str, bytes], Awaitable[None]]] = {
    "rabbitmq": rabbitmq,
    "redis": redis,
    "nats": nats,
    "kafka": kafka,
}
# The same of those who take it for granted that the queue exists.
CARELESS = {**PLAIN, "rabbitmq": partial(rabbitmq, declares=False)}
