import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from hypothesis import given, settings
from hypothesis import strategies as st

import processor_time
from oraculo.collectors.dates import iso_z, parse_instant
from oraculo.collectors.pdf_fonts import Lettering, own_characters
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
def test_any_text_fits_the_fonts(text):
    cleaned = clean(text)
    assert own_characters().issuperset(map(ord, Lettering([cleaned], folders=()).fit(cleaned)))


def test_the_fonts_that_ship_have_latin_greek_and_cyrillic():
    letters = Lettering([], folders=())
    for kept in ("Ação – “já” … €", "Привет, São Paulo", "Γειά σου Κόσμε", "Tiếng Việt có dấu", "žluťoučký kůň", ""):
        assert letters.fit(kept) == kept
    assert letters.fit("Ac\u0327a\u0303o") == "Ação" and letters.is_whole
    assert letters.fit("日本") == "RiBen" and not letters.is_whole
    assert letters.fit("\u200d") in ("?", "\u200d")


def test_other_alphabets_take_a_font_of_this_machine(tmp_path):
    """A font with letters of its own stands in for those that a machine may have."""
    for name in ("NotoSansArmenian-Regular.ttf", "NotoSansHebrew-Regular.ttf", "Other.ttf"):
        build_font(tmp_path / "deep" / name, "Աաא")
    (tmp_path / "NotoSansCJK-Regular.ttc").write_bytes(b"no font")
    letters = Lettering(["Աա א ж 日"], folders=[str(tmp_path)], shapes=True)
    assert [name for name, _ in letters.fallbacks] == ["NotoSansArmenian-Regular.ttf", "NotoSansHebrew-Regular.ttf"]
    assert letters.is_shaped and letters.fit("Աա א ж 日") == "Աա א ж Ri"
    plain = Lettering(["Աա א"], folders=[str(tmp_path)], shapes=False)
    assert not plain.is_shaped and plain.fit("Աա א") == "Աա '"


def build_font(path, letters):
    path.parent.mkdir(exist_ok=True)
    glyphs = [".notdef", *(f"u{ord(one):04X}" for one in letters)]
    font = FontBuilder(1000)
    font.setupGlyphOrder(glyphs)
    font.setupCharacterMap({ord(one): f"u{ord(one):04X}" for one in letters})
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    pen.lineTo((500, 0))
    pen.lineTo((500, 700))
    pen.closePath()
    font.setupGlyf(dict.fromkeys(glyphs, pen.glyph()))
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (600, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": path.stem, "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    font.setupPost()
    font.save(path)


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
