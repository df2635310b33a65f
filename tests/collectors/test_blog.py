from __future__ import annotations

import gzip
import socket

import pytest

import processor_time
from oraculo.collectors import fetch, guard
from oraculo.collectors.blog import blog
from oraculo.collectors.parse import MAX_ENTRIES, parse_feed
from oraculo.errors import SettingsError, WorkError

ITEM = (
    "<item><title>Olá &amp;amp; adeus</title><link>/posts/1</link><guid isPermaLink='false'>g1</guid>"
    "<pubDate>Tue, 14 Oct 2025 09:00:00 -0300</pubDate><author>ana@exemplo.com</author>"
    "<description>&lt;p&gt;Um &lt;b&gt;texto&lt;/b&gt;&lt;/p&gt;&lt;script&gt;mau()&lt;/script&gt;</description></item>"
)


async def failure(parametros) -> WorkError:
    with pytest.raises(WorkError) as caught:
        await blog(parametros)
    return caught.value


async def test_rss_2(site, rss):
    site.put("/feed.xml", rss(ITEM))
    assert await blog({"url": "/feed.xml"}) == [
        {
            "fonte": "blog",
            "blog": f"{site.base}/feed.xml",
            "blog_nome": "Um blog",
            "titulo": "Olá & adeus",
            "url": f"{site.base}/posts/1",
            "publicado_em": "2025-10-14T12:00:00Z",
            "resumo": "Um texto",
            "id": "g1",
            "autor": "ana@exemplo.com",
        }
    ]


async def test_rss_1(site):
    site.put(
        "/rdf",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>RDF</title></channel>'
        '<item rdf:about="https://e.com/1"><title>Um</title><link>https://e.com/1</link>'
        "<dc:date>2025-10-14</dc:date><dc:creator>Bia</dc:creator></item></rdf:RDF>",
    )
    [item] = await blog({"url": "/rdf"})
    assert (item["blog_nome"], item["titulo"], item["url"]) == ("RDF", "Um", "https://e.com/1")
    assert (item["publicado_em"], item["autor"], item["id"]) == ("2025-10-14T00:00:00Z", "Bia", "https://e.com/1")


async def test_atom_with_html_and_xhtml_text(site, atom):
    site.put(
        "/atom",
        atom(
            '<entry><title type="html">A &lt;i&gt;B&lt;/i&gt;</title><link rel="self" href="/eu"/>'
            '<link href="/post"/><updated>2025-10-01T00:00:00Z</updated><summary type="xhtml">'
            '<div xmlns="http://www.w3.org/1999/xhtml">um <em>dois</em></div></summary></entry>'
        ),
    )
    [item] = await blog({"url": "/atom"})
    assert (item["titulo"], item["url"], item["resumo"]) == ("A B", f"{site.base}/post", "um dois")
    assert item["publicado_em"] == "2025-10-01T00:00:00Z"


async def test_undated_posts_come_last_and_are_in_no_period(site, rss):
    site.put("/f", rss("<item><title>sem data</title><pubDate>ontem</pubDate></item>", ITEM))
    assert [item["publicado_em"] for item in await blog({"url": "/f"})] == ["2025-10-14T12:00:00Z", None]
    assert len(await blog({"url": "/f", "periodo": "2025-10"})) == 1
    assert await blog({"url": "/f", "periodo": "1999"}) == []


async def test_several_feeds_and_latin_1(site, rss, atom):
    document = rss("<item><title>Ação</title></item>").replace('"1.0"?', '"1.0" encoding="iso-8859-1"?')
    site.put("/a", b"\n  " + document.encode("latin-1"))
    site.put("/b", gzip.compress(atom(("v", "2025-01-01T00:00:00Z")).encode()), headers={"Content-Encoding": "gzip"})
    items = await blog({"urls": ["/a", f"{site.base}/b"], "limite": 1})
    assert [item["titulo"] for item in items] == ["Ação", "v"]


async def test_hostile_titles_and_links_become_plain_data(site, rss):
    titles = ["&lt;script&gt;alert(1)&lt;/script&gt;", "🚀 日本語", "\u202eavesso", "a" * 5_000, "x&#x9;y&#x85;z"]
    items = [f"<item><title>{title}</title><link>javascript:alert(1)</link></item>" for title in titles]
    site.put("/f", rss(*items))
    found = await blog({"url": "/f"})
    assert {item["url"] for item in found} == {None}
    assert [item["titulo"] for item in found[:3]] == ["<script>alert(1)</script>", "🚀 日本語", "avesso"]
    assert len(found[3]["titulo"]) == 300
    assert found[4]["titulo"] == "x y z"


@pytest.mark.parametrize(
    ("body", "codigo", "definitivo"),
    [
        ('<?xml version="1.0"?><rss><channel><item><title>cor', "xml_invalido", False),
        ("", "xml_invalido", False),
        ("<rss><channel><item>&#0;</item></channel></rss>", "xml_invalido", False),
        ("<!DOCTYPE html><html><head><meta charset=utf-8><title>x</title><br></html>", "nao_e_feed", True),
        ("<html><head/><body/></html>", "nao_e_feed", True),
        ('{"version": "https://jsonfeed.org/version/1"}', "nao_e_feed", True),
        ("<opml/>", "nao_e_feed", True),
        ("<rss version='2.0'><channel><title>x</title></channel></rss>", "feed_vazio", True),
        ("<feed xmlns='http://www.w3.org/2005/Atom'/>", "feed_vazio", True),
        ("<rss><channel><item/><item/></channel></rss>", "feed_vazio", True),
        ("<?xml version='1.0' encoding='inventada'?><rss/>", "xml_invalido", None),
        ("<a>" * 100_000, "xml_invalido", False),
    ],
)
async def test_bodies_that_are_no_feed(site, body, codigo, definitivo):
    site.put("/f", body)
    error = await failure({"url": "/f"})
    assert error.codigo == codigo
    assert definitivo is None or error.definitivo is definitivo
    assert error.mensagem.startswith("/f: ")


@pytest.mark.parametrize(
    "declaration",
    [
        "<!ENTITY a 'ha'>" + "".join(f"<!ENTITY a{n} '{'&a;' * 10}'>" for n in range(10)),
        "<!ENTITY a SYSTEM 'file:///etc/passwd'>",
        "<!ENTITY % a SYSTEM 'http://127.0.0.1:9/x'> %a;",
    ],
)
async def test_entities_are_refused(site, declaration):
    site.put(
        "/f", f"<?xml version='1.0'?><!DOCTYPE rss [{declaration}]><rss><channel><title>&a;</title></channel></rss>"
    )
    error = await failure({"url": "/f"})
    assert (error.codigo, error.definitivo) == ("xml_invalido", True)


async def test_deep_nesting_is_read_without_harm(site, rss):
    depth = 200_000
    site.put(
        "/f", rss("<item><title>fundo</title><description>" + "<b>" * depth + "</b>" * depth + "</description></item>")
    )
    [item] = await blog({"url": "/f"})
    assert item["titulo"] == "fundo"


@pytest.mark.parametrize("how", ["hold", "drip"])
async def test_a_slow_server_is_given_up(site, how):
    site.put("/f", declared=100, **{how: True})
    error = await failure({"url": "/f", "timeout_s": 0.3})
    assert (error.codigo, error.definitivo) == ("rede", False)
    assert "0.3 s" in error.mensagem


async def test_the_timeout_comes_from_the_environment(site, monkeypatch):
    monkeypatch.setenv("ORACULO_FEEDS_TIMEOUT", "0.2")
    site.put("/f", hold=True, declared=100)
    assert "0.2 s" in (await failure({"url": "/f"})).mensagem


async def test_a_connection_cut_short_may_heal(site, rss):
    site.put("/f", rss(ITEM), declared=100_000)
    error = await failure({"url": "/f"})
    assert (error.codigo, error.definitivo) == ("rede", False)


async def test_nobody_listening(site, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("ORACULO_FEEDS_ALLOW", f"127.0.0.1:{port}")
    error = await failure({"url": f"http://127.0.0.1:{port}/f"})
    assert (error.codigo, error.definitivo) == ("rede", False)


async def test_a_host_without_address(site):
    error = await failure({"url": "http://nao-existe.invalid/f"})
    assert (error.codigo, error.definitivo) == ("rede", False)


async def test_redirects_are_followed_but_not_for_ever(site, rss):
    site.put("/fim", rss(ITEM))
    for step in range(5):
        site.put(f"/r{step}", status=302, headers={"Location": "/fim" if step == 0 else f"/r{step - 1}"})
    assert len(await blog({"url": "/r4"})) == 1
    site.put("/r5", status=302, headers={"Location": "/r4"})
    site.put("/roda", status=302, headers={"Location": "/roda"})
    for path in ("/r5", "/roda"):
        error = await failure({"url": path})
        assert (error.codigo, error.definitivo) == ("redirecionamentos", True)


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:alert(1)"])
async def test_redirects_stay_on_http(site, location):
    site.put("/f", status=302, headers={"Location": location})
    error = await failure({"url": "/f"})
    assert error.definitivo
    assert error.codigo in {"redirecionamentos", "parametro_invalido"}


async def test_oversized_answers_are_cut_off(site):
    site.put("/f", b"<rss>" + b" " * fetch.MAX_BYTES)
    error = await failure({"url": "/f"})
    assert (error.codigo, error.definitivo) == ("resposta_grande", True)


async def test_compressed_bombs_are_cut_off(site):
    site.put("/f", gzip.compress(b" " * (fetch.MAX_BYTES * 10)), headers={"Content-Encoding": "gzip"})
    assert (await failure({"url": "/f"})).codigo == "resposta_grande"


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://e.com/f", "feed.xml", "http://", "http://[::1", "javascript:x", "   ", "http:///x"],
)
async def test_addresses_that_are_refused(site, url):
    error = await failure({"url": url})
    assert (error.codigo, error.definitivo) == ("parametro_invalido", True)
    assert site.asked == []


@pytest.mark.parametrize(
    "url", [f"http://{'a' * 70}.com/f", "http://a..b/f", "http://e.com:99999/f", "http://e.com/\x00"]
)
async def test_strange_addresses_fail_cleanly(site, url):
    assert (await failure({"url": url, "timeout_s": 5})).codigo in {"parametro_invalido", "rede"}


async def test_relative_addresses_need_a_base_and_stay_below_it(site, rss, monkeypatch):
    site.put("/evil.example/f", rss(ITEM))  # http.server reads two slashes as one
    [item] = await blog({"url": "//evil.example/f"})
    assert item["blog"].startswith(site.base)
    monkeypatch.delenv("ORACULO_BLOG_BASE")
    error = await failure({"url": "/f"})
    assert error.codigo == "parametro_invalido"
    assert "ORACULO_BLOG_BASE" in error.mensagem


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:1", "localhost:1", "10.0.0.1", "169.254.169.254", "[::1]", "0x7f.1", "2130706433", "[::ffff:10.0.0.1]"],
)
async def test_hosts_that_are_not_public_are_refused(site, host):
    site.put("/f", status=302, headers={"Location": f"http://{host}/interno"})
    for url in (f"http://{host}/interno", "/f"):
        error = await failure({"url": url})
        assert (error.codigo, error.definitivo) == ("endereco_recusado", True)
        assert "ORACULO_FEEDS_ALLOW" in error.mensagem


async def test_the_operator_may_allow_a_host(site, rss, monkeypatch):
    site.put("/f", rss(ITEM))
    monkeypatch.delenv("ORACULO_BLOG_BASE")
    monkeypatch.delenv("ORACULO_YOUTUBE_BASE")
    assert (await failure({"url": f"{site.base}/f"})).codigo == "endereco_recusado"
    monkeypatch.setenv("ORACULO_FEEDS_ALLOW", f"e.com:443, {site.base.removeprefix('http://')}")
    assert len(await blog({"url": f"{site.base}/f"})) == 1
    monkeypatch.setenv("ORACULO_FEEDS_ALLOW", "sem-porta")
    with pytest.raises(SettingsError, match="ORACULO_FEEDS_ALLOW"):
        await blog({"url": f"{site.base}/f"})


async def test_a_proxy_of_the_environment_is_used(site, rss, monkeypatch):
    site.put("http://blog.exemplo.invalid/f", rss(ITEM))
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("http_proxy", site.base)
    [item] = await blog({"url": "http://blog.exemplo.invalid/f"})
    assert item["blog"] == "http://blog.exemplo.invalid/f"


async def test_a_public_name_is_connected_to_by_its_address(site, rss, monkeypatch):
    """The address that was judged is the one used, with the original Host; the second is tried when the first fails."""
    site.put("/f", rss(ITEM))
    port = int(site.base.rpartition(":")[2])
    resolved = []

    async def addresses(host, port):
        resolved.append(host)
        return ["127.0.0.2", "127.0.0.1"]  # nobody listens on the first

    monkeypatch.setattr(guard, "_public_addresses", addresses)
    [item] = await blog({"url": f"http://blog.exemplo.com:{port}/f"})
    assert item["url"] == f"http://blog.exemplo.com:{port}/posts/1"
    assert resolved == ["blog.exemplo.com"]
    assert site.hosts[-1] == f"blog.exemplo.com:{port}"


async def test_credentials_are_not_repeated(site, rss):
    site.put("/f", rss(ITEM))
    with_password = site.base.replace("http://", "http://ana:segredo@")
    [item] = await blog({"url": with_password + "/f"})
    assert item["blog"] == f"{site.base}/f"
    assert "segredo" not in (await failure({"url": with_password + "/nada"})).mensagem


@pytest.mark.parametrize("tag", ["entry", "x"])
def test_entries_inside_entries_cost_no_more_than_their_length(tag):
    deep = 20_000
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>um</title></entry>'
    body = (head + f"<{tag}>" * deep + f"</{tag}>" * deep + "</feed>").encode()
    assert [entry.title for entry in parse_feed(body, "https://example.com/").entries] == ["um"]
    assert processor_time.seconds(lambda: parse_feed(body, "https://example.com/"), 1.0) < 1.0


def test_a_thousand_entries_are_read():
    entries = "".join(f"<entry><title>{number}</title></entry>" for number in range(1500))
    feed = parse_feed(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'.encode(), "https://example.com/")
    assert len(feed.entries) == MAX_ENTRIES
