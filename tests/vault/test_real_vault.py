"""References to secrets in a real Vault: each way to log in, both versions of KV, and what it refuses."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tools.servers.vault import Vault

from oraculo.errors import SettingsError
from oraculo.settings import vault
from oraculo.settings.settings import load
from vault.administrator import SECRET, Administrator

KAFKA = "vault:secret/data/oraculo/kafka#password"
AUDIENCE = "oraculo-test"


def settings_of(running: Vault, login: dict[str, str], reference: str = KAFKA) -> dict[str, str]:
    return {"VAULT_ADDRESS": running.url, "KAFKA_SASL_PASSWORD": reference, **login}


def signed(key: rsa.RSAPrivateKey, **claims: object) -> str:
    """A JWT as an issuer would make it."""
    now = int(time.time())
    said = {"aud": AUDIENCE, "sub": "oraculo", "iat": now, "nbf": now, "exp": now + 600, **claims}
    parts = ({"alg": "RS256", "typ": "JWT"}, said)
    text = b".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    seal = key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    return (text + b"." + urlsafe_b64encode(seal).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def issuer(administrator: Administrator) -> rsa.RSAPrivateKey:
    """The key of an issuer whose tokens are let in with the role `orchestrator-dynamic`."""
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    administrator.ask("POST", "sys/auth/jwt", {"type": "jwt"})
    administrator.ask("POST", "auth/jwt/config", {"jwt_validation_pubkeys": [public.decode()]})
    role = {"role_type": "jwt", "user_claim": "sub", "bound_audiences": [AUDIENCE], "token_policies": ["oraculo"]}
    administrator.ask("POST", "auth/jwt/role/orchestrator-dynamic", role)
    return key


@pytest.fixture(scope="module")
def role(administrator: Administrator) -> dict[str, str]:
    """The settings of a role of AppRole."""
    administrator.ask("POST", "sys/auth/approle", {"type": "approle"})
    administrator.ask("POST", "auth/approle/role/oraculo", {"token_policies": ["oraculo"]})
    role_id = administrator.ask("GET", "auth/approle/role/oraculo/role-id")["data"]["role_id"]
    secret_id = administrator.ask("POST", "auth/approle/role/oraculo/secret-id")["data"]["secret_id"]
    return {"VAULT_AUTH_METHOD": "approle", "VAULT_ROLE_ID": role_id, "VAULT_SECRET_ID": secret_id}


def test_a_token_reads_both_versions_of_kv(running: Vault, administrator: Administrator) -> None:
    given = settings_of(running, {"VAULT_TOKEN": administrator.make_token("oraculo")})
    references = {
        "ORACULO_BROKER": "vault:secret/data/oraculo/kafka#uri",
        "POSTGRES_PASSWORD": "vault:kv1/oraculo#password",
    }
    chosen = load({**given, **references}, None)
    assert (chosen.kafka.password, chosen.broker, chosen.postgres.password) == (SECRET, f"amqp://u:{SECRET}@h", SECRET)


def test_approle(running: Vault, role: dict[str, str]) -> None:
    assert load(settings_of(running, role), None).kafka.password == SECRET
    with pytest.raises(SettingsError, match="400"):
        load(settings_of(running, {**role, "VAULT_SECRET_ID": "another"}), None)


def test_jwt(running: Vault, issuer: rsa.RSAPrivateKey, tmp_path: Path) -> None:
    path = tmp_path / "jwt"
    login = {"VAULT_AUTH_METHOD": "jwt", "VAULT_JWT_PATH": str(path)}
    path.write_text(signed(issuer) + "\n")
    assert load(settings_of(running, login), None).kafka.password == SECRET
    stranger = rsa.generate_private_key(65537, 2048)
    for refused in (signed(stranger), signed(issuer, aud="another"), signed(issuer, exp=1)):
        path.write_text(refused)
        with pytest.raises(SettingsError, match="refuses auth/jwt/login") as said:
            load(settings_of(running, login), None)
        assert refused not in str(said.value)


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("vault:secret/data/oraculo/nothing#x", "nothing at secret/data/oraculo/nothing"),
        ("vault:secret/data/oraculo/kafka#x", "no field 'x'"),
        ("vault:secret/data/oraculo/kafka#number", "not a text"),
        ("vault:kv1/other#password", r"refuses kv1/other \(403\)"),
        ("vault:secret/oraculo/kafka#password", "secret/oraculo/kafka"),  # without the `data/` of version 2
    ],
)
def test_what_the_policy_or_the_path_does_not_give(
    running: Vault, administrator: Administrator, reference: str, says: str
) -> None:
    token = administrator.make_token("oraculo")
    with pytest.raises(SettingsError, match=says) as refused:
        load(settings_of(running, {"VAULT_TOKEN": token}, reference), None)
    assert token not in str(refused.value) and "\n" not in str(refused.value)


def test_a_revoked_token_is_refused(running: Vault, administrator: Administrator) -> None:
    token = administrator.make_token("oraculo")
    administrator.ask("POST", "auth/token/revoke", {"token": token})
    with pytest.raises(SettingsError, match="403"):
        load(settings_of(running, {"VAULT_TOKEN": token}), None)


def test_a_secret_that_was_deleted_is_not_there(running: Vault, administrator: Administrator) -> None:
    administrator.ask("POST", "secret/data/oraculo/old", {"data": {"password": "x"}})
    administrator.ask("DELETE", "secret/data/oraculo/old")
    token = administrator.make_token("oraculo")
    with pytest.raises(SettingsError, match="nothing at secret/data/oraculo/old"):
        load(settings_of(running, {"VAULT_TOKEN": token}, "vault:secret/data/oraculo/old#password"), None)


def test_a_vault_that_is_away_is_asked_again(
    running: Vault, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands still when it is asked first, and goes on while it is asked again."""
    monkeypatch.setattr(vault, "RETRY_FIRST_S", 0.05)
    login = {"VAULT_TOKEN": administrator.make_token("oraculo"), "VAULT_TIMEOUT_SECONDS": "1", "VAULT_MAX_RETRIES": "8"}
    running.freeze()
    goes_on = threading.Timer(1.2, running.thaw)
    goes_on.start()
    try:
        assert load(settings_of(running, login), None).kafka.password == SECRET
    finally:
        goes_on.join()
