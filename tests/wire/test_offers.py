"""Headers of offers, and which of them came too late whatever the clocks show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from oraculo.wire.offers import OFFERS_REMEMBERED, OfferClock, OfferNote, note_of, offer_headers

AT = datetime(2025, 10, 14, 12, tzinfo=UTC)
YEAR_S = 365 * 86400.0


def made(seconds: float) -> OfferNote:
    return OfferNote("escavador_a", AT + timedelta(seconds=seconds), 5.0)


def test_headers_are_read_as_they_were_written_beside_those_of_the_order() -> None:
    headers = offer_headers({"assinatura": "x"}, made(0.25))
    assert headers["assinatura"] == "x" and note_of(headers) == made(0.25)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"oraculo-oferta-fila": "a"},
        {"oraculo-oferta-fila": "a", "oraculo-oferta-em": "ontem", "oraculo-oferta-s": "5"},
        {"oraculo-oferta-fila": "a", "oraculo-oferta-em": "2025-10-14T12:00:00", "oraculo-oferta-s": "5"},
        {"oraculo-oferta-fila": "a", "oraculo-oferta-em": "2025-10-14T12:00:00Z", "oraculo-oferta-s": "x"},
    ],
)
def test_what_cannot_be_read_is_no_offer(headers: dict[str, str]) -> None:
    assert note_of(headers) is None


@pytest.mark.parametrize("apart_s", [-YEAR_S, 0.0, YEAR_S])
def test_what_waited_longer_than_it_lasts_is_late_whatever_the_clocks_show(apart_s: float) -> None:
    clock, zero = OfferClock(), AT.timestamp() + apart_s
    assert not clock.is_late(made(0), zero + 0.1)
    assert not clock.is_late(made(10), zero + 14.9)
    assert clock.is_late(made(20), zero + 25.2)
    assert not clock.is_late(made(30), zero + 30.3)


def test_a_clock_that_was_set_back_costs_a_few_offers_at_most() -> None:
    clock, zero = OfferClock(), AT.timestamp()
    assert not clock.is_late(made(0), zero)
    late = [clock.is_late(made(second - 3600), zero + second) for second in range(1, 9)]
    assert late == [True] * OFFERS_REMEMBERED + [False] * (8 - OFFERS_REMEMBERED)
