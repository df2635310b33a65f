"""What all brokers have in common: the options of their URLs, TLS, and what is never shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from oraculo.adapters.brokers.kafka.url import parse as kafka
from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.adapters.brokers.kit.url import without_credentials
from oraculo.adapters.brokers.nats_jetstream.url import parse as nats
from oraculo.adapters.brokers.rabbitmq.url import parse as rabbitmq
from oraculo.adapters.brokers.redis_streams.url import parse as redis
from oraculo.errors import SettingsError

Parse = Callable[[str], Any]
EVERY = pytest.mark.parametrize(
    ("scheme", "parse"), [("amqp", rabbitmq), ("redis", redis), ("nats", nats), ("kafka", kafka)]
)


@EVERY
def test_every_broker_has_the_same_options_for_the_same_things(scheme: str, parse: Parse) -> None:
    plain = parse(f"{scheme}://u:segredo@host")
    assert plain.tls is None and plain.confirm_timeout == 3.0
    assert "segredo" not in plain.where and "host:" in plain.where
    full = parse(f"{scheme}://host?tls=1&tls_ca=/ca.pem&tls_cert=/me.pem&tls_key=/me.key&confirm_timeout=0.05")
    assert full.tls == TlsOptions("/ca.pem", "/me.pem", "/me.key") and full.confirm_timeout == 0.05
    assert parse(f"{scheme}://host?confirm_timeout=3600").confirm_timeout == 3600


@EVERY
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("confirm_timeout=0.01", "confirm_timeout must be 0.05 to 3600 seconds"),
        ("confirm_timeout=nan", "confirm_timeout must be"),
        ("tls_ca=/ca.pem", "tls_ca needs TLS"),
        ("tls=1&tls_key=/me.key", "tls_key needs tls_cert"),
        ("tls=1&tls_ca=", "tls_ca must be the name of a file"),
        ("tls=sim", "tls must be 0 or 1"),
        ("nada=1", "the option 'nada' is not known"),
        ("tls=1&tls=1", "tls is given twice"),
    ],
)
def test_every_broker_refuses_in_the_same_words(scheme: str, parse: Parse, options: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(f"{scheme}://u:segredo@host?{options}")
    assert said in str(refused.value) and "segredo" not in str(refused.value)
    assert "tls_cert (the name of a file)" in str(refused.value), "what is allowed is said"


@pytest.mark.parametrize(
    ("parse", "url", "old"),
    [(rabbitmq, "amqps://h?cacertfile=/ca.pem", "cacertfile"), (redis, "rediss://h?ca=/ca.pem", "ca")],
)
def test_old_spellings_are_accepted_with_one_warning(parse: Parse, url: str, old: str) -> None:
    with capture_logs() as lines:
        assert parse(url).tls == TlsOptions("/ca.pem")
    assert lines == [{"event": "broker option renamed", "log_level": "warning", "option": old, "use": "tls_ca"}]
    with pytest.raises(SettingsError, match="tls_ca is given twice"):
        parse(f"{url}&tls_ca=/other.pem")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://u:p@h:1/v?x=y", "amqp://h:1/v"),
        ("amqp://u:p@ss@h", "amqp://h"),
        ("redis://h", "redis://h"),
        ("nonsense", "nonsense"),
        ("u:p@nonsense", "nonsense"),
    ],
)
def test_a_url_is_shown_without_credentials_and_options(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_a_url_without_a_host() -> None:
    assert rabbitmq("amqp://").where == "localhost:5672/" and redis("redis:///2").where == "localhost:6379/2"
    with pytest.raises(SettingsError, match="it names no host"):
        nats("nats://")


def test_a_client_certificate_is_loaded() -> None:
    with pytest.raises(FileNotFoundError):
        TlsOptions(cert="/nowhere.pem", key="/nowhere.key").context()
    assert TlsOptions().context().check_hostname
