"""The SSRF guard: a corpus of hostile URLs and addresses, each refused with no connection made.

"No connection" is not taken on trust: an interpreter audit hook sees every socket.connect and getaddrinfo of the
process, and stops those that leave the machine.
"""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.adapters.sinks.address_guard import (
    ALLOWED_TEXT,
    URL_MAX_CHARS,
    Target,
    address_refusal,
    admit,
    check_url,
    examine,
    parse_allow,
)
from oraculo.adapters.sinks.webhook import WebhookNotifier, resolve
from oraculo.ports.notifier import Notice, Outcome, Receipt

PUBLIC = "93.184.216.34"

# --- the watch ------------------------------------------------------------------------------------------------


class Watch:
    """What the process tried on the network while a test watched."""

    def __init__(self) -> None:
        self.connects: list[tuple[Any, ...]] = []
        self.lookups: list[str] = []


_watching: Watch | None = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _watching is None:
        return
    if event == "socket.connect" and args[0].family in (socket.AF_INET, socket.AF_INET6):
        _watching.connects.append(args[1][:2])
        if not ip_address(args[1][0]).is_loopback:
            raise ConnectionRefusedError("a test may not leave the machine")
    elif event == "socket.getaddrinfo":
        _watching.lookups.append(args[0])


@pytest.fixture(scope="module", autouse=True)
def _install_hook() -> None:
    sys.addaudithook(_hook)  # cannot be removed; idle unless a test watches


@pytest.fixture
def watch() -> Iterator[Watch]:
    global _watching
    _watching = Watch()
    yield _watching
    _watching = None


class Names:
    """A resolver that remembers what it was asked and gives the prepared answers, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def now() -> datetime:
    return datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def notice(url: str) -> Notice:
    return Notice(url, "msg_1", b"{}")


# --- the corpus -----------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return text.split()


# Every text here is put where a host belongs: https://{host}/hook
HOSTILE_HOSTS = [
    # IPv4, plain
    *words("""
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.0.0.53
    127.1.2.3 127.255.255.254 169.254.169.254 169.254.170.2 169.254.0.1 172.16.0.1 172.17.0.1 172.31.255.255
    192.0.0.1 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1
    198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 224.0.0.251 239.255.255.250 240.0.0.1 255.255.255.255
    168.63.129.16 192.31.196.1 192.52.193.1 192.175.48.1
    """),
    # IPv4, decimal, hex, octal, short, mixed, padded, overflowing
    *words("""
    2130706433 017700000001 0x7f000001 0x7F000001 0X7f000001 0x7f.1 0x7f.0.0.1 0x7f.0x0.0x0.0x1 127.1
    127.0.1 127.0.0.1. 0177.0.0.1 0177.0.0.01 0177.1 00000177.0.0.1 127.0.0.01 127.000.000.001 0 0.0 0x0 00
    0x 1 2852039166 0xa9fea9fe 0xA9FEA9FE 025177524776 169.254.43518 169.16689662 0251.0376.0251.0376
    0xa9.0xfe.0xa9.0xfe 0xa9.254.0251.254 169.254.169.0376 425.510.425.510 256.256.256.256 127.0.0.256
    127.0.0.1.1 4294967296 4294967297 6425673729 1.2.3.4.5 8.8.2056 3232235521 0xc0a80001 192.168.1 10.1
    0xa.0.0.1 012.0.0.1 3627734734 127..0.0.1 .127.0.0.1 127.0.0.-1 +127.0.0.1 127.0.0.1e0 0b1111111.0.0.1
    0o177.0.0.1 1e3
    """),
    # digits, letters and dots of other scripts
    *words("""
    ①②⑦.⓪.⓪.① １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1 ①②⑦.0.0.1 𝟏𝟐𝟕.𝟎.𝟎.𝟏 ١٢٧.٠.٠.١ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ
    ｌｏｃａｌｈｏｓｔ locaⅼhost localhoſt localhost。 𝓵ocalhost.com 169。254。169。254 ²130706433 ０x7f.1 0ｘ7f000001
    example。com example．com İ.example.com. -ü.com xn--.comé- ℀.example.com example.com／evil example.com＃evil
    example.com？evil a＠b.com
    """),
    *("loc\u200balhost", "local\xadhost", "\u202eexample.com", "ex\u2066ample.com", "example.com\ufeff"),
    *("exa\u0338mple.com\u200d", "\ud800.com"),
    # IPv6
    *words("""
    [::] [::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0001] [::2] [fe80::1]
    [febf::1] [fec0::1] [feff::1] [fc00::1] [fd00::1] [fd00:ec2::254] [fd20:ce::254] [ff02::1] [ff0e::1]
    [ff00::] [100::1] [100:0:0:1::1] [2001:db8::1] [2001:2::1] [2001:10::1] [2001:20::1] [2001:1::1]
    [2001:3::1] [2001:4:112::1] [3fff::1] [3fff:fff::1] [5f00::1] [4000::1] [8000::1] [e000::1] [1::1]
    [3ffe::1] [2620:4f:8000::1] [64:ff9b:2::1] [fe00::1]
    """),
    # IPv6 that carries an IPv4
    *words("""
    [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe]
    [::ffff:0.0.0.0] [0:0:0:0:0:ffff:7f00:0001] [::ffff:100.64.0.1] [::ffff:224.0.0.1] [::FFFF:192.168.0.1]
    [::127.0.0.1] [::7f00:1] [::10.0.0.1] [::169.254.169.254] [::8.8.8.8] [::ffff:0:127.0.0.1]
    [::ffff:0:8.8.8.8] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe] [64:ff9b::10.0.0.1]
    [64:ff9b::0.0.0.0] [64:ff9b:1::7f00:1] [64:ff9b:1:a9fe:a9:fe00::] [64:ff9b:1::8.8.8.8] [64:ff9b::c0a8:1]
    [2002:7f00:1::] [2002:7f00:1::1] [2002:a9fe:a9fe::1] [2002:c0a8:1::1] [2002:808:808::1] [2002:a00:1::]
    [2001::1] [2001:0:7f00:1::] [2001:0:808:808:0:0:80ff:fffe] [2001:0:4136:e378:8000:63bf:5601:5601]
    [2606:4700::5efe:7f00:1] [2606:4700::200:5efe:10.0.0.1] [2a00:1450:4001:81b:0:5efe:169.254.169.254]
    [fe80::5efe:192.168.0.1] [2606:4700::0200:5efe:c0a8:1]
    """),
    # IPv6, malformed, zones
    *words("""
    [fe80::1%25eth0] [fe80::1%eth0] [::1%25lo] [::1%lo] [2606:4700::1%25eth0] [::1%] ::1 fe80::1 [::1 ::1]
    [] [[::1]] [:::1] [::1::] [127.0.0.1] [localhost] [v1.fe80::a] [::1].com [::ffff:127.1]
    [::ffff:0x7f000001] [::ffff:0177.0.0.1] [::ffff:256.0.0.1] [12345::1] [::１] [:] [1:2:3:4:5:6:7:8:9]
    x[::1] [::1]x [2606:4700::1111]]
    """),
    *("[ ::1]", "[2606:4700::1111 ]"),
    # names that are not public
    *words("""
    localhost LOCALHOST LocalHost localhost. localhost.. a.localhost localhost.localdomain metadata
    metadata.google.internal METADATA.GOOGLE.INTERNAL metadata.google.internal. instance-data
    kubernetes.default.svc.cluster.local kubernetes redis rabbitmq postgres printer.local router.lan
    vault.corp nas.home nas.home.arpa wiki.intranet db.internal host.docker.internal ip6-localhost
    facebookcorewwwi.onion x.invalid gateway.docker.internal wpad broadcasthost a.private
    """),
    # names that are not names
    *words("""
    . .. .com example.com. example.com.. example..com -example.com example-.com _ %31%32%37.0.0.1
    127%2e0%2e0%2e1 %6c%6f%63%61%6c%68%6f%73%74 localhost%00 example.com%00.evil.com %5b::1%5d
    example.com%2f@127.0.0.1 exa%6dple.com example.com%0d%0a example.com%23 example%E3%80%82com %00 %
    example.com,127.0.0.1 example.com;127.0.0.1 example.com|127.0.0.1 $(id).example.com `id`.com {a,b}.com
    exam*ple.com * *.example.com a!b.com <b>.com a'b.com (a).com a=b.com a&b.com ~
    """),
    *("", "exa mple.com", " example.com", "example.com ", "example.com\t", "exa\tmple.com", "example.com\n"),
    *("example.com\r\n", "example.com\x00", "\x00127.0.0.1", "exam\x7fple.com", "example.com\x0b"),
    *("example.com\xa0", "example.com\u2028", "exa\x85mple.com", 'a"b.com'),
    "a" * 64 + ".com",
    ".".join(["a" * 60] * 5) + ".com",
    "ü" * 80 + ".com",
    "a." * 200 + "com",
    # user names
    *words("""
    user@example.com user:pass@example.com :@example.com @example.com example.com@127.0.0.1 a@b@c.com
    127.0.0.1@example.com example.com:443@127.0.0.1 example.com%40127.0.0.1 @ user@ example.com:@127.0.0.1
    example.com&@127.0.0.1 [::1]@example.com example.com@[::1] a:b:c@example.com
    """),
    # ports
    *words("""
    example.com:80 example.com:22 example.com:0 example.com:65536 example.com:99999 example.com:-1
    example.com: example.com:443:443 example.com:0443 example.com:00443 example.com:+443 example.com:0x1bb
    example.com:４４３ example.com:https example.com:4430 example.com:6379 example.com:11211 example.com:5672
    example.com:1 example.com:8080 example.com:9200 example.com:443.0 example.com:443443443443
    [2606:4700::1111]:22 [2606:4700::1111]: 93.184.216.34:8080 127.0.0.1:443 [::1]:8443
    """),
    *("example.com: 443", "example.com:443 "),
    # backslashes
    *("example.com\\@127.0.0.1", "\\127.0.0.1", "127.0.0.1\\", "example.com\\.evil.com", "\\\\127.0.0.1\\c$"),
    "example.com\\",
]

# Whole texts.
HOSTILE_URLS = [
    # other schemes
    *words("""
    http://example.com/ http://example.com:443/ HTTP://example.com/ hTTp://127.0.0.1/ http://[::1]/
    ftp://example.com/ file:///etc/passwd file://localhost/etc/passwd file:/etc/passwd
    gopher://127.0.0.1:6379/_INFO dict://127.0.0.1:11211/stat ldap://127.0.0.1/ ldaps://example.com/
    tftp://127.0.0.1/x sftp://example.com/ jar:https://example.com!/ data:text/html,hi javascript:alert(1)
    unix:///var/run/docker.sock about:blank http+unix://%2Fvar%2Frun%2Fdocker.sock/v1.24/info
    ws://example.com/ wss://example.com/ netdoc:///etc/hosts blob:https://example.com/x
    view-source:https://example.com/ phar://x expect://id php://input ssh://example.com/
    httpss://example.com/ https+x://example.com/ xhttps://example.com/ ｈttps://example.com/
    httpſ://example.com/ s3://bucket/key redis://127.0.0.1/ amqp://guest@127.0.0.1/ mailto:a@example.com
    urn:x:y 1https://example.com/
    """),
    # not a whole URL
    *words("""
    / // //example.com/ example.com example.com/hook https https: https:/ https:// https:///
    https:example.com https:/example.com/ https:///example.com/ https:////example.com/ ://example.com/
    https//example.com/ https://? https://# https://:443/ https://:443 https://@/ https://?@example.com/
    https://./
    """),
    *("", " ", "https:\\\\example.com/", "https:/\\example.com/", "https:\\/example.com/", "\\\\example.com\\x"),
    *("https ://example.com/", "https:// /"),
    # white space and control characters
    *(" https://example.com/", "https://example.com/ ", "\thttps://example.com/", "\nhttps://example.com/"),
    *("\x00https://example.com/", "https://example.com/\r\n", "https://example.com/\n"),
    *("https://example.com/\r\nHost: evil", "https://example.com/a b"),
    *("https://example.com/\r\n\r\nGET / HTTP/1.1", "https://example.com/?x=\r\nX: y", "https://example.com/\t"),
    *("ht\ntps://example.com/", "https://example.com/\x00", "https://example.com/\x1b[31m"),
    *("https:\n//example.com/", "https://\nexample.com/", "https://exa\rmple.com/", "https://example.com/\x7f"),
    *("https://example.com/\u2028", "https://example.com/\u202etxt", "\ufeffhttps://example.com/"),
    *("https://example.com/\x85", "https://example.com/?\xa0", "https://example.com\n/"),
    *("https://example.com\u2028/", "https\x00://example.com/"),
    # path, query, fragment
    *words("""
    https://example.com/<x> https://example.com/` https://example.com/% https://example.com/%2
    https://example.com/%zz https://example.com/%u0000 https://example.com/?% https://example.com/é
    https://example.com/?q=é https://example.com/{x} https://example.com/| https://example.com/^
    https://example.com#@127.0.0.1/ https://example.com/# https://example.com/#x
    https://127.0.0.1#@example.com/ https://127.0.0.1?@example.com/ https://127.0.0.1/?@example.com
    https://127.0.0.1;@example.com/ https://127.0.0.1:443#example.com https://example.com%5c@127.0.0.1/
    https://127.0.0.1/latest/meta-data/ https://169.254.169.254/latest/api/token
    https://[fd00:ec2::254]/latest/ https://metadata.google.internal/computeMetadata/v1/
    https://100.100.100.200/latest/ https://192.0.0.192/latest/
    """),
    *("https://example.com/\\..\\..", "https://example.com/\\@127.0.0.1", 'https://example.com/"'),
    *("https://example.com/#\n", "https://127.0.0.1\\@example.com/", "https://example.com\\@127.0.0.1/"),
    # length
    "https://example.com/" + "a" * URL_MAX_CHARS,
    "https://example.com/?" + "a" * 100_000,
    "https://" + "a" * 3_000 + ".com/",
    "https://" + "a@" * 1_000 + "127.0.0.1/",
    "h" * 5_000,
]

CORPUS = list(dict.fromkeys([*(f"https://{host}/hook" for host in HOSTILE_HOSTS), *HOSTILE_URLS]))


def _address_of(host: str) -> list[str]:
    try:
        return [str(ip_address(host.removeprefix("[").removesuffix("]")))]
    except ValueError:
        return []


# What a public-looking name may turn out to be.
HOSTILE_ADDRESSES = sorted({address for host in HOSTILE_HOSTS for address in _address_of(host)})
HOSTILE_ADDRESSES += ["localhost", "", "127.1", "0x7f.1", "2130706433", "127.0.0.1.", "not-an-address"]

ACCEPTABLE = {
    "https://example.com": ("example.com", 443, "/"),
    "https://example.com/": ("example.com", 443, "/"),
    "HTTPS://EXAMPLE.com/Hook": ("example.com", 443, "/Hook"),
    "https://example.com:443/a/b;c=1/?x[]=1&y=%20": ("example.com", 443, "/a/b;c=1/?x[]=1&y=%20"),
    "https://example.com:8443/x": ("example.com", 8443, "/x"),
    "https://example.com?x=@y": ("example.com", 443, "/?x=@y"),
    "https://example.com/@127.0.0.1/": ("example.com", 443, "/@127.0.0.1/"),
    "https://example.com/%0d%0aX": ("example.com", 443, "/%0d%0aX"),
    "https://xn--mnchen-3ya.de/": ("xn--mnchen-3ya.de", 443, "/"),
    "https://münchen.de/": ("xn--mnchen-3ya.de", 443, "/"),
    "https://MÜNCHEN.de/": ("xn--mnchen-3ya.de", 443, "/"),
    "https://notícias.com.br/": ("xn--notcias-9ya.com.br", 443, "/"),
    "https://例え.jp/": ("xn--r8jz45g.jp", 443, "/"),
    "https://localhost.example.com/": ("localhost.example.com", 443, "/"),
    "https://internal.example.com/": ("internal.example.com", 443, "/"),
    "https://127.0.0.1.nip.io/": ("127.0.0.1.nip.io", 443, "/"),  # the address is judged at delivery
    "https://0x7f.example/": ("0x7f.example", 443, "/"),
    "https://a_b.example.com/": ("a_b.example.com", 443, "/"),
    f"https://{PUBLIC}/": (PUBLIC, 443, "/"),
    "https://8.8.8.8:8443/": ("8.8.8.8", 8443, "/"),
    "https://[2606:4700:4700::1111]/": ("2606:4700:4700::1111", 443, "/"),
    "https://[2606:4700:4700:0:0:0:0:1111]:8443/": ("2606:4700:4700::1111", 8443, "/"),
    "https://[64:ff9b::8.8.8.8]/": ("64:ff9b::808:808", 443, "/"),
    "https://example.com/" + "a" * (URL_MAX_CHARS - 20): ("example.com", 443, "/" + "a" * (URL_MAX_CHARS - 20)),
}


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 400
    assert len(HOSTILE_ADDRESSES) >= 100


async def test_hostile_urls_are_refused_without_dns_or_connection(watch: Watch) -> None:
    names = Names([PUBLIC])
    wrong = []
    async with WebhookNotifier(clock=now, resolver=names, ssl_context=_tls()) as notifier:
        for url in CORPUS:
            reason = check_url(url) or ""
            receipt = await notifier.notify(notice(url))
            said = "allowed" in reason or "longer than" in reason
            if not said or not reason.isprintable() or len(reason) > 500 or receipt != Receipt(Outcome.REFUSED, reason):
                wrong.append((url, reason, receipt))
    assert wrong == []
    assert (names.asked, watch.connects, watch.lookups) == ([], [], [])


async def test_names_with_one_hostile_address_are_refused_without_connection(watch: Watch) -> None:
    many = [f"8.8.{n}.1" for n in range(30)]
    wrong = []
    for address in HOSTILE_ADDRESSES:
        for answers in ([address], [address, PUBLIC], [PUBLIC, "2606:4700::1111", address], [*many, address, *many]):
            names = Names(answers)
            async with WebhookNotifier(clock=now, resolver=names, ssl_context=_tls()) as notifier:
                receipt = await notifier.notify(notice("https://hooks.example.com/x"))
            leaks = bool(address) and address in receipt.detail  # what a name resolves to is not for the outside
            if receipt.outcome is not Outcome.REFUSED or leaks or names.asked != [("hooks.example.com", 443)]:
                wrong.append((answers, receipt))
    assert wrong == []
    assert (watch.connects, watch.lookups) == ([], [])


@pytest.mark.parametrize(
    "host", ["127.0.0.1.nip.io", "localtest.me", "lvh.me", "spoofed.burpcollaborator.net", "169-254-169-254.sslip.io"]
)
async def test_public_names_of_private_places_are_refused_at_delivery(host: str, watch: Watch) -> None:
    assert check_url(f"https://{host}/") is None
    async with WebhookNotifier(clock=now, resolver=Names(["127.0.0.1"]), ssl_context=_tls()) as notifier:
        receipt = await notifier.notify(notice(f"https://{host}/"))
    assert receipt.outcome is Outcome.REFUSED
    assert "loopback" in receipt.detail and ALLOWED_TEXT in receipt.detail
    assert watch.connects == []


async def test_rebinding_the_address_connected_to_is_the_address_checked(watch: Watch) -> None:
    """A second answer would be private. One attempt asks once and uses what it was told; the next is refused."""
    names = Names([PUBLIC], ["127.0.0.1"])
    async with WebhookNotifier(clock=now, resolver=names, ssl_context=_tls()) as notifier:
        first = await notifier.notify(notice("https://rebind.example.com:8443/x"))
        assert (names.asked, watch.connects) == ([("rebind.example.com", 8443)], [(PUBLIC, 8443)])
        second = await notifier.notify(notice("https://rebind.example.com:8443/x"))

    assert (first.outcome, second.outcome) == (Outcome.RETRY, Outcome.REFUSED)
    assert len(names.asked) == 2
    assert watch.connects == [(PUBLIC, 8443)], "nothing but the checked address, ever"
    assert watch.lookups == [], "nobody else resolved anything"


async def test_addresses_are_tried_in_turn_and_at_most_four(watch: Watch) -> None:
    names = Names([f"8.8.8.{n}" for n in range(1, 10)] + ["8.8.8.1"])
    async with WebhookNotifier(clock=now, resolver=names, ssl_context=_tls()) as notifier:
        receipt = await notifier.notify(notice("https://many.example.com/x"))
    assert receipt.outcome is Outcome.RETRY
    assert watch.connects == [(f"8.8.8.{n}", 443) for n in range(1, 5)]


async def test_a_literal_public_address_is_not_resolved(watch: Watch) -> None:
    names = Names(["127.0.0.1"])
    async with WebhookNotifier(clock=now, resolver=names, ssl_context=_tls()) as notifier:
        for url in (f"https://{PUBLIC}/", "https://[64:ff9b::808:808]:8443/"):
            assert (await notifier.notify(notice(url))).outcome is Outcome.RETRY
    assert names.asked == watch.lookups == []
    assert watch.connects == [(PUBLIC, 443), ("64:ff9b::808:808", 8443)]


async def test_the_system_resolver_is_seen_by_the_watch(watch: Watch) -> None:
    """A control: the hook does see lookups, so the empty lists above mean something."""
    assert "127.0.0.1" in await resolve("127.0.0.1", 443)
    assert watch.lookups == ["127.0.0.1"]


# --- what is allowed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("url", "parts"), ACCEPTABLE.items(), ids=[url[:50] for url in ACCEPTABLE])
def test_ordinary_urls_are_accepted(url: str, parts: tuple[str, int, str]) -> None:
    target = examine(url, frozenset())
    assert isinstance(target, Target)
    assert (target.scheme, target.host, target.port, target.path) == ("https", *parts)
    assert not target.trusted
    assert check_url(url) is None


def test_the_reason_says_what_is_allowed() -> None:
    assert check_url("http://example.com/") == f"not allowed: scheme 'http'; {ALLOWED_TEXT}"
    assert check_url("https://10.0.0.1/") == f"not allowed: 10.0.0.1 is not a public address (private); {ALLOWED_TEXT}"
    assert check_url("https://example.com:22/") == f"not allowed: port 22; {ALLOWED_TEXT}"


def test_the_reason_holds_no_password() -> None:
    reason = check_url("https://ana:hunter2@example.com/")
    assert reason == f"not allowed: a user name or password in the URL; {ALLOWED_TEXT}"


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("http://127.0.0.1:9000/x", "127.0.0.1:9000"),
        ("https://127.0.0.1:9000/x", "127.0.0.1:9000"),
        ("http://hooks.internal:8080/", "hooks.internal:8080"),
        ("http://HOOKS.Internal:8080/", "Hooks.INTERNAL:8080"),
        ("http://receiver:80/", "receiver:80"),
        ("http://receiver/", "receiver:80"),
        ("https://receiver/", "receiver:443"),
        ("http://my_service:5000/", "my_service:5000"),
        ("http://[::1]:9000/", "[::1]:9000"),
        ("http://[0:0:0:0:0:0:0:1]:9000/", "[::1]:9000"),
        ("http://bücher.internal:81/", "xn--bcher-kva.internal:81"),
        ("http://localhost:1/", "localhost:1"),
    ],
)
def test_the_allow_list_admits_exactly_its_places(url: str, entry: str) -> None:
    assert check_url(url) is not None
    assert check_url(url, [entry]) is None
    assert check_url(url, ["other.internal:8080", entry]) is None


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1:9001/",
            "http://127.0.0.1/",
            "http://127.0.0.2:9000/",
            "http://127.1:9000/",
            "ftp://127.0.0.1:9000/",
        ),
        *(
            "http://2130706433:9000/",
            "http://0x7f.0.0.1:9000/",
            "http://[::ffff:127.0.0.1]:9000/",
            "http://localhost:9000/",
        ),
        *(
            "http://user@127.0.0.1:9000/",
            "http://127.0.0.1:9000#x",
            "http://127.0.0.1:09000/",
            "http://127.0.0.1.:9000/",
        ),
        *(
            "http://127.0.0.1:9000@example.com/",
            "http://example.com:9000/",
            "http://127.0.0.1:9000\\x",
            "http://x.127.0.0.1:9000/",
        ),
        *(
            "http://hooks.internal:80/",
            "http://a.hooks.internal:8080/",
            "http://hooks.internal.:8080/",
            "http://hooks.internal/",
        ),
    ],
)
def test_the_allow_list_admits_nothing_beside_them(url: str) -> None:
    assert check_url(url, ["127.0.0.1:9000", "hooks.internal:8080"]) is not None


@pytest.mark.parametrize(
    "entry",
    [
        *words("""
    * hooks.internal hooks.internal: hooks.internal:0 h:65536 *.internal:80 http://h:80 ::1:80 10.0.0.0/8:80 127.1:80
    user@h:80 h:80/x [::1] [fe80::1%eth0]:80
    """),
        "",
        "h :80",
        "h:80 ",
        "h:80\n",
    ],
)
def test_an_allow_list_with_a_vague_entry_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="is not an exact host:port"):
        parse_allow(["good:80", entry])
    with pytest.raises(ValueError, match="is not an exact host:port"):
        WebhookNotifier(allow=[entry], clock=now)


def test_an_allow_list_given_as_one_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not an exact host:port"):
        parse_allow("127.0.0.1:9000")


def test_a_trusted_name_may_resolve_anywhere() -> None:
    target = examine("http://hooks.internal:8080/", parse_allow(["hooks.internal:8080"]))
    assert isinstance(target, Target)
    assert admit(target, ["10.0.0.1", "::1", "10.0.0.1"]) == ("10.0.0.1", "::1")


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("https://example.com/", "example.com"),
        ("https://example.com:8443/", "example.com:8443"),
        ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
        ("https://bücher.com/", "xn--bcher-kva.com"),
    ],
)
def test_the_host_header_is_the_original_name(url: str, header: str) -> None:
    target = examine(url, frozenset())
    assert isinstance(target, Target)
    assert target.host_header == header


# --- the table ------------------------------------------------------------------------------------------------

EMBEDDINGS: dict[str, Callable[[int], int]] = {
    "mapped ::ffff:0:0/96": lambda v4: (0xFFFF << 32) | v4,
    "compatible ::/96": lambda v4: v4,
    "translated ::ffff:0:0:0/96": lambda v4: (0xFFFF << 48) | v4,
    "NAT64 64:ff9b::/96": lambda v4: int(IPv6Address("64:ff9b::")) | v4,
    "local NAT64 64:ff9b:1::/48": lambda v4: int(IPv6Address("64:ff9b:1::")) | v4,
    "6to4 2002::/16": lambda v4: (0x2002 << 112) | (v4 << 80) | 1,
    "Teredo server": lambda v4: (0x2001_0000 << 96) | (v4 << 64) | 0xF7F7_F7F7,
    "Teredo client": lambda v4: (0x2001_0000 << 96) | (0x0808_0808 << 64) | (v4 ^ 0xFFFF_FFFF),
    "ISATAP": lambda v4: int(IPv6Address("2606:4700::5efe:0:0")) | v4,
    "ISATAP, universal": lambda v4: int(IPv6Address("2606:4700::200:5efe:0:0")) | v4,
}
SPECIAL_V4 = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
)
special_v4 = st.sampled_from(SPECIAL_V4).flatmap(lambda block: st.ip_addresses(network=block))


@given(special_v4)
def test_a_special_ipv4_is_refused_in_every_dress(address: IPv4Address) -> None:
    assert address_refusal(address)
    for name, embed in EMBEDDINGS.items():
        assert address_refusal(IPv6Address(embed(int(address)))), name


@pytest.mark.parametrize("block", SPECIAL_V4)
def test_the_borders_of_a_special_block(block: str) -> None:
    network = ip_network(block)
    assert address_refusal(network[0]) and address_refusal(network[-1])


@pytest.mark.parametrize(
    "address",
    [
        *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"),
        *(
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
        ),
        *("192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
        *("2000::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2606:4700::1111", "2a00::1", "3ffd::1"),
        *("3fff:1000::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::5efe:8.8.8.8"),
    ],
)
def test_the_neighbours_of_special_blocks_are_public(address: str) -> None:
    assert address_refusal(ip_address(address)) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        *(
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "loopback"),
        ),
        *(
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b:1::1", "local NAT64"),
            ("100::1", "discard-only"),
            ("fd00::1", "private"),
        ),
        *(
            ("2001::1", "Teredo"),
            ("2001:10::1", "protocol assignments"),
            ("2002::1", "6to4"),
            ("5f00::1", "segment routing"),
        ),
        *(
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "not global unicast"),
        ),
    ],
)
def test_the_kind_is_named(address: str, kind: str) -> None:
    assert address_refusal(ip_address(address)) == kind


@given(st.ip_addresses())
def test_what_the_standard_library_knows_to_be_special_is_refused(address: IPv4Address | IPv6Address) -> None:
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    in_nat64 = isinstance(address, IPv6Address) and address in ip_network("64:ff9b::/96")
    if not in_nat64 and (not address.is_global or address.is_multicast or address.is_reserved):
        assert address_refusal(address)


@given(st.ip_addresses(v=6))
def test_outside_global_unicast_only_two_embeddings_are_public(address: IPv6Address) -> None:
    if address not in ip_network("2000::/3"):
        carrier = address.ipv4_mapped or address in ip_network("64:ff9b::/96")
        assert address_refusal(address) or carrier


@given(
    st.text(max_size=60),
    st.sampled_from(["", "https://", "https://example.com", "https://example.com/", "http://[", "https://[::"]),
)
def test_no_text_breaks_the_guard(text: str, start: str) -> None:
    target = examine(start + text, frozenset())
    if isinstance(target, Target):
        assert target.scheme == "https" and target.port in (443, 8443)
        assert (target.host + target.path).isascii() and (target.host + target.path).isprintable()
        assert target.address is None or address_refusal(target.address) is None


def _tls() -> ssl.SSLContext:
    """An empty context: these tests never get as far as TLS, and loading certificates 1,000 times is slow."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
