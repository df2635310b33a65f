"""Secrets are hidden, and hiding them takes no longer than reading them."""

from __future__ import annotations

import pytest

import processor_time
from oraculo import redaction
from oraculo.redaction import TEXT_MAX_CHARS, passwords_of, redact, urls


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("nats://s3cr3t-token@host:4222", "nats://***@host:4222"),
        ("nats://ana:senha@a:4222,nats://tok@b", "nats://ana:***@a:4222,nats://***@b"),
        (
            "mongodb://u:p@a,b/?tls=true&tlsCertificateKeyFilePassword=abc&authSource=admin",
            "mongodb://u:***@a,b/?tls=true&tlsCertificateKeyFilePassword=***&authSource=admin",
        ),
        ("postgresql://u:pa/ss@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:pa?ss@h:5432/db", "postgresql://u:***@h:5432/db"),
        ("postgresql://u:pa#ss@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql://h/db?options=-c%20x&application_name=a@b",
            "postgresql://h/db?options=-c%20x&application_name=a@b",
        ),
        ("redis://:p@h/0", "redis://:***@h/0"),
        ("http://h/a?token=abc&x=1", "http://h/a?token=***&x=1"),
        ("kafka://u:p@h:9092/?sasl=PLAIN&tls=1", "kafka://u:***@h:9092/?sasl=PLAIN&tls=1"),
        ("pyamqp://guest@rabbitmq//", "pyamqp://guest@rabbitmq//"),
        ("postgresql://ana@h/db", "postgresql://ana@h/db"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert urls(url) == shown


def test_the_secrets_of_urls_are_known() -> None:
    assert passwords_of("nats://tok@h,postgresql://ana@h,amqp://u:p/w@h/?password=q&x=1,http://h") == [
        "tok",
        "p/w",
        "q",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("private_key=abc n=1", "private_key=*** n=1"),
        ("passphrase: abc", "passphrase: ***"),
        ("got ghp_0123456789abcdef0123 back", "got *** back"),
        ("AKIAIOSFODNN7EXAMPLE is used", "*** is used"),
        ("key orc_0123456789abcdefXYZ", "key ***"),
        (f"got orc_kabcdefghijk_{'a-_B' * 10}abc back", "got *** back"),
        (f"got orcs_sabcdefghijk_{'-a_B' * 10}abc back", "got *** back"),
        ("x -----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- y", "x *** y"),
        ("-----BEGIN PRIVATE KEY-----\nabc and no end", "***"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_long_text_is_cut_before_it_is_looked_at() -> None:
    assert len(redact("a" * 1_000_000)) == TEXT_MAX_CHARS
    assert redact("Bearer abcdefgh " * 100, 20) == "Bearer *** Bearer **"


@pytest.mark.parametrize(
    "shape",
    [
        *(
            "eyJ-",
            "eyJ.",
            "eyJaaaaaa.",
            "whsec_-",
            "token ",
            "token=",
            "token= token:",
            "a_token_",
            "bearer ",
            "basic%20",
        ),
        *(
            "://a:",
            "://a:b@",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----",
            "key",
            "secret'\"",
            "ghp_",
            "AKIA",
            "\u0130token",
        ),
    ],
)
def test_no_shape_of_a_mebibyte_holds_up_others(shape: str) -> None:
    text = shape * (1024 * 1024 // len(shape))
    for run in (lambda: redact(text), lambda: redaction.clean({text: text}), lambda: urls(text)):
        assert processor_time.seconds(run, 0.1) < 0.1
