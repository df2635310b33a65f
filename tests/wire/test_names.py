"""Destination → queue, as the contract writes them."""

from __future__ import annotations

import pytest

from oraculo.core.vocabulary import Kind
from oraculo.wire import names


def test_queues_of_the_contract() -> None:
    assert names.queue_of(Kind.COLETA, "youtube") == "escavador_youtube"
    assert names.queue_of(Kind.EXECUCAO, "relatorio") == "executador_relatorio"
    assert names.RESULTS == "orquestrador_resultados"
    assert names.REQUESTS == "orquestrador_requisicoes"
    assert names.dead_letter_queue("escavador_youtube") == "escavador_youtube.dlq"


@pytest.mark.parametrize("name", ["a", "escavador_youtube", "A.b-c_9", "x" * 200])
def test_queue_names(name: str) -> None:
    assert names.is_queue_name(name)


@pytest.mark.parametrize(
    "name", ["", " ", "_a", ".a", "-a", "a b", "a/b", "../a", "a\n", "é", "a\0", "x" * 201, "a*", "a>"]
)
def test_what_is_no_queue_name(name: str) -> None:
    assert not names.is_queue_name(name)
