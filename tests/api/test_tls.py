"""TLS of the server and of those who talk to it, with certificates made for the test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
import uvicorn
import uvloop
from cryptography.hazmat.primitives import serialization
from uvicorn.server import ServerState

from cli.processes import Cli, Process, Server, environment
from oraculo.api.connections import ConnectionGuard
from oraculo.api.tls import TlsAcceptor, TlsProtocol, server_context
from oraculo.client.client import Client
from oraculo.client.tls import TlsFiles
from oraculo.errors import ServerUnreachableError, SettingsError
from oraculo.settings.settings import load
from waiting import until

ROOT = Path(__file__).parents[2]


class Papers:
    """Two authorities, a server's certificate, and one for a client of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority, stranger = trustme.CA(), trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        stranger.cert_pem.write_to_path(str(folder / "strange_ca.pem"))
        self._write("server", authority.issue_cert("localhost", "127.0.0.1"))
        self._write("client", authority.issue_cert("worker@example.org"))
        self._write("stranger", stranger.issue_cert("worker@example.org"))
        self.ca = str(folder / "ca.pem")
        self.server = {"ORACULO_TLS_CERT": f"{folder}/server.pem", "ORACULO_TLS_KEY": f"{folder}/server.key"}
        self.mutual = {**self.server, "ORACULO_TLS_CLIENT_CA": self.ca}
        self.client = TlsFiles(self.ca, f"{folder}/client.pem", f"{folder}/client.key")
        self.stranger = TlsFiles(self.ca, f"{folder}/stranger.pem", f"{folder}/stranger.key")
        self.variables = {
            "ORACULO_URL_CA": self.client.ca,
            "ORACULO_URL_CERT": self.client.cert,
            "ORACULO_URL_KEY": self.client.key,
        }

    def _write(self, name: str, made: trustme.LeafCert) -> None:
        (self.folder / f"{name}.pem").write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        made.private_key_pem.write_to_path(str(self.folder / f"{name}.key"))
        made.private_key_and_cert_chain_pem.write_to_path(str(self.folder / f"{name}.both"))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return Papers(tmp_path_factory.mktemp("papers"))


# -- the whole product -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mutual(papers: Papers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`oraculo up` that asks every client for a certificate."""
    one = Server(tmp_path_factory.mktemp("server"), **papers.mutual)
    one.start()
    yield one
    one.kill()


def test_a_client_and_a_worker_with_certificates_do_a_run(mutual: Server, papers: Papers, tmp_path: Path) -> None:
    assert mutual.url.startswith("https://127.0.0.1:")
    known = environment(mutual.folder, ORACULO_URL=mutual.url, **papers.variables)
    worker = Process(mutual.folder, ["worker", "trabalho:worker"], known)
    worker.start()
    try:
        cli = Cli(mutual.folder, mutual.url)
        request = '{"correlation_id": "tls-1", "coletas": [{"fonte": "eco", "parametros": {"n": 1}}]}'
        done = cli.json("submit", "-", "--watch", input=request, **papers.variables)[-1]
        assert done["status"] == "concluida"
    finally:
        worker.kill()
    with Client(mutual.url, tls=papers.client) as client:
        assert client.get("tls-1")["status"] == "concluida"


def test_without_a_good_certificate_there_is_no_connection(mutual: Server, papers: Papers) -> None:
    for files in (TlsFiles(papers.ca), papers.stranger, None, TlsFiles(f"{papers.folder}/strange_ca.pem")):
        with Client(mutual.url, tls=files) as client, pytest.raises(ServerUnreachableError):
            client.health()
    with pytest.raises(httpx2.TransportError):
        httpx2.get(mutual.url.replace("https", "http") + "/health", trust_env=False)
    with Client(mutual.url, tls=papers.client) as client:
        assert client.health()["status"] == "ok"


@pytest.mark.parametrize(
    ("script", "said"),
    [("deploy/image/healthcheck.py", ""), ("helm-charts/orchestrator-dynamic/files/end_to_end.py", "concluida")],
)
def test_the_checks_of_a_deployment_speak_it(mutual: Server, papers: Papers, script: str, said: str) -> None:
    """The health check of the image and the `helm test` of the chart, which have nothing but Python."""
    port = mutual.url.rpartition(":")[2]
    known = {"ORACULO_URL": mutual.url, "ORACULO_PORT": port, "ORACULO_API_KEY": "none", **papers.server}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / script), "20" if more else "0.2"]
        return subprocess.run(command, env={**known, **more}, capture_output=True, text=True, check=False)

    done = run(**papers.variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout
    assert run().returncode == 1, "this server asks for a certificate"


def test_old_versions_are_refused(mutual: Server, papers: Papers) -> None:
    context = papers.client.context()
    assert context is not None
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    host, port = mutual.url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port))) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname=host)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def begin(**env: str) -> Server:
        one = Server(tmp_path, **env)
        started.append(one)
        one.start()
        return one

    yield begin
    for one in started:
        one.kill()


def test_beyond_loopback_browsers_are_told_to_stay_with_it(start: Callable[..., Server], papers: Papers) -> None:
    one = start(ORACULO_HOST="0.0.0.0", ORACULO_API_KEY="k" * 32, **papers.server)
    context = TlsFiles(papers.ca).context()
    assert context is not None
    answer = httpx2.get(one.url.replace("0.0.0.0", "127.0.0.1") + "/health", verify=context, trust_env=False)
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_optional_lets_in_who_shows_nothing_and_refuses_what_is_not_good(
    start: Callable[..., Server], papers: Papers
) -> None:
    one = start(ORACULO_TLS_CLIENT="optional", **papers.mutual)
    for files in (TlsFiles(papers.ca), papers.client):
        with Client(one.url, tls=files) as client:
            assert client.health()["status"] == "ok"
    with Client(one.url, tls=papers.stranger) as client, pytest.raises(ServerUnreachableError):
        client.health()
    shown = httpx2.get(f"{one.url}/health", verify=papers.client.context() or True, trust_env=False)
    assert "strict-transport-security" not in shown.headers  # http://localhost is for other servers too


# -- wrong files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ORACULO_TLS_CERT": "{}/absent"}, "ORACULO_TLS_CERT='{}/absent' is not allowed: the path of a file"),
        (
            {"ORACULO_TLS_CERT": "{}/server.key"},
            "ORACULO_TLS_CERT='{}/server.key' is not allowed: a PEM file with a ce",
        ),
        (
            {"ORACULO_TLS_KEY": "{}/server.pem"},
            "ORACULO_TLS_KEY='{}/server.pem' is not allowed: a PEM file with a priv",
        ),
        ({"ORACULO_TLS_KEY": "{}/client.key"}, "ORACULO_TLS_KEY='{}/client.key' is not allowed: the private key of OR"),
        ({"ORACULO_TLS_KEY": "{}/locked.key"}, "ORACULO_TLS_KEY='{}/locked.key' is not allowed: a private key without"),
        ({"ORACULO_TLS_KEY": ""}, "ORACULO_TLS_KEY='{}/server.pem' is not allowed: a PEM file with a private key"),
        ({"ORACULO_TLS_CERT": ""}, "ORACULO_TLS_KEY='{}/server.key' is not allowed: with ORACULO_TLS_CERT"),
        ({"ORACULO_TLS_CLIENT_CA": "{}/server.key"}, "ORACULO_TLS_CLIENT_CA='{}/server.key' is not allowed: a PEM fi"),
        ({"ORACULO_TLS_CLIENT": "maybe"}, "ORACULO_TLS_CLIENT='maybe' is not allowed: one of required, optional"),
    ],
)
def test_a_wrong_file_is_one_line(papers: Papers, changed: dict[str, str], said: str) -> None:
    key = serialization.load_pem_private_key((papers.folder / "server.key").read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    (papers.folder / "locked.key").write_bytes(locked)
    given = {name: value.format(papers.folder) for name, value in changed.items()}
    with pytest.raises(SettingsError) as error:
        server_context(load({**papers.server, **given}, None).tls)
    assert str(error.value).startswith(said.format(papers.folder)) and "\n" not in str(error.value)


def test_certificate_and_key_may_be_one_file(papers: Papers) -> None:
    assert server_context(load({"ORACULO_TLS_CERT": f"{papers.folder}/server.both"}, None).tls) is not None


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("{}/server.key", "", ""), "ORACULO_URL_CA='{}/server.key' is not allowed: a PEM file with certificates"),
        (("{}/absent", "", ""), "ORACULO_URL_CA='{}/absent' is not allowed: a file that can be read: No such file"),
        (("", "{}/client.pem", "{}/server.key"), "ORACULO_URL_KEY='{}/server.key' is not allowed: the private key of"),
        (("", "", "{}/client.key"), "ORACULO_URL_KEY='{}/client.key' is not allowed: with ORACULO_URL_CERT"),
    ],
)
def test_a_wrong_file_of_a_client_is_one_line(papers: Papers, files: tuple[str, str, str], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        Client("https://localhost:1", tls=TlsFiles(*(path.format(papers.folder) for path in files)))
    assert str(error.value).startswith(said.format(papers.folder)) and "\n" not in str(error.value)


def test_up_and_doctor_say_what_is_wrong(papers: Papers, tmp_path: Path) -> None:
    wrong = {**papers.server, "ORACULO_TLS_KEY": f"{papers.folder}/client.key"}
    done = Cli(tmp_path)("up", "--port", "0", **wrong)
    assert (
        done.returncode == 2 and done.stderr.count("\n") == 1 and "the private key of ORACULO_TLS_CERT" in done.stderr
    )
    found = {one["name"]: one for one in Cli(tmp_path).json("doctor", code=1, **wrong)["checks"]}
    assert found["tls"]["level"] == "broken" and found["tls"]["fix"] == "change ORACULO_TLS_KEY"


# -- connections that do not finish their handshake --------------------------------------------------------------------


async def answer(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Guarded:
    """A small server over TLS with few connections to give."""

    def __init__(self, papers: Papers, limit: int, header_timeout_s: float = 30.0) -> None:
        context = server_context(load(papers.server, None).tls)
        assert context is not None
        self.guard = guard = ConnectionGuard(limit, header_timeout_s)
        self.trusting = TlsFiles(papers.ca).context()
        config = uvicorn.Config(answer, lifespan="off", ws="none", log_level="critical")
        config.load()
        state = ServerState()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._acceptor = TlsAcceptor(
            guard, lambda: context, lambda handshake: TlsProtocol(guard, handshake, config, state, {})
        )

    async def __aenter__(self) -> Guarded:
        self._task = asyncio.create_task(self._acceptor.run(self._listener))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._listener.close()

    async def asked(self) -> str:
        """The answer to a request that is sent in the same breath as the end of the handshake."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=self.trusting, server_hostname="localhost"
        )
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        return text


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_half_open_handshakes_give_way_and_end(papers: Papers, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story() -> None:
        async with Guarded(papers, 20) as server:
            held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(60)]
            for said in (b"\x16\x03\x01\x02", b"GET / HTTP/1.1\r\n\r\n"):  # half a hello, and no TLS at all
                held[0][1].write(said)
            for _ in range(30):
                assert (await server.asked()).endswith("ok")
            assert len(server.guard) <= 20 and server.guard.evicted >= 40
            for _, writer in held:
                writer.close()
            await until(lambda: len(server.guard) == 0, "every connection to be forgotten")
        async with Guarded(papers, 20, header_timeout_s=0.2) as server:
            silent = await asyncio.open_connection("127.0.0.1", server.port)
            async with asyncio.timeout(20):
                with contextlib.suppress(ConnectionResetError):
                    assert await silent[0].read() == b""
            silent[1].close()
            await until(lambda: len(server.guard) == 0, "the silent connection to be forgotten")

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())
