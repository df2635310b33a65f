"""Users of a real identity provider: bearer tokens, the login of the dashboard, and tokens that are not good."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import random
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from tools.servers.oidc import Oidc

from api.conftest import API, ONE, client_of, settings_for
from cli.processes import Cli
from oraculo.adapters.clock import MonotonicClock
from oraculo.adapters.identity import jws
from oraculo.adapters.identity.oidc import OidcOptions, OidcProvider
from oraculo.api.app import create_app
from oraculo.api.auth import check_binding
from oraculo.core.access import SCOPES_OF, AccessRole, PrincipalKind, Scope
from oraculo.errors import IdentityUnavailableError, SettingsError
from oraculo.ports.clock import Clock
from oraculo.runtime.user_sessions import text_of_user, user_of_text
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from servers import own

HTML = {"Accept": "text/html"}
BACK = "http://127.0.0.1/volta"
BROKEN = 10_000


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oidc]:
    server = own("oidc", tmp_path_factory.mktemp("provider"))
    assert isinstance(server, Oidc)
    server.redirect_uri = "http://oraculo.test/login"
    with server:
        yield server


def variables(issuer: str, **more: str) -> dict[str, str]:
    return {
        "ORACULO_URL": "http://oraculo.test",
        "ORACULO_OIDC_ISSUER": issuer,
        "ORACULO_OIDC_CLIENT_ID": "oraculo",
        "ORACULO_OIDC_CLIENT_SECRET": Oidc.secret,
        **more,
    }


@asynccontextmanager
async def serving(folder: Path, issuer: str, **more: str) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Oraculo(settings_for(folder, **variables(issuer, **more))))
    async with app.router.lifespan_context(app), client_of(app) as client:
        yield client


def at_provider(address: str, user: str) -> str:
    """What a browser does at the provider, as this user, until it is sent back; the address that it is sent to."""
    with httpx2.Client(trust_env=False) as browser:
        address = f"{address}&{urlencode({'login_hint': user})}"
        for _ in range(10):
            answer = browser.get(address)
            assert answer.status_code in (302, 303), answer.text
            following = urljoin(address, answer.headers["location"])
            if urlsplit(following).netloc != urlsplit(address).netloc:
                return following
            address = following
    raise AssertionError("the provider never sent the browser back")


def tokens_of(provider: Oidc, user: str) -> dict[str, Any]:
    """What a program of its own gets for this user: access token and ID token."""
    verifier = secrets.token_urlsafe(32)
    query = {
        "response_type": "code",
        "client_id": "publico",
        "redirect_uri": BACK,
        "scope": "openid",
        "nonce": "n",
        "code_challenge": jws.encoded(hashlib.sha256(verifier.encode()).digest()),
        "code_challenge_method": "S256",
    }
    back = at_provider(f"{provider.url}/auth?{urlencode(query)}", user)
    form = {
        "grant_type": "authorization_code",
        "code": parse_qs(urlsplit(back).query)["code"][0],
        "redirect_uri": BACK,
        "client_id": "publico",
        "code_verifier": verifier,
    }
    answer = httpx2.post(f"{provider.url}/token", data=form, trust_env=False)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Later(MonotonicClock):
    """A clock that is ahead."""

    def __init__(self, ahead: timedelta) -> None:
        super().__init__()
        self.ahead = ahead

    def now(self) -> datetime:
        return super().now() + self.ahead


def judge(provider: Oidc, clock: Clock | None = None, **changed: Any) -> OidcProvider:
    options = {
        "issuer": provider.url,
        "client_id": "oraculo",
        "client_secret": Oidc.secret,
        "audience": "oraculo",
        "role_claim": "roles",
        "roles": {},
        "redirect_uri": "http://oraculo.test/login",
        **changed,
    }
    return OidcProvider(OidcOptions(**options), clock or MonotonicClock())


# -- bearer tokens -----------------------------------------------------------------------------------------------------


async def test_a_token_is_a_user_with_the_roles_of_its_claim(provider: Oidc, tmp_path: Path) -> None:
    operator = tokens_of(provider, "ana+operador")["access_token"]
    reader = tokens_of(provider, "bia+leitor+auditor")["access_token"]
    nobody = tokens_of(provider, "caio+trabalhador+root")["access_token"]
    async with serving(tmp_path, provider.url) as client:
        who = (await client.get(f"{API}/whoami", headers=bearer(operator))).json()
        assert (who["ator"], who["tipo"], who["tenant"]) == ("ana+operador", "user", "default")
        assert set(who["scopes"]) == SCOPES_OF[AccessRole.OPERADOR]
        made = await client.post(
            f"{API}/orchestrations", json={**ONE, "correlation_id": "c1"}, headers=bearer(operator)
        )
        assert made.status_code == 202
        events = (await client.get(f"{API}/orchestrations/c1/events", headers=bearer(reader))).json()["events"]
        assert events[0]["ator"] == "ana+operador"
        refused = await client.post(f"{API}/orchestrations", json=ONE, headers=bearer(reader))
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        for path in ("whoami", "orchestrations", "keys"):
            assert (await client.get(f"{API}/{path}", headers=bearer(nobody))).status_code == 403
        assert (await client.get(f"{API}/orchestrations")).status_code == 401


async def test_values_of_the_claim_may_be_mapped(provider: Oidc) -> None:
    token = tokens_of(provider, "ana+equipe-a+admin")["access_token"]
    actor = await judge(provider, roles={"equipe-a": AccessRole.LEITOR}).actor_of(token)
    assert actor is not None and actor.scopes == SCOPES_OF[AccessRole.LEITOR] and actor.kind is PrincipalKind.USER
    nested = judge(provider, role_claim="realm_access.roles")
    assert nested._roles({"realm_access": {"roles": ["leitor"]}}) == [AccessRole.LEITOR]
    assert nested._roles({"realm_access": "x"}) == [] and judge(provider)._roles({"roles": "leitor x"}) != []


async def test_the_tenant_is_what_its_claim_says(provider: Oidc) -> None:
    token = tokens_of(provider, "ana+admin")["access_token"]
    actor = await judge(provider).actor_of(token)
    assert actor is not None and actor.tenant == "default"
    assert await judge(provider, tenant_claim="org").actor_of(token) is None  # no such claim: nobody's user
    claims = {"sub": "ana", "roles": ["admin"], "org": {"espaco": "acme"}}
    judged = judge(provider, tenant_claim="org.espaco")
    user = judged._actor(claims, claims)
    assert (user.tenant, user.home) == ("acme", "acme") and Scope.METRICS_READ not in user.scopes
    assert judged._actor({"sub": "ana"}, claims).tenant == "acme"  # in the token that has the roles
    assert user_of_text(text_of_user(user)) == user
    for wrong in ("Acme", "*", "", 7, ["acme"], None):
        with pytest.raises(jws.TokenError):
            judged._actor({**claims, "org": {"espaco": wrong}}, {})


async def test_a_token_for_somebody_else_an_old_one_and_an_id_token_are_refused(provider: Oidc, tmp_path: Path) -> None:
    tokens = tokens_of(provider, "ana+admin")
    access = tokens["access_token"]
    assert await judge(provider).actor_of(access) is not None
    assert await judge(provider, audience="other").actor_of(access) is None
    assert await judge(provider, Later(timedelta(minutes=10, seconds=50))).actor_of(access) is not None  # skew
    assert await judge(provider, Later(timedelta(minutes=11, seconds=10))).actor_of(access) is None
    assert await judge(provider, Later(timedelta(minutes=-2))).actor_of(access) is None  # from the future
    assert await judge(provider, audience="publico").actor_of(tokens["id_token"]) is None
    with pytest.raises(IdentityUnavailableError, match="does not say that it is that issuer"):
        await judge(provider, issuer=provider.url.replace("127.0.0.1", "localhost"))._provider()
    known = judge(provider)
    assert await known.actor_of(access) is not None
    known._clock = Later(timedelta(minutes=12))
    assert await known.actor_of(access) is None  # remembered, but not for longer than it is good


async def test_expired_tokens_lock_nobody_out(provider: Oidc, tmp_path: Path) -> None:
    old = tokens_of(provider, "ana+admin")["access_token"][:-8] + "AAAAAAAA"
    async with serving(tmp_path, provider.url, ORACULO_API_KEY="curta") as client:
        for _ in range(30):
            assert (await client.get(f"{API}/whoami", headers=bearer(old))).status_code == 401
        assert (await client.get(f"{API}/whoami", headers=bearer("curta"))).status_code == 200


async def test_keys_of_the_provider_are_remembered_and_a_provider_that_is_away_is_said(tmp_path: Path) -> None:
    server = own("oidc", tmp_path)
    assert isinstance(server, Oidc)
    with server:
        token = tokens_of(server, "ana+leitor")["access_token"]
        known = judge(server)
        assert await known.actor_of(token) is not None
    known._known.clear()
    assert await known.actor_of(token) is not None  # its keys are known
    header = jws.encoded(json.dumps({"alg": "RS256", "kid": "unknown"}).encode())
    assert await known.actor_of(f"{header}.{token.split('.')[1]}.AAAA") is None
    async with serving(tmp_path, server.url) as client:
        answer = await client.get(f"{API}/whoami", headers=bearer(token))
        assert (answer.status_code, answer.json()["code"]) == (503, "identity_unavailable")
        assert (await client.get("/health", headers=bearer(token))).status_code == 200
        page = await client.get("/login?provider=1", headers=HTML)
        assert page.status_code == 403 and "identity provider" in page.text


# -- tokens that are not good ------------------------------------------------------------------------------------------


def rebuilt(token: str, header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """The token with these changes (None removes), signed by `sign`."""
    parts = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]
    for part, changes in zip(parts, (header, claims), strict=True):
        part.update(changes)
        for name in [name for name, value in part.items() if value is None]:
            del part[name]
    signed = ".".join(jws.encoded(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{jws.encoded(sign(signed.encode()))}"


def broken_tokens(good: str, other: str, public: dict[str, Any]) -> Iterator[str]:
    chance = random.Random(17)
    key = ec.generate_private_key(ec.SECP256R1())
    forger = rsa.generate_private_key(65537, 2048)
    jwk = {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}

    def es256(signed: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(signed, ec.ECDSA(SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    def rs256(signed: bytes) -> bytes:
        return forger.sign(signed, padding.PKCS1v15(), SHA256())

    numbers = rsa.RSAPublicNumbers(jws._number(public["e"]), jws._number(public["n"])).public_key()
    pem = numbers.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    shared = [pem, pem.strip(), json.dumps(public).encode(), b"", b"secret"]
    kinds: list[Callable[[], str]] = [
        lambda: rebuilt(good, {"alg": "none"}, {}, lambda _: b"x").rpartition(".")[0] + ".",
        lambda: rebuilt(
            good, {"alg": chance.choice(["None", "NONE", "nOnE", "", None, "HS256", "RS1"])}, {}, lambda _: b"x"
        ),
        lambda: rebuilt(good, {"alg": "HS256"}, {}, lambda text: hmac.digest(chance.choice(shared), text, "sha256")),
        lambda: rebuilt(good, {"alg": "ES256", "kid": "curve"}, {}, es256),
        lambda: rebuilt(good, {"alg": "ES256", "kid": "rsa"}, {}, es256),
        lambda: rebuilt(good, {"alg": "ES256", "jwk": jwk, "jku": "http://127.0.0.1:1/"}, {}, es256),
        lambda: rebuilt(good, {"alg": "ES256", "kid": chance.choice(["../x", "' or 1", None, 7, ""])}, {}, es256),
        lambda: rebuilt(good, {"crit": ["b64"], "b64": False}, {}, es256),
        lambda: rebuilt(good, {"alg": "PS256"}, {}, lambda _: secrets.token_bytes(256)),
        lambda: rebuilt(good, {}, {"roles": ["admin"]}, lambda _: base64.urlsafe_b64decode(good.split(".")[2] + "==")),
        lambda: rebuilt(good, {}, {"sub": chance.choice(["local", "api-key", "", None, 7])}, lambda _: b"x" * 256),
        lambda: rebuilt(good, {}, {"exp": chance.choice([None, "x", True, 1e300, -1, [9]])}, lambda _: b"x" * 256),
        lambda: rebuilt(good, {}, {"aud": chance.choice([None, [], {}, "x", [["oraculo"]]])}, lambda _: b"x" * 256),
        lambda: rebuilt(
            good, {}, {"iss": chance.choice([None, "x", [], "https://evil.example"])}, lambda _: b"x" * 256
        ),
        lambda: good[: chance.randrange(len(good))],
        lambda: good + chance.choice(["=", "A", ".", ".A", " ", "\n", "\x00", "é"]),
        lambda: ".".join(chance.sample([*good.split("."), *other.split(".")[:2]], 3)),
        lambda: ".".join([good.split(".")[0], other.split(".")[1], good.split(".")[2]]),
        lambda: ".".join(
            chance.choice(["", "e30", "W10", "bnVsbA", "eyJhbGciOiJSUzI1NiJ9", "{}", "..", "-"]) for _ in range(3)
        ),
        lambda: "eyJhbGciOiJSUzI1NiJ9." + jws.encoded(b"[" * 5000) + ".AAAA",
        lambda: "A" * chance.randrange(20_000) + "." + "B" * 10 + "." + "C" * 10,
        lambda: good.replace("-", "+", 1).replace("_", "/", 1) if set("-_") & set(good) else good + "=",
    ]
    yield rebuilt(good, {}, {}, rs256)
    made = 1
    while made < BROKEN:
        kind = chance.randrange(2 * len(kinds))
        if kind < len(kinds):
            token = kinds[kind]()
        else:  # one letter of it
            at = chance.randrange(len(good))
            token = good[:at] + chance.choice("ABCDEFabcdef0189-_.=+/ é") + good[at + 1 :]
        if token not in (good, other):
            made += 1
            yield token


async def test_of_10000_broken_tokens_none_is_accepted(provider: Oidc, tmp_path: Path) -> None:
    good, other = (tokens_of(provider, user)["access_token"] for user in ("ana+leitor", "bia+admin"))
    keys = httpx2.get(f"{provider.url}/jwks", trust_env=False).json()["keys"]
    public = next(key for key in keys if key["kid"] == "rsa")
    known = judge(provider)
    assert await known.actor_of(good) is not None and await known.actor_of(other) is not None
    accepted, seen = [], []
    for token in broken_tokens(good, other, public):
        seen.append(token)
        if await known.actor_of(token) is not None:
            accepted.append(token)
    assert (len(seen), accepted) == (BROKEN, [])
    async with serving(tmp_path, provider.url) as client:
        for token in seen[:: BROKEN // 200]:
            header = token.encode("latin-1", "replace").replace(b"\n", b"").replace(b"\x00", b"").strip()
            if header not in (good.encode(), other.encode(), b""):
                answer = await client.get(f"{API}/whoami", headers={b"Authorization": b"Bearer " + header})
                assert answer.status_code in (401, 429), token
        assert (await client.get(f"{API}/whoami", headers=bearer(good))).status_code == 200


@pytest.mark.parametrize("algorithm", jws.ALGORITHMS)
def test_every_algorithm_takes_its_own_kind_of_key_only(algorithm: str) -> None:
    modulus, curve = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
    edwards = ed25519.Ed25519PrivateKey.generate()
    numbers, point = modulus.public_key().public_numbers(), curve.public_key().public_numbers()

    def number(value: int, size: int) -> str:
        return jws.encoded(value.to_bytes(size))

    raw = edwards.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    document = {
        "keys": [
            {"kty": "RSA", "kid": "k", "n": number(numbers.n, 256), "e": "AQAB"},
            {"kty": "EC", "kid": "k", "crv": "P-256", "x": number(point.x, 32), "y": number(point.y, 32)},
            {"kty": "OKP", "kid": "k", "crv": "Ed25519", "x": jws.encoded(raw)},
            {"kty": "RSA", "kid": "enc", "use": "enc", "n": number(numbers.n, 256), "e": "AQAB"},
            {"kty": "RSA", "kid": "short", "n": jws.encoded(b"\xff" * 64), "e": "AQAB"},
            {"kty": "oct", "kid": "k", "k": "AAAA"}, {"kty": "RSA"}, 7,
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        ]
    }  # fmt: skip
    found = jws.keys_of(document)
    assert [one.kid for one in found] == ["k", "k", "k"] and jws.keys_of([]) == [] == jws.keys_of({"keys": None})

    def ecdsa(text: bytes) -> bytes:
        r, s = decode_dss_signature(curve.sign(text, ec.ECDSA(SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    signers: dict[str, Callable[[bytes], bytes]] = {
        "RS256": lambda text: modulus.sign(text, padding.PKCS1v15(), SHA256()),
        "PS256": lambda text: modulus.sign(text, padding.PSS(padding.MGF1(SHA256()), 32), SHA256()),
        "ES256": ecdsa,
        "EdDSA": edwards.sign,
    }
    for signed_as, sign in signers.items():
        token = rebuilt("e30.e30.", {"alg": algorithm, "kid": "k"}, {}, sign)
        if signed_as == algorithm:
            jws.parse(token).check_signature(found)
            with pytest.raises(jws.TokenError):
                jws.parse(token).check_signature([one for one in found if one.kid != "k"])
        else:
            with pytest.raises(jws.TokenError):
                jws.parse(token).check_signature(found)


# -- the login of the dashboard ----------------------------------------------------------------------------------------


async def come_back(client: httpx2.AsyncClient, user: str, to: str = "/runs") -> httpx2.Response:
    left = await client.get(f"/login?{urlencode({'provider': 1, 'next': to})}", headers=HTML)
    assert left.status_code == 303
    query = parse_qs(urlsplit(left.headers["location"]).query)
    assert query["code_challenge_method"] == ["S256"] and query["state"] and query["nonce"]
    back = await asyncio.to_thread(at_provider, left.headers["location"], user)
    return await client.get(back, headers=HTML)


async def test_a_user_enters_works_and_leaves(provider: Oidc, tmp_path: Path) -> None:
    async with serving(tmp_path, provider.url) as client:
        page = await client.get("/runs", headers=HTML)
        assert page.headers["location"] == "/login?next=%2Fruns"
        assert "/login?provider=1&amp;next=/runs" in (await client.get("/login?next=/runs", headers=HTML)).text
        done = await come_back(client, "ana+operador+auditor")
        assert done.status_code == 200 and 'content="0;url=/runs"' in done.text
        cookies = done.headers.get_list("set-cookie")
        assert any("oraculo_session=orcs_" in one and "SameSite=strict" in one and "HttpOnly" in one for one in cookies)
        runs = await client.get("/runs", headers=HTML)
        assert runs.status_code == 200
        assert (await client.get(f"{API}/whoami")).json()["ator"] == "ana+operador+auditor"
        token = re.search(r'name="csrf" content="([^"]+)"', runs.text)
        assert token is not None
        assert (await client.post(f"{API}/orchestrations", json=ONE)).status_code == 401  # without its token
        made = await client.post(f"{API}/orchestrations", json=ONE, headers={"X-CSRF-Token": token[1]})
        assert made.status_code == 202
        session = client.cookies.get("oraculo_session")
        left = await client.post("/ui/logout", data={"csrf": token[1]}, headers={"Origin": "http://oraculo.test"})
        assert left.headers["location"] == "/login"
        again = await client.get(f"{API}/whoami", headers={"Cookie": f"oraculo_session={session}"})
        assert again.status_code == 401


async def test_a_session_outlives_the_process_and_belongs_to_one_user(provider: Oidc, tmp_path: Path) -> None:
    async with serving(tmp_path, provider.url) as client:
        await come_back(client, "ana+leitor")
        session = client.cookies.get("oraculo_session")
    async with serving(tmp_path, provider.url) as client:
        who = (await client.get(f"{API}/whoami", headers={"Cookie": f"oraculo_session={session}"})).json()
        assert who["ator"] == "ana+leitor" and set(who["scopes"]) == SCOPES_OF[AccessRole.LEITOR]


async def test_who_has_no_role_is_told_and_stays_outside(provider: Oidc, tmp_path: Path) -> None:
    async with serving(tmp_path, provider.url) as client:
        done = await come_back(client, "caio+trabalhador")
        assert done.status_code == 403 and "has no role here" in done.text
        assert (await client.get(f"{API}/whoami")).status_code == 401


@pytest.mark.parametrize("part", ["state", "nonce", "verifier", "none", "code", "cookie", "error"])
async def test_a_return_that_is_not_of_this_attempt_is_refused(provider: Oidc, tmp_path: Path, part: str) -> None:
    async with serving(tmp_path, provider.url) as client:
        left = await client.get("/login?provider=1", headers=HTML)
        back = await asyncio.to_thread(at_provider, left.headers["location"], "ana+admin")
        kept = (client.cookies.get("oraculo_login") or "").split(".")
        client.cookies.clear()
        if part in ("state", "nonce", "verifier"):
            kept[("state", "nonce", "verifier").index(part)] = secrets.token_urlsafe(32)
        if part == "code":
            back = re.sub(r"code=[^&]+", "code=another", back)
        if part == "error":
            back = "/login?" + urlencode({"error": "access_denied", "state": kept[0]})
        cookie = {} if part == "cookie" else {"Cookie": f"oraculo_login={'.'.join(kept)}"}
        done = await client.get(back, headers={**HTML, **cookie})
        if part == "none":  # nothing is wrong; the second time it is
            assert done.status_code == 200
            client.cookies.clear()
            done = await client.get(back, headers={**HTML, **cookie})
        assert done.status_code == 403 and "oraculo_session" not in str(done.headers.get_list("set-cookie"))
        client.cookies.clear()
        assert (await client.get(f"{API}/whoami")).status_code == 401


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", "javascript:x", "/\\evil", "\x00"])
async def test_after_the_login_a_browser_stays_here(provider: Oidc, tmp_path: Path, where: str) -> None:
    async with serving(tmp_path, provider.url) as client:
        assert 'content="0;url=/"' in (await come_back(client, "ana+leitor", where)).text


def test_doctor_asks_the_provider(provider: Oidc, tmp_path: Path) -> None:
    for issuer, level in ((provider.url, "ok"), ("http://127.0.0.1:1", "broken")):
        done = Cli(tmp_path)("doctor", "--json", **variables(issuer))
        (found,) = [one for one in json.loads(done.stdout)["checks"] if one["name"] == "identity"]
        assert found["level"] == level and Oidc.secret not in done.stdout + done.stderr


# -- settings ----------------------------------------------------------------------------------------------------------


def test_with_a_provider_no_key_is_needed_beyond_loopback_and_everybody_is_asked() -> None:
    given = {**variables("https://id.example"), "ORACULO_HOST": "0.0.0.0"}
    check_binding(load(given, None))
    with pytest.raises(SettingsError, match="ORACULO_OIDC_ISSUER"):
        check_binding(load({"ORACULO_HOST": "0.0.0.0"}, None))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ORACULO_OIDC_ISSUER", "http://id.example", "https:// beyond this machine"),
        ("ORACULO_OIDC_ISSUER", "id.example", "a URL that begins with one of https://, http://"),
        ("ORACULO_OIDC_ISSUER", "", "the provider of ORACULO_OIDC_CLIENT_ID"),
        ("ORACULO_OIDC_CLIENT_ID", "", "a name, with ORACULO_OIDC_ISSUER"),
        ("ORACULO_OIDC_ROLES", "x=rei", "value=role with a role of leitor"),
        ("ORACULO_OIDC_ROLES", "x=trabalhador", "value=role with a role of leitor"),
        ("ORACULO_OIDC_ROLE_CLAIM", "", "anything but nothing"),
    ],
)
def test_a_wrong_setting_is_one_line(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(variables("https://id.example", **{name: value}), None)
    assert str(error.value).startswith(f"{name}={value!r} is not allowed: {said}")
