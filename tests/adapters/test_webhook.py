"""WebhookNotifier against real local servers: good ones, rude ones and hostile ones."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import pytest
import trustme
from standardwebhooks import Webhook, WebhookVerificationError

import oraculo
from oraculo.adapters.sinks.webhook import MAX_RETRY_AFTER, WebhookNotifier, parse_retry_after
from oraculo.adapters.sinks.webhook_signing import key_of, signed_headers
from oraculo.ports.notifier import Notice, Notifier, Outcome, Receipt
from waiting import until

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NEW_SECRET = "whsec_" + base64.b64encode(bytes(range(100, 140))).decode()
BODY = '{"correlation_id":"c-1","titulo":"Notícias"}'.encode()

Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Received:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server on a free port that keeps each request and then does `reply`."""

    reply: Reply
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    names: list[str | None] = field(default_factory=list)  # what SNI asked for

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        if self.tls:
            self.tls.sni_callback = lambda _socket, name, _context: self.names.append(name)
        self._server = await asyncio.start_server(self._serve, self.host, 0, ssl=self.tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.place = f"{self.host}:{self.port}"
        self.url = f"http://{self.place}/hook?x=1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.strip().split("\r\n")
            headers = dict(part.split(": ", 1) for part in rest)
            headers = {name.lower(): value for name, value in headers.items()}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.received.append(Received(line, headers, body))
            await self.reply(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()


def answer(status: int, *headers: str, body: bytes = b"") -> Reply:
    async def reply(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"content-length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + body)
        await writer.drain()

    return reply


class Clock:
    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


def names(*answers: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return answers

    return resolver


async def deliver(
    receiver: Receiver,
    *,
    secrets: Sequence[str] = (),
    clock: Callable[[], datetime] = Clock(),
    within: float = 5.0,
    traceparent: str | None = None,
) -> Receipt:
    async with WebhookNotifier(
        secrets, [receiver.place], within, clock=clock, ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ) as notifier:
        return await notifier.notify(Notice(receiver.url, "msg_1", BODY, traceparent))


# --- what is sent ---------------------------------------------------------------------------------------------


async def test_a_notice_that_belongs_to_a_trace_says_so() -> None:
    context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with Receiver(answer(200)) as receiver:
        await deliver(receiver, traceparent=context)
    assert receiver.received[0].headers["traceparent"] == context


async def test_the_request_says_all_it_must_and_nothing_more() -> None:
    async with Receiver(answer(200)) as receiver:
        receipt = await deliver(receiver)
    assert receipt == Receipt(Outcome.DELIVERED, "HTTP 200", 200)
    (request,) = receiver.received
    assert request.line == "POST /hook?x=1 HTTP/1.1"
    assert request.body == BODY
    assert request.headers == {
        "host": receiver.place,
        "user-agent": f"oraculo/{oraculo.__version__}",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": str(len(BODY)),
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(NOW.timestamp())),
    }


async def test_the_signature_is_accepted_by_the_reference_library() -> None:
    real_time = Clock(datetime.fromtimestamp(time.time(), UTC))  # the library compares with the real clock
    async with Receiver(answer(204)) as receiver:
        await deliver(receiver, secrets=[SECRET], clock=real_time)
    (request,) = receiver.received
    assert Webhook(SECRET).verify(request.body, request.headers)["titulo"] == "Notícias"
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW_SECRET).verify(request.body, request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body + b" ", request.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body, {**request.headers, "webhook-id": "msg_2"})


async def test_during_a_rotation_both_secrets_verify() -> None:
    real_time = Clock(datetime.fromtimestamp(time.time(), UTC))
    async with Receiver(answer(204)) as receiver:
        await deliver(receiver, secrets=[NEW_SECRET, SECRET], clock=real_time)
    (request,) = receiver.received
    assert len(request.headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, NEW_SECRET):
        Webhook(secret).verify(request.body, request.headers)


async def test_the_id_stays_and_the_timestamp_moves_with_each_attempt() -> None:
    clock = Clock()
    async with Receiver(answer(500)) as receiver:
        await deliver(receiver, secrets=[SECRET], clock=clock)
        clock.at += timedelta(minutes=5)
        await deliver(receiver, secrets=[SECRET], clock=clock)
    first, second = (request.headers for request in receiver.received)
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 300
    assert first["webhook-signature"] != second["webhook-signature"]


def test_the_example_of_the_specification() -> None:
    """The vector printed in the reference implementations' tests."""
    headers = signed_headers(
        [key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "c2VjcmV0", SECRET.removeprefix("whsec_"), "whsec_c2hvcnQ=", "whsec_!!!!", "whsk_" + SECRET[6:]]
    + ["whsec_" + base64.b64encode(bytes(n)).decode() for n in (23, 65)],
)
def test_a_bad_secret_is_an_error_that_does_not_repeat_it(secret: str) -> None:
    with pytest.raises(ValueError, match="a webhook secret is") as caught:
        WebhookNotifier([secret], clock=Clock())
    assert len(secret) < 7 or secret not in str(caught.value)


def test_an_unpadded_secret_is_a_secret() -> None:
    assert key_of(SECRET.rstrip("=")) == key_of(SECRET) == bytes(range(32))


def test_it_is_a_notifier() -> None:
    notifier: Notifier = WebhookNotifier(clock=Clock())
    assert SECRET not in repr(WebhookNotifier([SECRET], clock=Clock())) + repr(notifier)


async def test_it_must_be_entered() -> None:
    with pytest.raises(RuntimeError, match="enter the WebhookNotifier"):
        await WebhookNotifier(clock=Clock()).notify(Notice("https://example.com/", "msg_1", b""))


async def test_many_deliveries_at_once() -> None:
    async with (
        Receiver(answer(200)) as receiver,
        WebhookNotifier([SECRET], [receiver.place], clock=Clock()) as notifier,
    ):
        notices = [Notice(receiver.url, f"msg_{n}", b"%d" % n) for n in range(50)]
        receipts = await asyncio.gather(*map(notifier.notify, notices))
    assert {receipt.outcome for receipt in receipts} == {Outcome.DELIVERED}
    assert {(r.headers["webhook-id"], r.body) for r in receiver.received} == {(n.webhook_id, n.body) for n in notices}


# --- what is answered -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, Outcome.DELIVERED) for status in (200, 201, 202, 204, 299)),
        *((status, Outcome.RETRY) for status in (300, 301, 304, 307, 308, 400, 401, 403, 404, 408, 418, 422, 429)),
        *((status, Outcome.RETRY) for status in (500, 501, 502, 503, 504, 507, 599)),
        (410, Outcome.REFUSED),
    ],
)
async def test_the_status_decides(status: int, outcome: Outcome) -> None:
    async with Receiver(answer(status, "retry-after: 7")) as receiver:
        receipt = await deliver(receiver)
    assert (receipt.outcome, receipt.status_code) == (outcome, status)
    assert receipt.retry_after == (timedelta(seconds=7) if status in (429, 502, 503, 504) else None)


async def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    async with Receiver(answer(200)) as inside:
        for status in (301, 302, 303, 307, 308):
            async with Receiver(answer(status, f"location: {inside.url}")) as receiver:
                receipt = await deliver(receiver)
            assert receipt.outcome is Outcome.RETRY
            assert receipt.detail == f"HTTP {status} (redirects are not followed)"
        assert inside.connections == 0


@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("0", timedelta(0)),
        ("120", timedelta(minutes=2)),
        (" 120 ", timedelta(minutes=2)),
        ("86400", MAX_RETRY_AFTER),
        ("86401", MAX_RETRY_AFTER),
        ("9" * 5_000, MAX_RETRY_AFTER),
        ("Fri, 20 Nov 2026 12:01:30 GMT", timedelta(seconds=90)),
        ("Fri, 20 Nov 2026 12:01:30 -0000", timedelta(seconds=90)),
        ("Friday, 20-Nov-26 12:01:30 GMT", timedelta(seconds=90)),
        ("Fri, 20 Nov 2026 11:00:00 GMT", timedelta(0)),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER),
        *((text, None) for text in ("", "soon", "-5", "1.5", "1e3", "١٢", "²", "5, 10", "x" * 40, "x" * 4_000)),
        *((text, None) for text in ("Fri, 99 Nov 2026 12:00:00 GMT", "Fri, 20 Nov 99999 12:00:00 GMT", "0x10")),
    ],
)
def test_retry_after(value: str, wait: timedelta | None) -> None:
    assert parse_retry_after(value, NOW) == wait


async def test_retry_after_as_a_date_goes_by_the_clock() -> None:
    async with Receiver(answer(503, "Retry-After: Fri, 20 Nov 2026 12:10:00 GMT")) as receiver:
        receipt = await deliver(receiver)
    assert receipt.retry_after == timedelta(minutes=10)


async def test_the_detail_is_short_and_harmless() -> None:
    body = "é ok\r\n\x1b[31m\u202e\x00\u2028\\ <b>".encode() + b"\xff" + b"x" * 1_000
    async with Receiver(answer(500, body=body)) as receiver:
        receipt = await deliver(receiver)
    assert receipt.detail.startswith("HTTP 500: é ok\\r\\n\\x1b[31m\\u202e\\x00\\u2028\\\\ <b>\ufffdxxx")
    assert receipt.detail.isprintable()
    assert len(receipt.detail) == len("HTTP 500: ") + 200


async def test_nothing_is_decompressed() -> None:
    bomb = gzip.compress(bytes(10_000_000))
    async with Receiver(answer(200, "content-encoding: gzip", body=bomb)) as receiver:
        receipt = await deliver(receiver)
    assert receipt.outcome is Outcome.DELIVERED
    assert "\ufffd\\x08" in receipt.detail, "the header of gzip, as it came"


@pytest.mark.parametrize("framing", ["content-length: 10000000000", "transfer-encoding: chunked", "connection: close"])
async def test_a_huge_body_is_cut_off(framing: str) -> None:
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(f"HTTP/1.1 500 No\r\n{framing}\r\n\r\n".encode())
        block = b"y" * 0x4000
        while True:
            writer.write(b"4000\r\n" + block + b"\r\n" if "chunked" in framing else block)
            sent += len(block)
            await writer.drain()

    async with Receiver(flood) as receiver:
        receipt = await deliver(receiver)
    assert (receipt.outcome, receipt.detail) == (Outcome.RETRY, "HTTP 500: " + "y" * 200)
    assert sent < 20_000_000, "no more than the buffers of both ends"


# --- what goes wrong ------------------------------------------------------------------------------------------


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def drip_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        writer.write(b"z")
        await writer.drain()
        await asyncio.sleep(0.02)


async def endless_interim(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 102 Wait\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("reply", [silent, drip_head, endless_interim])
async def test_the_deadline_holds_against_any_pace(reply: Reply) -> None:
    async with Receiver(reply) as receiver:
        started = time.monotonic()
        receipt = await deliver(receiver, within=0.3)
        took = time.monotonic() - started
    assert receipt == Receipt(Outcome.RETRY, "no complete answer in 0.3 s")
    assert 0.25 < took < 30  # and not for ever, as the other end would have it


@pytest.mark.parametrize(
    ("status", "outcome"), [(200, Outcome.DELIVERED), (410, Outcome.REFUSED), (500, Outcome.RETRY)]
)
async def test_a_dripping_body_is_cut_off_and_the_status_still_decides(status: int, outcome: Outcome) -> None:
    async def drip_body(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 1000000\r\n\r\n".encode())
        while True:
            writer.write(b"z")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with Receiver(drip_body) as receiver:
        started = time.monotonic()
        receipt = await deliver(receiver, within=0.3)
        took = time.monotonic() - started
    assert (receipt.outcome, receipt.status_code) == (outcome, status)
    assert receipt.detail.startswith(f"HTTP {status}: zz")
    assert took < 30


async def test_a_hanging_resolver_meets_the_same_deadline() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    async with WebhookNotifier(timeout=0.1, clock=Clock(), resolver=never) as notifier:
        receipt = await notifier.notify(Notice("https://example.com/", "msg_1", BODY))
    assert receipt == Receipt(Outcome.RETRY, "no complete answer in 0.1 s")


@pytest.mark.parametrize("error", [OSError("no DNS"), UnicodeError("odd"), RuntimeError("a bug in a resolver")])
async def test_a_failing_resolver_means_retry(error: Exception) -> None:
    async def failing(host: str, port: int) -> Sequence[str]:
        raise error

    async with WebhookNotifier(clock=Clock(), resolver=failing) as notifier:
        receipt = await notifier.notify(Notice("https://example.com/", "msg_1", BODY))
    assert receipt == Receipt(Outcome.RETRY, f"{type(error).__name__}: {error}")


async def test_a_name_without_addresses_means_retry() -> None:
    async with WebhookNotifier(clock=Clock(), resolver=names()) as notifier:
        receipt = await notifier.notify(Notice("https://example.com/", "msg_1", BODY))
    assert receipt == Receipt(Outcome.RETRY, "OSError: example.com has no address")


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def reset_inside_the_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
    await writer.drain()


def raw(data: bytes) -> Reply:
    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return reply


@pytest.mark.parametrize(
    "reply",
    [
        reset,
        reset_inside_the_head,
        raw(b""),
        raw(b"\x00" * 100),
        raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
        raw(b"220 mail.example.com ESMTP\r\n"),
        raw(b"HTTP/1.1 999999 X\r\n\r\n"),
        raw(b"HTTP/1.1 abc X\r\n\r\n"),
        raw(b"HTTP/1.1 \xff\xff\xff\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
        raw(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nx: " + b"h" * 1_000_000 + b"\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(100_000)) + b"\r\n"),
        raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ],
)
async def test_whatever_is_not_an_answer_means_retry(reply: Reply) -> None:
    async with Receiver(reply) as receiver:
        receipt = await deliver(receiver)
    assert receipt.outcome is Outcome.RETRY
    assert receipt.status_code is None
    assert 0 < len(receipt.detail) <= 200 and receipt.detail.isprintable()


@pytest.mark.parametrize(
    "reply",
    [
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"),
        raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nretry-after: \xff\xfe\r\nx-\xe9: y\r\n\r\n".replace(b"x-\xe9", b"x-e")),
        raw(b"HTTP/1.0 200\r\n\r\n"),
        raw(b"HTTP/1.1 200 \xe9\xff\r\nset-cookie: a=b\r\ncontent-encoding: br, gzip, zstd\r\n\r\nnope"),
    ],
)
async def test_trouble_after_the_status_does_not_undo_it(reply: Reply) -> None:
    async with Receiver(reply) as receiver:
        receipt = await deliver(receiver)
    assert (receipt.outcome, receipt.status_code) == (Outcome.DELIVERED, 200)


async def test_nobody_listens() -> None:
    with socket.socket() as taken:  # bound, so that nobody else gets the port, and not listening
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        async with WebhookNotifier((), [place], clock=Clock()) as notifier:
            receipt = await notifier.notify(Notice(f"http://{place}/", "msg_1", BODY))
    assert receipt.outcome is Outcome.RETRY
    assert receipt.detail.startswith("ConnectError")


async def test_the_next_address_is_tried_when_one_does_not_connect() -> None:
    async with Receiver(answer(200)) as receiver:
        place = f"hooks.internal:{receiver.port}"
        async with WebhookNotifier((), [place], clock=Clock(), resolver=names("127.0.0.2", "127.0.0.1")) as notifier:
            receipt = await notifier.notify(Notice(f"http://{place}/", "msg_1", BODY))
    assert receipt.outcome is Outcome.DELIVERED
    assert receiver.received[0].headers["host"] == place


async def test_cancelling_is_not_swallowed() -> None:
    arrived = asyncio.Event()

    async def arrive_and_hang(writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await silent(writer)

    async with Receiver(arrive_and_hang) as receiver:
        task = asyncio.create_task(deliver(receiver))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver(answer(200)) as proxy, Receiver(answer(200)) as receiver:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.place}")
        receipt = await deliver(receiver)
        assert (receipt.outcome, receiver.connections, proxy.connections) == (Outcome.DELIVERED, 1, 0)


async def test_cookies_are_not_kept() -> None:
    async with (
        Receiver(answer(200, "set-cookie: a=b; Path=/")) as receiver,
        WebhookNotifier((), [receiver.place], clock=Clock()) as notifier,
    ):
        for _ in range(2):
            await notifier.notify(Notice(receiver.url, "msg_1", BODY))
    assert all("cookie" not in request.headers for request in receiver.received)
    assert receiver.connections == 2, "a connection per attempt, each to an address checked anew"


# --- TLS ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> Iterator[ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    yield context


def certified(authority: trustme.CA, *identities: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*identities).configure_cert(context)
    return context


async def deliver_tls(receiver: Receiver, host: str, context: ssl.SSLContext | None) -> Receipt:
    place = f"{host}:{receiver.port}"
    async with WebhookNotifier(
        [SECRET], [place], clock=Clock(), resolver=names("127.0.0.1"), ssl_context=context
    ) as notifier:
        return await notifier.notify(Notice(f"https://{place}/hook", "msg_1", BODY))


async def test_tls_asks_for_and_verifies_the_original_name(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with Receiver(answer(200), certified(authority, "hooks.example.com")) as receiver:
        receipt = await deliver_tls(receiver, "hooks.example.com", trusting)
    assert receipt.outcome is Outcome.DELIVERED
    assert receiver.names == ["hooks.example.com"]
    assert receiver.received[0].headers["host"] == f"hooks.example.com:{receiver.port}"


@pytest.mark.parametrize("identity", ["other.example.com", "127.0.0.1", "*.other.com"])
async def test_a_certificate_for_another_name_is_refused(
    identity: str, authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """In particular one for the address that was connected to."""
    async with Receiver(answer(200), certified(authority, identity)) as receiver:
        receipt = await deliver_tls(receiver, "hooks.example.com", trusting)
        assert receipt.outcome is Outcome.RETRY
        assert "certificate" in receipt.detail.lower()
        assert receiver.received == []


async def test_an_unknown_authority_is_refused(authority: trustme.CA) -> None:
    async with Receiver(answer(200), certified(authority, "hooks.example.com")) as receiver:
        receipt = await deliver_tls(receiver, "hooks.example.com", None)
        assert receipt.outcome is Outcome.RETRY
        assert receiver.received == []


async def test_a_literal_address_needs_a_certificate_for_it(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    async with Receiver(answer(200), certified(authority, "127.0.0.1")) as receiver:
        assert (await deliver_tls(receiver, "127.0.0.1", trusting)).outcome is Outcome.DELIVERED
    async with Receiver(answer(200), certified(authority, "127.0.0.2")) as receiver:
        assert (await deliver_tls(receiver, "127.0.0.1", trusting)).outcome is Outcome.RETRY


async def test_two_names_on_one_address_are_verified_apart(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    """The trap of pooling by address: the connection verified for one name must not serve the other."""
    async with Receiver(answer(200), certified(authority, "good.example.com")) as receiver:
        places = [f"{name}.example.com:{receiver.port}" for name in ("good", "evil")]
        async with WebhookNotifier(
            (), places, clock=Clock(), resolver=names("127.0.0.1"), ssl_context=trusting
        ) as notifier:
            receipts = [await notifier.notify(Notice(f"https://{place}/", "m", BODY)) for place in places * 2]
    assert [receipt.outcome for receipt in receipts] == [Outcome.DELIVERED, Outcome.RETRY] * 2


async def test_plain_http_behind_an_https_url_means_retry(trusting: ssl.SSLContext) -> None:
    async def talk_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(talk_first, "127.0.0.1", 0) as server:
        place = f"hooks.example.com:{server.sockets[0].getsockname()[1]}"
        async with WebhookNotifier(
            (), [place], clock=Clock(), resolver=names("127.0.0.1"), ssl_context=trusting
        ) as notifier:
            receipt = await notifier.notify(Notice(f"https://{place}/", "msg_1", BODY))
    assert receipt.outcome is Outcome.RETRY
    assert receipt.detail.startswith("ConnectError")


@pytest.mark.parametrize("cancelled", [False, True])
async def test_silence_during_the_handshake_costs_no_descriptor(cancelled: bool, trusting: ssl.SSLContext) -> None:
    """The socket must be closed when the deadline or a stop comes in the middle of the handshake."""
    accepted = asyncio.Event()
    closed: list[bytes] = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(4096):
                pass
        closed.append(b"")
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        place = f"hooks.example.com:{server.sockets[0].getsockname()[1]}"
        async with WebhookNotifier(
            (), [place], 30 if cancelled else 0.3, clock=Clock(), resolver=names("127.0.0.1"), ssl_context=trusting
        ) as notifier:
            attempt = asyncio.create_task(notifier.notify(Notice(f"https://{place}/", "msg_1", BODY)))
            if cancelled:
                await accepted.wait()
                await asyncio.sleep(0.05)
                attempt.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await attempt
            else:
                assert (await attempt).outcome is Outcome.RETRY
            await until(lambda: closed)  # the far end sees the close a moment later
