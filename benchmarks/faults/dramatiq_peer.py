"""Dramatiq: a group of collects with a completion callback, which is the execute; results and the counter in Redis.

A callback is told only that its group is complete, so the execute reads the results itself. Dramatiq acknowledges after
the work by itself; "tuned" only makes it notice dead workers sooner on Redis, and waits for RabbitMQ's confirmations.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import dramatiq
import redis as redis_client
import task_work
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits.backends import RedisBackend as RateLimiterBackend
from dramatiq.results import ResultFailure, ResultMissing, Results
from dramatiq.results.backends import RedisBackend as ResultBackend
from peer import Part, Program
from tools.servers.rabbitmq import RabbitMQ
from tools.servers.redis import Redis

TUNED_REDIS = {"heartbeat_timeout": 10_000, "maintenance_chance": 100_000}  # ms; of a million calls
TUNED_RABBITMQ = {"confirm_delivery": True}


class Actors:
    """The broker and both actors, for the submitting process and for the workers."""

    def __init__(self, url: str, results: str, variant: str) -> None:
        store = redis_client.Redis.from_url(results, socket_timeout=None)
        self.results = ResultBackend(client=store)
        broker: dramatiq.Broker
        if url.startswith("amqp"):
            broker = RabbitmqBroker(url=url, **settings_of("rabbitmq", variant))
        else:
            broker = RedisBroker(url=url, socket_timeout=None, **settings_of("redis", variant))
        broker.add_middleware(GroupCallbacks(RateLimiterBackend(client=store)))
        broker.add_middleware(Results(backend=self.results))
        dramatiq.set_broker(broker)
        self.broker = broker
        self.collect = dramatiq.actor(task_work.collect, actor_name="collect", store_results=True)
        self.execute = dramatiq.actor(self.executed, actor_name="execute", store_results=True)

    def executed(self, name: str) -> dict[str, int]:
        messages = [self.collect_message(name, index) for index in range(task_work.COLLECTS)]
        return task_work.execute(name, [message.get_result(backend=self.results) for message in messages])

    def collect_message(self, name: str, index: int) -> dramatiq.Message[Any]:
        return self._message(self.collect, (name, index), f"{name}-{index}")

    def execute_message(self, name: str) -> dramatiq.Message[Any]:
        return self._message(self.execute, (name,), f"{name}-execute")

    def _message(self, actor: Any, arguments: tuple[Any, ...], number: str) -> dramatiq.Message[Any]:
        return dramatiq.Message(
            queue_name=actor.queue_name,
            actor_name=actor.actor_name,
            args=arguments,
            kwargs={},
            options={},
            message_id=number,
        )


def settings_of(broker: str, variant: str) -> dict[str, Any]:
    if variant == "default":
        return {}
    return dict(TUNED_RABBITMQ if broker == "rabbitmq" else TUNED_REDIS)


class DramatiqPeer:
    packages = ("dramatiq", "redis")

    def __init__(self, folder: Path, variant: str, broker: str) -> None:
        redis = Redis(folder / "redis")
        rabbitmq = RabbitMQ(folder / "rabbitmq") if broker == "rabbitmq" else None
        self._addresses = (redis.url if rabbitmq is None else rabbitmq.url, redis.url, variant)
        os.environ["FAULTS_DRAMATIQ"] = " ".join(self._addresses)
        worker = [sys.executable, "-m", "dramatiq", "dramatiq_peer", "--processes", "1"]
        self.worker = Program("worker", [*worker, "--threads", str(task_work.CONCURRENCY)], folder)
        self.parts: dict[str, Part] = {"broker": rabbitmq or redis, "orchestrator": redis, "worker": self.worker}
        self.settings = {name: str(value) for name, value in settings_of(broker, variant).items()} or {
            "as it comes": ""
        }
        self._actors: Actors | None = None

    @property
    def actors(self) -> Actors:
        if self._actors is None:
            self._actors = Actors(*self._addresses)
        return self._actors

    def submit(self, name: str) -> None:
        group = dramatiq.group([self.actors.collect_message(name, index) for index in range(task_work.COLLECTS)])
        group.add_completion_callback(self.actors.execute_message(name))
        group.run()

    def outcome(self, name: str) -> tuple[str, Any] | None:
        try:
            return "ended", self.actors.execute_message(name).get_result(backend=self.actors.results)
        except ResultMissing:
            return None
        except ResultFailure as error:
            return "failed", str(error)

    def close(self) -> None:
        if self._actors is not None:
            with contextlib.suppress(Exception):
                self._actors.broker.close()


if "FAULTS_DRAMATIQ" in os.environ:  # the worker's process
    actors = Actors(*os.environ["FAULTS_DRAMATIQ"].split())
