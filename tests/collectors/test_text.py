import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import processor_time
from oraculo.collectors.dates import iso_z, parse_instant
from oraculo.collectors.latin import ENCODING, latin
from oraculo.collectors.text import clean, http_url, plain, shorten, without_credentials


@settings(deadline=None)
@given(st.text(alphabet=st.characters()))
def test_clean_text_can_be_written_anywhere(text):
    cleaned = clean(text)
    cleaned.encode()
    assert "\x00" not in cleaned
    assert clean(cleaned) == cleaned


@settings(deadline=None)
@given(st.text())
def test_latin_text_fits_the_font(text):
    latin(clean(text)).encode(ENCODING)


def test_latin_keeps_what_the_font_has():
    assert latin("Ação – “já” … €") == "Ação – “já” … €"
    assert latin("Ac\u0327a\u0303o") == "Ação"
    assert latin("Привет, São Paulo") == "Privet, São Paulo"
    assert latin("\u200d") == "?"
    assert latin("") == ""


@settings(deadline=None)
@given(st.text(), st.integers(min_value=1, max_value=50))
def test_shorten(text, limit):
    assert len(shorten(text, limit)) <= max(limit, 1)


@settings(deadline=None)
@given(st.text())
def test_plain_and_dates_and_links_never_raise(text):
    plain(text)
    instant = parse_instant(text)
    assert instant is None or parse_instant(iso_z(instant)) is not None
    url = http_url(text, "https://e.com/a/b")
    assert url is None or url.startswith(("http://", "https://"))
    without_credentials(text)


def test_plain_leaves_scripts_out():
    assert plain("<p>Um</p><p>dois &amp; três</p><script>mau()</script><style>p{}</style>") == "Um dois & três"
    assert plain("1 < 2 & 3") == "1 < 2 & 3"


def test_links():
    assert http_url("https://e.com/a b") == "https://e.com/a%20b"
    assert http_url("HTTP://e.com")
    assert http_url("../c", "https://e.com/a/b") == "https://e.com/c"
    for refused in (
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "//",
        "mailto:a@b",
        "",
        "x" * 3000,
    ):
        assert http_url(refused) is None


def test_dates():
    for text, expected in {
        "2025-10-14T12:00:00Z": "2025-10-14T12:00:00Z",
        "2025-10-14T12:00:00.123-03:00": "2025-10-14T15:00:00Z",
        "2025-10-14": "2025-10-14T00:00:00Z",
        "Tue, 14 Oct 2025 12:00:00 GMT": "2025-10-14T12:00:00Z",
        "14 Oct 2025 12:00 +0200": "2025-10-14T10:00:00Z",
    }.items():
        instant = parse_instant(text)
        assert instant is not None
        assert iso_z(instant) == expected
    for text in ("", "ontem", "2025-13-01", "0001-01-01T00:00:00+14:00"):
        assert parse_instant(text) is None


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ('<a title="a > b">c</a>', "c"),
        ("<a title='>", ""),
        ("um<br/>dois<!-- três -->quatro", "um doisquatro"),
        ("<SCRIPT>x</script >y", "y"),
        ("<script>x", ""),
        ("a <b", "a"),
        ("&lt;b&gt; <i>x</i>", "<b> x"),
        ("<3 & <", "<3 & <"),
    ],
)
def test_plain_reads_what_strangers_write(markup, text):
    assert plain(markup) == text


@pytest.mark.parametrize("shape", ["<a ", "<a '", "<!--", "<script>", "</", "<", "&", "<p", "<a x='\">"])
def test_plain_takes_no_longer_than_its_length_asks(shape):
    markup = shape * 20_000
    assert processor_time.seconds(lambda: plain(markup), 0.2) < 0.2
