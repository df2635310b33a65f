"""Secrets by reference: `file:` and `env:` instead of the value, read once and shown nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from cli.processes import environment
from oraculo import Client, redaction
from oraculo.errors import SettingsError
from oraculo.settings.settings import VARIABLES, load
from waiting import DEADLINE_S

SECRET = "canary-Zk29xq-never-shown"
# Every setting that takes references: what it may lead to, and where the value is found.
CASES = {
    "ORACULO_STORE": (f"postgresql://u:{SECRET}@h/d", "store"),
    "ORACULO_BROKER": (f"amqp://u:{SECRET}@h", "broker"),
    "ORACULO_URL": (f"https://u:{SECRET}@h", "url"),
    "ORACULO_API_KEY": (SECRET, "api_key"),
    "ORACULO_WEBHOOK_SECRET": (f"whsec_{SECRET}", "webhooks.secrets"),
    "POSTGRES_PASSWORD": (SECRET, "postgres.password"),
    "ORACULO_CACHE": (f"redis://:{SECRET}@h", "cache.url"),
    "REDIS_PASSWORD": (SECRET, "cache.password"),
    "ORACULO_CELERY_BROKER": (f"amqp://u:{SECRET}@h", "celery.broker"),
    "ORACULO_CELERY_BACKEND": (f"redis://:{SECRET}@h", "celery.backend"),
    "TEMPORAL_API_KEY": (SECRET, "temporal.api_key"),
    "KAFKA_SCHEMA_REGISTRY_URL": (f"https://u:{SECRET}@h", "kafka.schema_registry"),
    "KAFKA_SASL_PASSWORD": (SECRET, "kafka.password"),
    "AWS_SECRET_ACCESS_KEY": (SECRET, "s3.secret_key"),
    "AWS_SESSION_TOKEN": (SECRET, "s3.session"),
    "ORACULO_S3_ENDPOINT": (f"https://u:{SECRET}@h", "s3.endpoint"),
    "MONGODB_URI": (f"mongodb://u:{SECRET}@h", "mongodb.uri"),
    "OTEL_EXPORTER_ENDPOINT": (f"https://u:{SECRET}@h", "traces.endpoint"),
    "ORACULO_OIDC_ISSUER": (f"https://u:{SECRET}@h", "oidc.issuer"),
    "ORACULO_OIDC_CLIENT_SECRET": (SECRET, "oidc.client_secret"),
    "ORACULO_DATA_KEY": ("6d" * 32, "sealing.key"),
    "ORACULO_DATA_KEY_OLD": ("6e" * 32, "sealing.old_keys"),
    "ORACULO_SIGNING_KEY": ("orcw_kaaaaaaaaaaa_" + "A" * 43, "signatures.key"),
    "ORACULO_SLA_WEBHOOK": (f"https://u:{SECRET}@h", "sla.webhook"),
    "ORACULO_POLICIES": (f"opa:https://u:{SECRET}@h", "policies.engine"),
    "VAULT_ADDRESS": (f"https://u:{SECRET}@h", "vault.address"),
    "VAULT_TOKEN": (SECRET, "vault.token"),
    "VAULT_SECRET_ID": (SECRET, "vault.secret_id"),
    "OTEL_EXPORTER_HEADERS": (f"x-auth={SECRET}", "traces.headers"),
}
BESIDE = {"ORACULO_OIDC_ISSUER": {"ORACULO_OIDC_CLIENT_ID": "x"}}  # what else has to be set


def test_every_secret_and_every_address_takes_references() -> None:
    assert {one.name for one in VARIABLES if one.by_reference} == set(CASES)
    assert {one.name for one in VARIABLES if one.secret} <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_file_and_a_variable_are_read_and_only_the_reference_is_shown(name: str, tmp_path: Path) -> None:
    content, field = CASES[name]
    place = tmp_path / "place"
    place.write_text(f"{content}\n", encoding="utf-8")
    for reference in (f"file:{place}", "env:ELSEWHERE"):
        known = load({**BESIDE.get(name, {}), name: reference, "ELSEWHERE": f" {content} "}, None)
        found = attrgetter(field)(known)
        assert (",".join(found) if isinstance(found, tuple) else found) == content
        assert known.shown()[name] == reference
        assert SECRET not in redaction.redact(f"failed with {content}")


@pytest.mark.parametrize(
    ("prepare", "reference", "said"),
    [
        (lambda _: None, "file:{}/absent", "there is no such file"),
        (lambda _: None, "file:{}", "it is not a file"),
        (lambda at: (at / "empty").write_text(" \n"), "file:{}/empty", "there is no text there"),
        (lambda at: (at / "two").write_text(f"{SECRET}\nx\n"), "file:{}/two", "one line of text"),
        (lambda at: (at / "raw").write_bytes(b"\xff\xfe" + SECRET.encode()), "file:{}/raw", "not UTF-8"),
        (lambda at: (at / "big").write_text(SECRET * 4000), "file:{}/big", "more than 65536 bytes"),
        (lambda _: None, "env:ABSENT", "there is no variable ABSENT in the environment"),
        (lambda _: None, "env:", "file:/path, env:NAME or vault:path#field"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_setting_and_reference(
    prepare: object, reference: str, said: str, tmp_path: Path
) -> None:
    prepare(tmp_path)  # type: ignore[operator]
    given = reference.format(tmp_path)
    with pytest.raises(SettingsError) as error:
        load({"ORACULO_API_KEY": given}, None)
    line = str(error.value)
    assert line.startswith(f"ORACULO_API_KEY={given!r} is not allowed: ") and said in line
    assert "\n" not in line and SECRET not in line


@pytest.mark.parametrize("name", ["ORACULO_STORE", "ORACULO_BROKER", "OTEL_EXPORTER_HEADERS", "MONGODB_URI"])
def test_a_wrong_content_is_refused_without_being_shown(name: str) -> None:
    with pytest.raises(SettingsError) as error:
        load({name: "env:OTHER", "OTHER": SECRET}, None)
    assert str(error.value).startswith(f"{name}='env:OTHER' is not allowed: what it leads to has to be ")
    assert SECRET not in str(error.value)


def test_each_part_of_a_list_may_be_a_reference_and_the_others_stay_hidden(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("whsec_old")
    known = load({"ORACULO_WEBHOOK_SECRET": f"whsec_{SECRET}, file:{tmp_path}/old"}, None)
    assert known.webhooks.secrets == (f"whsec_{SECRET}", "whsec_old")
    assert known.shown()["ORACULO_WEBHOOK_SECRET"] == f"***,file:{tmp_path}/old"
    known = load({"ORACULO_BROKER": f"amqp://u:{SECRET}@a,env:OTHER", "OTHER": "redis://:x@b"}, None)
    assert known.broker == f"amqp://u:{SECRET}@a,redis://:x@b"
    assert known.shown()["ORACULO_BROKER"] == "amqp://u:***@a,env:OTHER"


def test_what_a_reference_leads_to_is_taken_as_it_is() -> None:
    assert load({"ORACULO_API_KEY": "env:A", "A": "env:B", "B": "x"}, None).api_key == "env:B"


def test_settings_that_are_no_secrets_take_no_references() -> None:
    assert load({"ORACULO_REPLICA_NAME": "env:A", "A": "x"}, None).replica.name == "env:A"


class TestDotenv:
    def test_files_of_its_own_folder_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "secrets").mkdir()
        (tmp_path / "secrets" / "key").write_text(SECRET)
        (tmp_path / ".env").write_text("ORACULO_API_KEY=file:secrets/key\n")
        assert load({}, tmp_path / ".env").api_key == SECRET

    @pytest.mark.parametrize("reference", ["file:{}/key", "file:../key", "file:link", "env:HOME"])
    def test_nothing_of_elsewhere_is_read(self, reference: str, tmp_path: Path) -> None:
        (tmp_path / "key").write_text(SECRET)
        folder = tmp_path / "stranger"
        folder.mkdir()
        (folder / "link").symlink_to(tmp_path / "key")
        (folder / ".env").write_text(f"OTEL_EXPORTER_HEADERS={reference.format(tmp_path)}\n")
        with pytest.raises(SettingsError, match=r"OTEL_EXPORTER_HEADERS=.*in \.env only files"):
            load(dict(os.environ), folder / ".env")


def test_a_client_reads_its_key_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(SECRET)
    monkeypatch.setenv("ORACULO_API_KEY", f"file:{tmp_path}/key")
    with Client() as client:
        assert client._config.options["headers"]["Authorization"] == f"Bearer {SECRET}"
    monkeypatch.setenv("ORACULO_API_KEY", f"file:{tmp_path}/absent")
    with pytest.raises(SettingsError, match=r"ORACULO_API_KEY='file:.*there is no such file"):
        Client()


def test_doctor_names_the_reference_and_not_its_content(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "broker").write_text(f"amqp://guest:{SECRET}@127.0.0.1:1/")
    variables = {"ORACULO_API_KEY": f"file:{tmp_path}/key", "ORACULO_BROKER": f"file:{tmp_path}/broker"}
    done = subprocess.run(
        [sys.executable, "-m", "oraculo", "doctor"],
        cwd=tmp_path,
        env=environment(tmp_path, **variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert f"ORACULO_API_KEY=file:{tmp_path}/key" in said.replace(" ", "") and SECRET not in said.replace(" ", "")
