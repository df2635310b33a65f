from __future__ import annotations

import os
import re
import zlib
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from oraculo.collectors.relatorio import relatorio
from oraculo.collectors.report import MAX_ROWS
from oraculo.errors import WorkError

ESCAPES = {b"r": b"\r", b"n": b"\n", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = [
    "<script>alert('titulo')</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><script>x</script>",
    "palavra" * 400,
    "🚀🇧🇷 foguete 👩‍💻",
    "日本語のタイトル",
    "\u202eotxet od osseva",
    "مرحبا بالعالم",
    "nulo\x00 e \x1b[31m escape \ud800 solto",
    "(parêntese) \\ barra ) %PDF {nb} **negrito** __x__",
    "“aspas” — travessão… € ação",
    "\u200d",
    "",
]


class Page(HTMLParser):
    """Checks that tags close in order, and keeps what a browser would act on."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports go here; fonts are those that ship, whatever this machine has."""
    monkeypatch.setattr("oraculo.collectors.pdf_fonts.fonts_there", lambda folders: {})
    root = tmp_path / "relatorios"
    monkeypatch.setenv("ORACULO_RELATORIOS", str(root))
    return root


def collected(fonte="youtube", titles=("Um vídeo", "Outro"), status="concluida"):
    items = [
        {
            "fonte": fonte,
            "titulo": title,
            "url": f"https://e.com/{n}",
            "publicado_em": f"2025-10-{n % 28 + 1:02d}T12:00:00Z",
        }
        for n, title in enumerate(titles)
    ]
    return {"fonte": fonte, "status": status, "dados": items}


def page(answer) -> Page:
    return Page(Path(answer["arquivos"][1]).read_text(encoding="utf-8"))


def pdf_pages(answer) -> int:
    content = Path(answer["arquivo"]).read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    return len(re.findall(rb"/Type /Page\b", content))


def streams(content: bytes) -> dict[int, bytes]:
    """Number of an object → what its stream holds."""
    found = re.findall(rb"\n(\d+) 0 obj\n(?:(?!endobj).)*?stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    return {int(number): zlib.decompress(body) if body[:1] == b"x" else body for number, body in found}


def letters_of(content: bytes) -> dict[bytes, dict[str, str]]:
    """Name of a font on the pages → its codes and what they stand for, as readers see it who copy or search."""
    kept = streams(content)
    found: dict[bytes, dict[str, str]] = {}
    for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", content):
        [about] = re.findall(rb"\n%s 0 obj\n(.*?)endobj" % number, content, re.DOTALL)
        [unicode_of] = re.findall(rb"/ToUnicode (\d+) 0 R", about)
        pairs = re.findall(
            rb"<([0-9A-F]{4})> <([0-9A-F]+)>\n", kept[int(unicode_of)].partition(b"endcodespacerange")[2]
        )
        found[name] = {code.decode(): bytes.fromhex(text.decode()).decode("utf-16-be") for code, text in pairs}
    return found


def pdf_text(answer) -> str:
    """What the pages show, by the tables from codes to letters that are in the file."""
    content = Path(answer["arquivo"]).read_bytes()
    letters = letters_of(content)
    text: list[str] = []
    for drawn in streams(content).values():
        font: dict[str, str] = {}
        for name, said in re.findall(rb"/(F\d+) [\d.]+ Tf|\(((?:[^\\()]|\\.)*)\) Tj", drawn, re.DOTALL):
            if name:
                font = letters[name]
                continue
            codes = re.sub(rb"\\(.)", lambda one: ESCAPES.get(one[1], one[1]), said, flags=re.DOTALL)
            text += [font.get(codes[at : at + 2].hex().upper(), "") for at in range(0, len(codes), 2)] + ["\n"]
    return "".join(text)


def refused(dados, parametros) -> WorkError:
    with pytest.raises(WorkError) as caught:
        relatorio(dados, parametros)
    assert (caught.value.codigo, caught.value.definitivo) == ("parametro_invalido", True)
    return caught.value


def test_no_other_user_of_the_machine_reads_a_report():
    before = os.umask(0o022)
    try:
        answer = relatorio([collected()], {})
    finally:
        os.umask(before)
    assert [Path(name).stat().st_mode & 0o777 for name in answer["arquivos"]] == [0o600, 0o600]


def test_writes_both_files_and_says_where(root):
    answer = relatorio([collected(), collected("blog", ["Só um"])], {"titulo": "Semana à prova", "periodo": "2025-10"})
    assert answer == {
        "resultado": "ok",
        "arquivo": str(root / "relatorio.pdf"),
        "arquivos": [str(root / "relatorio.pdf"), str(root / "relatorio.html")],
        "itens": 3,
        "fontes": 2,
        "fontes_ausentes": [],
    }
    assert sorted(path.name for path in root.iterdir()) == ["relatorio.html", "relatorio.pdf"]
    text = page(answer).text
    for expected in ("Semana à prova", "Período: 10/2025", "Um vídeo", "Só um", "02/10/2025", "e.com/1"):
        assert expected in text
    assert page(answer).tags.count("svg") == 2
    assert pdf_pages(answer) == 1
    for expected in ("Semana à prova", "Período: 10/2025", "Um vídeo", "Itens por fonte", "Itens por dia"):
        assert expected in pdf_text(answer)


def test_missing_sources_are_named_in_both():
    answer = relatorio(
        [
            collected(),
            {"fonte": "noticias", "status": "timeout", "dados": None},
            {"fonte": "vazia", "status": "concluida", "dados": None},
            {"fonte": "velha", "status": "erro", "dados": [{"titulo": "não mostre"}]},
        ],
        {},
    )
    assert answer["fontes_ausentes"] == ["noticias", "vazia", "velha"]
    assert (answer["itens"], answer["fontes"]) == (2, 4)
    for text in (page(answer).text, pdf_text(answer)):
        assert "Fontes que faltam" in text
        assert "noticias: a coleta terminou como “prazo estourado”" in text
        assert "vazia: a coleta terminou sem dados" in text
        assert "não mostre" not in text


def test_nothing_collected_is_still_a_report():
    answer = relatorio([], {})
    assert (answer["itens"], answer["fontes"]) == (0, 0)
    assert "Nenhum item foi coletado" in page(answer).text
    assert pdf_pages(answer) == 1


def test_hostile_text_stays_text():
    parts = [collected(title[:60] or "x", HOSTILE) for title in HOSTILE]
    parts[0]["dados"] += [
        {"titulo": "mau", "url": "javascript:alert(1)"},
        {"titulo": "dado", "url": "data:text/html,x"},
    ]
    parts[0]["dados"].append({"titulo": "aspas", "url": 'https://e.com/"onmouseover="x'})
    answer = relatorio(parts, {"titulo": HOSTILE[0], "periodo": HOSTILE[1]})
    found = page(answer)
    assert not {"script", "img", "iframe", "object"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    links = [value for name, value in found.attributes if name == "href"]
    assert links
    assert all(value.startswith(("http://", "https://")) for value in links)
    assert "<script>alert('titulo')</script>" in found.text
    source = Path(answer["arquivos"][1]).read_text(encoding="utf-8")
    assert "<script" not in source
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", source)
    assert pdf_pages(answer) > 1
    drawn = pdf_text(answer)
    for expected in (":rocket:", "RiBenYu", "{nb}", "“aspas” — travessão… € ação", "(sem título)"):
        assert expected in drawn
    assert b"javascript:" not in Path(answer["arquivo"]).read_bytes()


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ([], 0),
        ({"itens": [{"title": "a"}, {"nome": "b"}]}, 2),
        ({"qualquer": 1}, 1),
        ("só um texto", 1),
        (42, 1),
        ([1, None, [2], {"titulo": {"aninhado": True}}, {"titulo": "t", "publicado_em": 7, "url": 9}], 5),
        ([{"titulo": "t", "publicado_em": "9999-12-31T23:59:59-12:00"}, {"titulo": "t", "data": "0001-01-01"}], 2),
    ],
)
def test_data_of_any_shape(data, count):
    answer = relatorio([{"fonte": "x", "status": "concluida", "dados": data}], {})
    assert answer["itens"] == count
    assert page(answer)
    assert pdf_pages(answer) >= 1


def test_ten_thousand_items_take_seconds_and_the_table_is_capped():
    parts = [collected(f"fonte {n}", [f"Título número {m}" for m in range(1_000)]) for n in range(20)]
    answer = relatorio(parts, {})
    assert answer["itens"] == 20_000
    found = page(answer)
    assert found.tags.count("tr") == 1 + 20 + 1 + MAX_ROWS
    assert "outros itens não estão listados" in found.text
    assert "19.500" in found.text and "19.500" in pdf_text(answer)


class Stopped:
    """A clock that stands."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oraculo.collectors.relatorio.MonotonicClock", Stopped)


FEEDS = [
    {
        "fonte": "youtube",
        "status": "concluida",
        "dados": [
            {
                "canal": "UC1",
                "canal_nome": "Canal da Ana",
                "titulo": "Um vídeo",
                "url": "https://e.com/v/1",
                "publicado_em": "2025-10-02T12:00:00Z",
                "resumo": "Do que se fala <b>hoje</b>.",
            },
            {
                "canal_nome": "Canal do Bob",
                "titulo": "Outro",
                "resumo": "outro",
                "publicado_em": "2025-10-03T12:00:00Z",
            },
        ],
    },
    {"fonte": "blog", "status": "timeout", "dados": None},
]


@pytest.mark.usefixtures("stopped")
def test_channels_summaries_and_provenance_are_in_both():
    answer = relatorio(FEEDS, {}, "abc-123")
    assert answer["fontes_ausentes"] == ["blog"], "by the name that it was asked for"
    for text in (page(answer).text, pdf_text(answer)):
        for expected in (
            "Canal da Ana",
            "Canal do Bob",
            "YouTube",
            "Do que se fala hoje.",
            "Gerado pelo Oráculo em 02/01/2026, 03:04 UTC",
            "execução abc-123",
            "concluída",
            "Blog: a coleta terminou como “prazo estourado”",
        ):
            assert expected in text
        assert "concluida" not in text
    assert page(answer).text.count("utro") == 1, "a summary that only repeats its title is left out"
    assert ("href", "https://e.com/v/1") in page(answer).attributes


@pytest.mark.usefixtures("stopped")
def test_in_english_no_word_of_ours_is_portuguese():
    answer = relatorio(FEEDS, {"idioma": "en", "titulo": "Fortnight"}, "abc-123")
    found = page(answer)
    assert ("lang", "en") in found.attributes
    for text in (found.text, pdf_text(answer)):
        for expected in (
            "Made by Oráculo on 2 Jan 2026, 03:04 UTC",
            "Period: 2 Oct 2025 to 3 Oct 2025",
            "Items by source",
            "Summary by source",
            "the collection ended as “timed out”",
        ):
            assert expected in text
        for word in ("Período", "Fonte", "Itens", "Situação", "execução", "coleta", "nada para"):
            assert word not in text
    assert "12,345" in page(relatorio([collected(titles=["x"] * 12_345)], {"idioma": "en"})).text


def test_another_language_is_refused_by_name():
    assert "'idioma' é 'fr'; permitido: pt, en" in str(refused([], {"idioma": "fr"}))


@pytest.mark.usefixtures("stopped")
def test_a_retry_writes_the_same_bytes(root):
    def files():
        return {path.name: path.read_bytes() for path in root.iterdir()}

    relatorio([collected()], {})
    first = files()
    relatorio([collected()], {})
    assert files() == first


def test_a_name_is_a_directory_of_its_own(root):
    for name, slug in [
        ("Relatório de Outubro/2025", "relatorio-de-outubro-2025"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\x00b", "a-b"),
        ("日本", "riben"),
        ("x" * 500, "x" * 80),
    ]:
        assert Path(relatorio([], {"nome": name})["arquivo"]) == root / slug / "relatorio.pdf"
    refused([], {"nome": "../.."})
    refused([], {"nome": 3})


def test_orchestrations_do_not_replace_each_other(root):
    ids = ["abc123", "ABC123", "abc/123", "../..", "日本", "x" * 128, "x" * 127, "0199e1b5-7c1e-7000-8000-000000000000"]
    written = [Path(relatorio([], {}, each)["arquivo"]).parent for each in ids]
    assert written[0] == root / "abc123"
    assert written[-1] == root / ids[-1]
    assert len(set(written)) == len(ids)
    assert {path.parent for path in written} == {root}
    assert Path(relatorio([], {"nome": "meu"}, "abc123")["arquivo"]).parent == root / "meu"


def test_a_destination_stays_below_the_root(root):
    answer = relatorio([], {"destino": "2025/outubro", "nome": "a"})
    assert Path(answer["arquivo"]) == root / "2025" / "outubro" / "a" / "relatorio.pdf"
    assert Path(relatorio([], {"destino": "."})["arquivo"]).parent == root
    for destination in ("/tmp/x", "../x", "a/../../x", "..\\x", "C:\\x", "C:x", "\\\\host\\x", "a\x00b", "a" * 300, 5):
        refused([], {"destino": destination})
    assert sorted(path.name for path in root.parent.iterdir()) == ["relatorios"]


def test_symbolic_links_do_not_lead_out(root, tmp_path):
    root.mkdir()
    outside = tmp_path / "fora"
    outside.mkdir()
    os.symlink(outside, root / "atalho")
    refused([], {"destino": "atalho"})
    refused([], {"nome": "atalho"})
    os.symlink(root / "laco", root / "laco")
    with pytest.raises(WorkError):
        relatorio([], {"destino": "laco"})
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("dados", [None, {}, "x", [1], [None]])
def test_input_that_is_no_list_of_sources(dados):
    refused(dados, {})


def test_a_disk_that_refuses_may_heal(root):
    root.write_text("um arquivo onde devia haver um diretório")
    with pytest.raises(WorkError) as caught:
        relatorio([], {})
    assert (caught.value.codigo, caught.value.definitivo) == ("disco", False)


def test_without_the_variable_reports_go_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("ORACULO_RELATORIOS")
    monkeypatch.chdir(tmp_path)
    assert Path(relatorio([], {})["arquivo"]) == tmp_path / "relatorios" / "relatorio.pdf"


def test_the_pdf_embeds_its_fonts_and_has_a_structure():
    rows = [f"Título número {n}" for n in range(60)]
    answer = relatorio([collected(titles=["Привет", "Γειά", *rows])], {"titulo": "Semana", "idioma": "en"})
    content = Path(answer["arquivo"]).read_bytes()
    assert b"/FontFile2" in content and b"/BaseFont /Helvetica" not in content
    assert "Привет" in pdf_text(answer) and "Γειά" in pdf_text(answer)
    assert b"/Lang (en)" in content and b"/Marked true" in content and b"/DisplayDocTitle true" in content
    kinds = re.findall(rb"/S /(\w+)", content)
    assert kinds.count(b"H1") == 1 and kinds.count(b"H2") == 4 and kinds.count(b"Figure") == 2
    assert kinds.count(b"Table") == 2 and kinds.count(b"TH") == 4 + 3
    assert kinds.count(b"TR") == 1 + 1 + 1 + 62 and kinds.count(b"TD") == 4 + 3 * 62
    assert content.count(b"/Scope /Column") == 7 and content.count(b"/Alt (") == 2
    pages = [drawn for drawn in streams(content).values() if b" Tf" in drawn]
    assert len(pages) == pdf_pages(answer) > 2
    for drawn in pages:  # all that is drawn is content or decoration, each piece numbered once on its page
        assert drawn.count(b" BDC") + drawn.count(b" BMC") == drawn.count(b"EMC")
        outside = re.sub(rb"/\w+ (?:<<[^>]*>> BDC|BMC)\n.*?EMC", b"", drawn, flags=re.DOTALL)
        assert b" Tj" not in outside and b" re" not in outside and b" l" not in outside
        numbers = [int(one) for one in re.findall(rb"/MCID (\d+)", drawn)]
        assert numbers == list(range(len(numbers))) and numbers
