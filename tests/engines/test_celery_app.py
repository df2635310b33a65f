"""How the Celery application is made from the settings, and which changes of it are refused."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from celery.exceptions import Retry

from oraculo.bootstrap.celery import task_broker_of
from oraculo.errors import SettingsError, StoreError
from oraculo.settings import settings
from oraculo.settings.settings import Settings

ENV = {"ORACULO_ENGINE": "celery", "ORACULO_STORE": "postgresql://db/oraculo", "ORACULO_BROKER": "redis://r:6379/0"}


def chosen(**env: str) -> Settings:
    return settings.load({**ENV, **env}, dotenv=None)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Importing it makes an application of the environment."""
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    return importlib.import_module("oraculo.apps.celery.app")


@pytest.mark.parametrize(
    ("env", "broker"),
    [
        ({}, "redis://r:6379/0"),
        ({"ORACULO_BROKER": "nats://n:4222,amqp://u:p@m:5672/v?prefetch=9"}, "amqp://u:p@m:5672/v"),
        ({"ORACULO_BROKER": "pyamqp://guest@rabbitmq//"}, "amqp://guest@rabbitmq//"),
        ({"ORACULO_CELERY_BROKER": "pyamqp://guest@rabbitmq//"}, "pyamqp://guest@rabbitmq//"),
        ({"ORACULO_CELERY_BROKER": "rediss://c/1?ssl_cert_reqs=required"}, "rediss://c/1?ssl_cert_reqs=required"),
    ],
)
def test_where_tasks_travel(made: ModuleType, env: dict[str, str], broker: str) -> None:
    assert task_broker_of(chosen(**env)) == broker


@pytest.mark.parametrize("name", ["iniciar_coleta", "iniciar_execucao"])
def test_tasks_that_carry_orders_are_retried_three_times(
    made: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    importlib.import_module("oraculo.apps.celery.tasks")
    task = made.app.tasks[name]
    assert task.max_retries == 3
    sent: list[object] = []
    again = SimpleNamespace(apply_async=lambda: sent.append(name))
    monkeypatch.setattr(task, "signature_from_request", lambda *_, **__: again)
    task.push_request(retries=50, called_directly=False)
    try:  # what a program begins with it is never given up: a retry after the fiftieth is asked for, not refused
        with pytest.raises(Retry):
            task.retry(exc=StoreError("away"), throw=True, countdown=1, **task.retry_kwargs)
    finally:
        task.pop_request()
    assert sent == [name]


@pytest.mark.parametrize(
    ("env", "variable"),
    [
        ({"ORACULO_CELERY_BROKER": "nats://n:4222"}, "ORACULO_CELERY_BROKER"),
        ({"ORACULO_CELERY_BROKER": "amqp://a,amqp://b"}, "ORACULO_CELERY_BROKER"),
        ({"ORACULO_CELERY_BACKEND": "r:6379"}, "ORACULO_CELERY_BACKEND"),
        ({"ORACULO_BROKER": "memory://"}, "ORACULO_BROKER"),
        ({"ORACULO_STORE": "sqlite:///x.db"}, "ORACULO_STORE"),
    ],
)
def test_wrong_settings_are_refused_at_start(env: dict[str, str], variable: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}="):
        chosen(**env)


def test_a_broker_that_celery_cannot_use_needs_another(made: ModuleType) -> None:
    with pytest.raises(
        SettingsError, match=r"^ORACULO_CELERY_BROKER='' is not allowed.*ORACULO_BROKER is nats://n:4222"
    ):
        task_broker_of(chosen(ORACULO_BROKER="nats://n:4222"))


def test_a_password_is_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"http://u:\*\*\*@h"):
        chosen(ORACULO_CELERY_BROKER="http://u:segredo@h")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task_acks_late", False),
        ("task_reject_on_worker_lost", False),
        ("task_serializer", "pickle"),
        ("result_serializer", "pickle"),
        ("accept_content", ["json", "pickle"]),
    ],
)
def test_what_would_lose_tasks_is_refused(made: ModuleType, name: str, value: Any) -> None:
    app = made.make(chosen())
    made.verify(app)
    app.conf[name] = value
    with pytest.raises(SettingsError, match=f"^{name}="):
        made.verify(app)


@pytest.mark.parametrize("name", ["acks_late", "reject_on_worker_lost"])
def test_so_is_a_task_of_its_own_mind(made: ModuleType, name: str) -> None:
    app = made.make(chosen())
    kept = app.task(test_pools, name="teimosa", shared=False, **{name: False})
    assert kept.name == "teimosa"
    with pytest.raises(SettingsError, match="teimosa"):
        made.verify(app)


def test_pools(made: ModuleType) -> None:
    for pool in ("prefork", "threads", "solo", None):
        made.check_pool(pool)
    with pytest.raises(SettingsError, match=r"^--pool='gevent'"):
        made.check_pool("gevent")


def test_redis_gives_the_tasks_of_a_dead_worker_away_before_long(made: ModuleType) -> None:
    from oraculo.apps.celery import process, tasks

    redis = made.make(chosen()).conf.broker_transport_options["visibility_timeout"]
    assert tasks.RETRY_POLICY["retry_backoff_max"] < redis
    assert redis > process.TASK_TIMEOUT_S
    assert made.make(chosen(ORACULO_BROKER="amqp://m")).conf.broker_transport_options == {"confirm_publish": True}


def test_tasks_that_never_end_do_not_keep_processes_alive(made: ModuleType) -> None:
    from oraculo.apps.celery.autoscale import ALWAYS_THERE, Autoscaler

    assert set(ALWAYS_THERE) == {entry["task"] for entry in made.app.conf.beat_schedule.values()}
    scaler = Autoscaler(pool=None, max_concurrency=4)
    for task in ALWAYS_THERE:
        scaler.on_task_received(SimpleNamespace(name=task))
    assert scaler._last_task_received is None
    scaler.on_task_received(SimpleNamespace(name="resultado_coleta"))
    assert scaler._last_task_received is not None
