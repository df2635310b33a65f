"""SPIFFE identities: an orchestrator that knows workloads by the URI in their certificate, with certificates that an
authority of the test makes as SPIRE does: short lives, one URI, no name of a host."""

from __future__ import annotations

import datetime
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cli.processes import Process, Server, environment
from oraculo.api.spiffe import SpiffeIdentities, id_of, is_spiffe_id
from oraculo.client.tls import TlsFiles
from oraculo.core.access import AccessRole, is_user_id
from oraculo.errors import SettingsError
from oraculo.settings.settings import load
from waiting import DEADLINE_S, eventually

DOMAIN = "spiffe://casa.example"
WORKER, SENDER, OTHER = (f"{DOMAIN}/ns/trabalho/sa/{name}" for name in ("eco", "remetente", "de-acme"))
UNKNOWN = f"{DOMAIN}/ns/trabalho/sa/ninguem"
IDENTITIES = f"""
[[identity]]
id = "{WORKER}"
role = "trabalhador"
queues = ["escavador_eco"]

[[identity]]
id = "{SENDER}"
role = "operador"

[[identity]]
id = "{OTHER}"
role = "leitor"
tenant = "acme"
"""
HOUR = datetime.timedelta(hours=1)


class Authority:
    """Signs SVIDs of a trust domain."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "SPIRE")])
        self.certificate = self._signed(self._key, self._name, [x509.UniformResourceIdentifier(DOMAIN)], HOUR, ca=True)

    @property
    def bundle(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def write(self, folder: Path, name: str, *uris: str, hosts: tuple[str, ...] = (), life: Any = HOUR) -> TlsFiles:
        """An SVID as files, as spiffe-helper writes them: each is put in place whole."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [*map(x509.UniformResourceIdentifier, uris), *map(x509.DNSName, hosts)]
        made = self._signed(key, x509.Name([]), names, life)
        put(folder / f"{name}.pem", made.public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        put(
            folder / f"{name}.key",
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain),
        )
        return TlsFiles(f"{folder}/bundle.pem", f"{folder}/{name}.pem", f"{folder}/{name}.key")

    def _signed(
        self, key: Any, name: x509.Name, names: list[x509.GeneralName], life: datetime.timedelta, *, ca: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
        usage = x509.KeyUsage(
            digital_signature=not ca, key_cert_sign=ca, crl_sign=ca, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        made = x509.CertificateBuilder().subject_name(name).issuer_name(self._name).public_key(key.public_key())
        made = made.serial_number(x509.random_serial_number()).not_valid_before(now - HOUR).not_valid_after(now + life)
        made = made.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        made = made.add_extension(usage, critical=True).add_extension(both, critical=False)
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=not ca)
        return made.sign(self._key, hashes.SHA256())


def put(path: Path, data: bytes) -> None:
    path.with_suffix(".part").write_bytes(data)
    path.with_suffix(".part").replace(path)


class House:
    """A trust domain with its bundle, an orchestrator that trusts it, and the certificates of its workloads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        put(folder / "bundle.pem", self.authority.bundle)
        put(folder / "identities.toml", IDENTITIES.encode())
        self.authority.write(folder, "server", f"{DOMAIN}/ns/oraculo/sa/servidor", hosts=("localhost", "127.0.0.1"))
        self.server = Server(
            folder,
            ORACULO_URL_CA=f"{folder}/bundle.pem",
            ORACULO_TLS_CERT=f"{folder}/server.pem",
            ORACULO_TLS_KEY=f"{folder}/server.key",
            ORACULO_TLS_CLIENT_CA=f"{folder}/bundle.pem",
            ORACULO_SPIFFE_IDENTITIES=f"{folder}/identities.toml",
        )

    def client(self, files: TlsFiles) -> httpx2.Client:
        context = files.context()
        assert context is not None
        url = self.server.url.replace("127.0.0.1", "localhost")
        return httpx2.Client(base_url=url, verify=context, trust_env=False, timeout=DEADLINE_S)

    def whoami(self, files: TlsFiles, **headers: str) -> httpx2.Response:
        with self.client(files) as client:
            return client.get("/api/v1/whoami", headers=headers)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("spiffe"))
    made.server.start()
    yield made
    made.server.kill()


def test_a_worker_without_a_key_does_what_its_identity_may(house: House, tmp_path: Path) -> None:
    worker, sender = (house.authority.write(tmp_path, str(n), id) for n, id in enumerate((WORKER, SENDER)))
    put(tmp_path / "bundle.pem", house.authority.bundle)
    variables = {"ORACULO_URL_CA": worker.ca, "ORACULO_URL_CERT": worker.cert, "ORACULO_URL_KEY": worker.key}
    url = house.server.url.replace("127.0.0.1", "localhost")
    process = Process(
        house.folder, ["worker", "trabalho:worker"], environment(house.folder, ORACULO_URL=url, **variables)
    )
    process.start()
    try:
        with house.client(sender) as client:
            asked = {"coletas": [{"fonte": "eco", "parametros": {"n": 1}}]}
            name = client.post("/api/v1/orchestrations", json=asked).json()["correlation_id"]
            result = f"/api/v1/orchestrations/{name}/result?wait=20"
            eventually(lambda: client.get(result).status_code == 200, "the result")
            assert client.get(result).json()["status"] == "concluida"
            journal = client.get(f"/api/v1/orchestrations/{name}/events").text
            assert SENDER in journal and WORKER in journal  # who did it
    finally:
        process.kill()


def test_an_identity_may_what_the_file_says_and_no_more(house: House) -> None:
    write = house.authority.write
    worker, other = write(house.folder, "worker", WORKER), write(house.folder, "other", OTHER)
    found = house.whoami(worker).json()
    assert (found["ator"], found["scopes"]) == (WORKER, ["docs:read", "lease:take", "result:write"])
    with house.client(worker) as client:
        body = {"max": 1, "wait": 0, "worker": "eu"}
        assert client.post("/api/v1/queues/escavador_eco/lease", json=body).status_code == 200
        assert client.post("/api/v1/queues/escavador_blog/lease", json=body).status_code == 403
        assert client.post("/api/v1/orchestrations", json={"coletas": []}).status_code == 403
    found = house.whoami(other).json()
    assert (found["ator"], found["tenant"]) == (OTHER, "acme")


def test_certificates_that_are_no_identity_of_ours_open_nothing(house: House) -> None:
    write = house.authority.write
    nobody = {
        "of nobody in the file": write(house.folder, "a", UNKNOWN),
        "of the authority itself": write(house.folder, "b", DOMAIN),
        "with two ids": write(house.folder, "c", WORKER, SENDER),
        "with a host alone": write(house.folder, "d", hosts=("casa.example",)),
        "of a longer path": write(house.folder, "e", f"{SENDER}/mais"),
        "of another domain": write(house.folder, "f", SENDER.replace("casa.", "outra.")),
        "in capitals": write(house.folder, "g", SENDER.replace("spiffe:", "SPIFFE:")),
    }
    for what, files in nobody.items():
        assert house.whoami(files).status_code == 401, what
    with pytest.raises(httpx2.TransportError):  # of an authority that the bundle does not have
        house.whoami(Authority().write(house.folder, "h", SENDER))
    with pytest.raises(httpx2.TransportError):  # that has ended
        house.whoami(write(house.folder, "i", SENDER, life=-datetime.timedelta(minutes=1)))


def test_a_browser_does_not_lend_its_certificate_to_other_sites(house: House) -> None:
    files = house.authority.write(house.folder, "sender", SENDER)
    assert house.whoami(files).status_code == 200
    assert house.whoami(files, Origin="https://evil.example").status_code == 401
    assert house.whoami(files, **{"Sec-Fetch-Site": "cross-site"}).status_code == 401


def test_no_header_makes_an_identity_and_a_wrong_key_is_not_helped_by_one(house: House) -> None:
    unknown = house.authority.write(house.folder, "unknown", UNKNOWN)
    for name in ("spiffe_id", "X-Spiffe-Id", "X-Forwarded-Client-Cert"):
        assert house.whoami(unknown, **{name: SENDER}).status_code == 401
    known = house.authority.write(house.folder, "known", SENDER)
    assert house.whoami(known, Authorization="Bearer nonsense").status_code == 401


def test_a_connection_ends_with_the_certificate_that_it_began_with(house: House) -> None:
    files = house.authority.write(house.folder, "short", SENDER, life=datetime.timedelta(seconds=4))
    context = files.context()
    assert context is not None
    with (
        socket.create_connection(("127.0.0.1", int(house.server.url.rpartition(":")[2]))) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as connection,
    ):
        connection.sendall(b"GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.settimeout(DEADLINE_S)
        said = b""
        while part := connection.recv(65536):  # it is kept open as long as the certificate lives
            said += part
        assert SENDER.encode() in said


def test_renewed_files_count_without_a_restart(tmp_path: Path) -> None:
    """Another authority takes over: the server's certificate, the bundle and the identities are put in place anew."""
    house = House(tmp_path)
    house.server.start()
    try:
        old = house.authority.write(tmp_path, "old", SENDER)
        assert house.whoami(old).status_code == 200
        put(tmp_path / "server.key", b"half a ke")  # read at a bad moment, it changes nothing
        house.authority = Authority()
        house.authority.write(tmp_path, "server", f"{DOMAIN}/ns/oraculo/sa/servidor", hosts=("localhost",))
        put(tmp_path / "bundle.pem", house.authority.bundle)
        put(tmp_path / "identities.toml", IDENTITIES.replace(SENDER, UNKNOWN).encode())
        new = house.authority.write(tmp_path, "new", UNKNOWN)

        def answered(files: TlsFiles) -> int:
            try:
                return house.whoami(files).status_code
            except httpx2.TransportError:
                return 0

        eventually(lambda: answered(new) == 200, "the new authority and the new identity count")
        stale = TlsFiles(new.ca, old.cert, old.key)
        assert answered(stale) == 0  # the old authority is no longer trusted
    finally:
        house.server.kill()


def test_a_client_takes_renewed_files_for_its_next_connection(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.client.watched_files.LOOK_INTERVAL_S", 0.0)
    files = house.authority.write(house.folder, "client", OTHER)
    with house.client(files) as client:
        ask = {"headers": {"Connection": "close"}}
        assert client.get("/api/v1/whoami", **ask).json()["ator"] == OTHER
        put(Path(files.key), b"half a key")
        assert client.get("/api/v1/whoami", **ask).json()["ator"] == OTHER
        house.authority.write(house.folder, "client", SENDER)
        assert client.get("/api/v1/whoami", **ask).json()["ator"] == SENDER


# -- the parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (WORKER, True),
        ("spiffe://a/b", True),
        (DOMAIN, False),
        (f"{DOMAIN}/", False),
        (f"{WORKER}/", False),
        (f"{DOMAIN}//a", False),
        (f"{DOMAIN}/../a", False),
        (f"{DOMAIN}/a/.", False),
        (f"{DOMAIN}/a%2fb", False),
        ("spiffe://user@casa.example/a", False),
        ("spiffe://casa.example:1/a", False),
        ("spiffe://Casa.example/a", False),
        ("https://casa.example/a", False),
        (f"{WORKER}\n", False),
        (f"{DOMAIN}/{'a' * 2048}", False),
    ],
)
def test_what_a_spiffe_id_is(text: str, good: bool) -> None:
    assert is_spiffe_id(text) is good
    assert (id_of({"subjectAltName": (("DNS", "x"), ("URI", text))}) == text) is good


def test_no_user_of_a_provider_passes_for_a_workload() -> None:
    assert not is_user_id(WORKER)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('id = "spiffe://casa.example"', "id is a SPIFFE ID"),
        (f'id = "{WORKER}"\nrole = "rei"', "role is one of"),
        (f'id = "{WORKER}"\nrole = "trabalhador"', "queues are named for trabalhador"),
        (f'id = "{WORKER}"\nrole = "leitor"\nqueues = ["a"]', "queues are named for trabalhador"),
        (f'id = "{WORKER}"\nrole = "trabalhador"\nqueues = [1]', "list of texts"),
        (f'id = "{WORKER}"\nrole = "leitor"\ntenant = "A B"', "name of a tenant"),
        (f'id = "{WORKER}"\nrole = "leitor"\nsegredo = "x"', "and nothing else"),
        (f'id = "{WORKER}"\nrole = 1', "role is a text"),
        (f'id = "{WORKER}"\nrole = "leitor"\n[[identity]]\nid = "{WORKER}"\nrole = "admin"', "is there twice"),
        ("id = ", "a TOML file"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_reason(tmp_path: Path, entry: str, said: str) -> None:
    path = tmp_path / "identities.toml"
    path.write_text(f"[[identity]]\n{entry}\n")
    with pytest.raises(SettingsError, match=said) as error:
        SpiffeIdentities(str(path))
    assert str(error.value).startswith("ORACULO_SPIFFE_IDENTITIES=") and "\n" not in str(error.value)


def test_a_file_that_became_faulty_leaves_things_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.client.watched_files.LOOK_INTERVAL_S", 0.0)
    path = tmp_path / "identities.toml"
    path.write_text(IDENTITIES)
    known = SpiffeIdentities(str(path))
    path.write_text("[[identity]]\nid = 1")
    found = known.actor_of(SENDER)
    assert found is not None and found.roles == {AccessRole.OPERADOR}
    path.write_text("")
    assert known.actor_of(SENDER) is None


def test_identities_need_an_authority(tmp_path: Path) -> None:
    path = tmp_path / "identities.toml"
    path.write_text(IDENTITIES)
    with pytest.raises(SettingsError, match="ORACULO_SPIFFE_IDENTITIES"):
        load({"ORACULO_SPIFFE_IDENTITIES": str(path)}, None)
