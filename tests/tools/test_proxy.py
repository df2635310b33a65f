"""Each fault of the proxy, seen from plain sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from tools.servers.proxy import HOST, Proxy

from waiting import DEADLINE_S

QUIET = 0.15  # how long nothing must come before we believe that nothing comes


class Echo:
    """A server that answers every byte with the same byte, and remembers what it got."""

    def __init__(self) -> None:
        self.listener = socket.create_server((HOST, 0), backlog=100)
        self.port: int = self.listener.getsockname()[1]
        self.got = bytearray()
        self.ends: list[str] = []
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        how = "end"
        with connection:
            try:
                while data := connection.recv(65_536):
                    with self._changed:
                        self.got += data
                        self._changed.notify_all()
                    connection.sendall(data)
            except OSError:
                how = "reset"
        with self._changed:
            self.ends.append(how)
            self._changed.notify_all()

    def wait(self, *, got: bytes | None = None, ends: list[str] | None = None) -> None:
        with self._changed:
            assert self._changed.wait_for(
                lambda: (got is None or self.got == got) and (ends is None or self.ends == ends), DEADLINE_S
            ), (self.got, self.ends)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy(echo.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with connect(proxy) as client:
        assert ask(client, b"hello") == b"hello"
        yield client


def connect(proxy: Proxy) -> socket.socket:
    client = socket.create_connection((HOST, proxy.port), DEADLINE_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def read(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        assert more, f"the connection ended after {data!r}"
        data += more
    return data


def ask(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return read(client, len(data))


def assert_silent(client: socket.socket) -> None:
    client.settimeout(QUIET)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(DEADLINE_S)


def assert_reset(client: socket.socket) -> None:
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_it_forwards_both_ways(proxy: Proxy, client: socket.socket, echo: Echo) -> None:
    with connect(proxy) as other:
        assert ask(other, b"other") == b"other"
        assert ask(client, b"first") == b"first"
        assert proxy.connections == 2 and proxy.accepted == 2


def test_a_lot_of_bytes_with_a_slow_reader_arrive_whole(proxy: Proxy, client: socket.socket) -> None:
    data = bytes(range(256)) * 65_536  # 16 MiB: more than all buffers on the way
    writer = threading.Thread(target=client.sendall, args=(data,))
    writer.start()
    assert read(client, len(data)) == data
    writer.join()


def test_an_end_is_forwarded_and_answers_still_come(client: socket.socket, proxy: Proxy, echo: Echo) -> None:
    client.sendall(b"last words")
    client.shutdown(socket.SHUT_WR)
    assert read(client, 10) == b"last words"
    assert client.recv(1) == b""
    echo.wait(ends=["end"])


def test_a_reset_by_the_client_reaches_the_server(proxy: Proxy, echo: Echo) -> None:
    client = connect(proxy)
    assert ask(client, b"x") == b"x"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    client.close()
    echo.wait(ends=["reset"])


def test_nobody_behind_it(proxy: Proxy, echo: Echo) -> None:
    echo.close()
    with contextlib.suppress(ConnectionResetError), connect(proxy) as client:
        assert client.recv(1) == b""


class TestBlackHole:
    def test_nothing_passes_until_it_heals_and_nothing_is_lost(
        self, proxy: Proxy, client: socket.socket, echo: Echo
    ) -> None:
        proxy.black_hole()
        client.sendall(b" world")
        assert_silent(client)
        assert echo.got == b"hello"
        proxy.heal()
        assert read(client, 6) == b" world"

    def test_new_connections_are_accepted_and_kept(self, proxy: Proxy, echo: Echo) -> None:
        proxy.black_hole()
        with connect(proxy) as client:
            client.sendall(b"x")
            assert_silent(client)
            assert echo.got == b""
            proxy.heal()
            assert read(client, 1) == b"x"

    def test_not_even_the_end_passes(self, proxy: Proxy, client: socket.socket, echo: Echo) -> None:
        proxy.black_hole()
        client.close()
        time.sleep(QUIET)
        assert echo.ends == []
        proxy.heal()
        echo.wait(ends=["end"])


class TestReset:
    def test_both_ends_are_reset_and_new_connections_work(
        self, proxy: Proxy, client: socket.socket, echo: Echo
    ) -> None:
        proxy.reset()
        assert_reset(client)
        echo.wait(ends=["reset"])
        assert proxy.connections == 0
        with connect(proxy) as client:
            assert ask(client, b"x") == b"x"

    def test_a_reset_in_a_black_hole_leaves_the_black_hole(self, proxy: Proxy, client: socket.socket) -> None:
        proxy.black_hole()
        proxy.reset()
        assert_reset(client)
        with connect(proxy) as client:
            client.sendall(b"x")
            assert_silent(client)


def test_abandoned_connections_stay_silent_and_new_ones_work(proxy: Proxy, client: socket.socket, echo: Echo) -> None:
    proxy.abandon()
    client.sendall(b"x")
    with connect(proxy) as other:
        assert ask(other, b"!") == b"!"
        assert_silent(client)
        proxy.pass_()
        assert_silent(client)
        assert echo.got == b"hello!"
        proxy.heal()
        assert_reset(client)
        assert ask(other, b"?") == b"?"


def test_refuse(proxy: Proxy, client: socket.socket) -> None:
    port = proxy.port
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    assert ask(client, b"still here") == b"still here"
    proxy.heal()
    assert proxy.port == port
    with connect(proxy) as other:
        assert ask(other, b"x") == b"x"


class TestHalfOpen:
    def test_the_server_hears_and_is_not_heard(self, proxy: Proxy, client: socket.socket, echo: Echo) -> None:
        proxy.half_open()
        client.sendall(b" world")
        echo.wait(got=b"hello world")
        assert_silent(client)
        assert proxy.swallowed == 6

    def test_what_lost_bytes_is_reset_when_it_heals_and_the_rest_goes_on(
        self, proxy: Proxy, client: socket.socket, echo: Echo
    ) -> None:
        with connect(proxy) as other:
            assert ask(other, b"!") == b"!"
            proxy.half_open()
            client.sendall(b"x")
            echo.wait(got=b"hello!x")
            assert_silent(client)
            proxy.heal()
            assert_reset(client)
            assert ask(other, b"y") == b"y"


class TestCutAfter:
    def test_so_many_bytes_and_no_more(self, proxy: Proxy, client: socket.socket, echo: Echo) -> None:
        proxy.cut_after(4)
        client.sendall(b"123456")
        echo.wait(got=b"hello123456")
        assert read(client, 4) == b"1234"
        assert_silent(client)
        client.sendall(b"7")
        assert_silent(client)
        proxy.heal()
        assert_reset(client)

    def test_the_bytes_may_come_in_pieces(self, proxy: Proxy, client: socket.socket) -> None:
        proxy.cut_after(3)
        assert ask(client, b"1") + ask(client, b"2") == b"12"
        client.sendall(b"34")
        assert read(client, 1) == b"3"
        assert_silent(client)

    def test_then_reset(self, proxy: Proxy, client: socket.socket, echo: Echo) -> None:
        proxy.cut_after(3, reset=True)
        client.sendall(b"123456")
        with pytest.raises(ConnectionResetError):
            while True:
                assert client.recv(10)
        with connect(proxy) as client:
            assert ask(client, b"new ones work") == b"new ones work"


class TestDelay:
    def test_everything_comes_later_and_in_order(self, proxy: Proxy, client: socket.socket) -> None:
        proxy.delay(0.1)
        began = time.monotonic()
        for n in range(20):
            client.sendall(b"%02d" % n)
        assert read(client, 40) == b"".join(b"%02d" % n for n in range(20))
        assert time.monotonic() - began >= 0.2  # there and back

    def test_healing_overtakes_nothing(self, proxy: Proxy, client: socket.socket, echo: Echo) -> None:
        proxy.delay(0.2)
        client.sendall(b" slow")
        time.sleep(QUIET / 3)
        proxy.heal()
        client.sendall(b" quick")
        assert read(client, 11) == b" slow quick"


def test_one_fault_takes_the_place_of_the_other(proxy: Proxy, client: socket.socket) -> None:
    proxy.black_hole()
    client.sendall(b"x")
    assert_silent(client)
    proxy.delay(0.01)
    assert read(client, 1) == b"x"
    proxy.pass_()
    assert ask(client, b"y") == b"y"


def test_it_leaves_nothing_behind(echo: Echo) -> None:
    threads = threading.active_count()
    with Proxy(echo.port) as proxy:
        clients = [connect(proxy) for _ in range(20)]
        for client in clients:
            assert ask(client, b"x") == b"x"
        proxy.black_hole()
        clients.append(connect(proxy))
    for client in clients[:20]:
        assert_reset(client)
    for client in clients:
        client.close()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    echo.wait(ends=["reset"] * 20)
    echo.close()
    assert threading.active_count() < threads
