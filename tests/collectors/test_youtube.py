from __future__ import annotations

import threading

import pytest

from oraculo.collectors.youtube import youtube
from oraculo.errors import SettingsError, WorkError


async def test_items_of_one_channel(site, atom):
    site.channel("UC1", atom(("velho", "2025-09-01T10:00:00+00:00"), ("novo", "2025-10-14T09:00:00-03:00")))
    items = await youtube({"canal": "UC1"})
    assert [item["titulo"] for item in items] == ["novo", "velho"]
    assert items[0] == {
        "fonte": "youtube",
        "canal": "UC1",
        "canal_nome": "Canal de Teste",
        "titulo": "novo",
        "url": "https://www.youtube.com/watch?v=novo",
        "publicado_em": "2025-10-14T12:00:00Z",
        "resumo": "Uma descrição com linhas",
        "id": "novo",
        "atualizado_em": "2025-12-31T23:59:59Z",
        "visualizacoes": 1234,
        "miniatura": "https://i.ytimg.com/vi/x/hq.jpg",
    }
    assert site.asked == ["/feeds/videos.xml?channel_id=UC1"]
    assert all(agent.startswith("oraculo/") for agent in site.agents)


async def test_several_channels_in_the_order_asked_each_once(site, atom):
    for name in ("UC1", "UC2", "UC3"):
        site.channel(name, atom((f"v-{name}", "2025-10-01T00:00:00Z"), title=name))
    items = await youtube({"canal": "UC3", "canais": ["UC1", "UC2", "UC1"]})
    assert [(item["canal"], item["canal_nome"]) for item in items] == [("UC3", "UC3"), ("UC1", "UC1"), ("UC2", "UC2")]
    assert len(site.asked) == 3


async def test_channels_are_read_at_the_same_time(site, atom):
    together = threading.Barrier(4)
    names = [site.channel(f"UC{n}", atom(("v", "2025-10-01T00:00:00Z")), together=together) for n in range(4)]
    assert len(await youtube({"canais": names, "timeout_s": 4})) == 4


async def test_limit_is_per_channel_and_keeps_the_newest(site, atom):
    entries = [(f"v{day}", f"2025-10-{day:02d}T00:00:00Z") for day in range(1, 10)]
    site.channel("UC1", atom(*entries))
    site.channel("UC2", atom(*entries))
    items = await youtube({"canais": ["UC1", "UC2"], "limite": 2})
    assert [(item["canal"], item["titulo"]) for item in items] == [
        ("UC1", "v9"),
        ("UC1", "v8"),
        ("UC2", "v9"),
        ("UC2", "v8"),
    ]


@pytest.mark.parametrize(
    ("periodo", "expected"),
    [
        ("2025", ["c", "b"]),
        ("2025-10", ["c", "b"]),
        ("2025-10-31", ["c"]),
        ("2024", ["a"]),
        ("2025-09", []),
    ],
)
async def test_period_is_by_publication_in_utc(site, atom, periodo, expected):
    site.channel(
        "UC1",
        atom(("a", "2024-12-31T23:59:59Z"), ("b", "2025-10-01T00:00:00Z"), ("c", "2025-11-01T01:00:00+02:00")),
    )
    assert [item["titulo"] for item in await youtube({"canal": "UC1", "periodo": periodo})] == expected


@pytest.mark.parametrize(
    ("status", "definitivo"),
    [
        (400, True),
        (401, True),
        (403, True),
        (404, True),
        (410, True),
        (408, False),
        (429, False),
        (500, False),
        (503, False),
    ],
)
async def test_http_errors(site, status, definitivo):
    site.channel("UC1", "não", status=status)
    with pytest.raises(WorkError) as caught:
        await youtube({"canal": "UC1"})
    assert (caught.value.codigo, caught.value.definitivo) == (f"http_{status}", definitivo)
    assert "canal UC1" in caught.value.mensagem


async def test_one_failing_channel_fails_the_whole_and_is_named(site, atom):
    site.channel("UC1", atom(("v", "2025-10-01T00:00:00Z")))
    with pytest.raises(WorkError) as caught:
        await youtube({"canais": ["UC1", "UC-sumiu"]})
    assert (caught.value.codigo, caught.value.definitivo) == ("http_404", True)
    assert "1 de 2" in caught.value.mensagem and "UC-sumiu" in caught.value.mensagem
    assert "UC1:" not in caught.value.mensagem


async def test_mixed_failures_are_not_definitive_and_all_named(site):
    site.channel("UCa", status=404)
    site.channel("UCb", status=503)
    with pytest.raises(WorkError) as caught:
        await youtube({"canais": ["UCa", "UCb"]})
    assert (caught.value.codigo, caught.value.definitivo) == ("falhas_diversas", False)
    assert "UCa: o servidor respondeu HTTP 404" in caught.value.mensagem
    assert "UCb: o servidor respondeu HTTP 503" in caught.value.mensagem


@pytest.mark.parametrize(
    "parametros",
    [
        {},
        {"canal": ""},
        {"canal": 7},
        {"canal": "@nome"},
        {"canal": "UC1&channel_id=UC2"},
        {"canal": "../x"},
        {"canais": "UC1"},
        {"canais": []},
        {"canais": ["UC1", None]},
        {"canais": [f"UC{n}" for n in range(201)]},
        {"canal": "UC1", "limite": 0},
        {"canal": "UC1", "limite": True},
        {"canal": "UC1", "limite": "3"},
        {"canal": "UC1", "periodo": "outubro"},
        {"canal": "UC1", "periodo": "2025-13"},
        {"canal": "UC1", "periodo": "2025-02-30"},
        {"canal": "UC1", "periodo": 2025},
        {"canal": "UC1", "timeout_s": 0},
        {"canal": "UC1", "timeout_s": float("nan")},
        {"canal": "UC1", "timeout_s": 1e9},
    ],
)
async def test_wrong_parameters_are_refused_before_any_request(site, parametros):
    with pytest.raises(WorkError) as caught:
        await youtube(parametros)
    assert (caught.value.codigo, caught.value.definitivo) == ("parametro_invalido", True)
    assert site.asked == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ORACULO_YOUTUBE_BASE", "ftp://x"), ("ORACULO_FEEDS_TIMEOUT", "logo"), ("ORACULO_FEEDS_TIMEOUT", "-1")],
)
async def test_wrong_settings_name_the_variable(site, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=variable):
        await youtube({"canal": "UC1"})
