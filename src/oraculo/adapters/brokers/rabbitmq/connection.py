"""One connection to RabbitMQ that is made at first use and made again whenever it was lost.

There are two of these in a broker: the server stops reading from a connection that publishes when it runs out of memory
or disk, and acknowledgements must not be stuck behind that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from oraculo.adapters.brokers.kit.reconnect import Connector
from oraculo.adapters.brokers.rabbitmq.channel import reason_of
from oraculo.adapters.brokers.rabbitmq.transport import AMQPError, AmqpTransport, pika
from oraculo.adapters.brokers.rabbitmq.url import Options
from oraculo.errors import BrokerUnavailableError

CONNECT_TIMEOUT_S = 3.0
SILENCE_CHECK_INTERVAL_S = 1.0
CLOSE_TIMEOUT_S = 0.5


class Connection:
    """`purpose` tells the two apart in logs and in the server's list of connections."""

    def __init__(self, options: Options, purpose: str) -> None:
        self.options = options
        self._purpose = purpose
        self._connector = Connector(
            f"RabbitMQ at {options.where}",
            self._connect,
            self._watch,
            labels={"broker": "amqp", "where": options.where, "purpose": purpose},
        )
        self.health = self._connector.health

    @property
    def used(self) -> bool:
        return self._connector.used

    @property
    def error(self) -> str:
        """Why there is no connection; empty while one stands or is being made."""
        return self._connector.error

    async def transport(self, being_made: float, *, known_down: float = 0.0) -> AmqpTransport:
        """The open connection. One that is being made is waited for `being_made` seconds, one that is known to be lost
        `known_down` seconds."""
        return await self._connector.get(being_made, known_down)

    async def reset(self) -> None:
        """Make the connection again; returns when it is there, or when that takes too long."""
        transport = self._connector.current
        if transport is None:
            return
        self._connector.renew()
        await _close_quietly(transport)
        with contextlib.suppress(BrokerUnavailableError):
            await self._connector.get(self.options.confirm_timeout)

    async def close(self) -> None:
        await self._connector.close()

    async def _connect(self) -> AmqpTransport:
        transport = AmqpTransport(self._parameters(), asyncio.get_running_loop())
        try:
            ends: set[asyncio.Future[Any]] = {transport.opened, transport.closed}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            transport.drop(AMQPError("no longer wanted"))
            await asyncio.wait({transport.closed}, timeout=CLOSE_TIMEOUT_S)
            raise
        if transport.closed.done():
            raise BrokerUnavailableError(reason_of(transport.closed.result()))
        return transport

    async def _watch(self, transport: AmqpTransport) -> str:
        """Wait until the connection is closed; return the reason. The server sends heartbeats twice in the time given:
        silence for that long ends the connection."""
        silent_s, seen = 0.0, -1
        try:
            while not transport.closed.done():
                await asyncio.wait({transport.closed}, timeout=SILENCE_CHECK_INTERVAL_S)
                silent_s = silent_s + SILENCE_CHECK_INTERVAL_S if transport.bytes_received == seen else 0.0
                seen = transport.bytes_received
                if silent_s >= self.options.heartbeat:
                    transport.drop(AMQPError(f"silent for {self.options.heartbeat} s"))
        finally:
            await _close_quietly(transport)
        return reason_of(transport.closed.result())

    def _parameters(self) -> Any:
        options = self.options
        context = None if options.tls is None else options.tls.context()
        logger = logging.getLogger("pika")
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)  # it reports one lost connection in a dozen lines
        return pika.ConnectionParameters(
            host=options.host,
            port=options.port,
            virtual_host=options.vhost,
            credentials=pika.PlainCredentials(options.user, options.password),
            heartbeat=options.heartbeat,
            ssl_options=None if context is None else pika.SSLOptions(context, options.host),
            socket_timeout=CONNECT_TIMEOUT_S,
            stack_timeout=CONNECT_TIMEOUT_S,
            connection_attempts=1,
            client_properties={"connection_name": f"oraculo {self._purpose}"},
        )


async def _close_quietly(transport: AmqpTransport) -> None:
    """Close in an orderly way, so that acknowledgements on their way arrive; cut the connection if that takes long."""
    if transport.closed.done():
        return
    if transport.is_open:
        transport.close()
        await asyncio.wait({transport.closed}, timeout=CLOSE_TIMEOUT_S)
    transport.drop(AMQPError("closed by us"))
    await asyncio.wait({transport.closed}, timeout=CLOSE_TIMEOUT_S)
