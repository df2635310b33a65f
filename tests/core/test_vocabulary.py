"""The words that travel are those of the contract, letter by letter."""

from __future__ import annotations

import pytest

from oraculo.core.vocabulary import RUN_STATUSES, FanIn, Kind, Status, TipoEvento, Verdict


def test_event_types_of_the_contract() -> None:
    assert [e.value for e in TipoEvento] == [
        "iniciar_coleta", "resultado_coleta", "iniciar_execucao", "resultado_execucao",
    ]  # fmt: skip


def test_statuses_of_the_contract() -> None:
    assert {s.value for s in Status} == {
        "pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada", "ignorada",
    }  # fmt: skip


@pytest.mark.parametrize("status", Status)
def test_only_pendente_and_em_execucao_are_not_final(status: Status) -> None:
    assert status.final == (status.value not in ("pendente", "em_execucao"))


def test_only_tickets_are_skipped() -> None:
    assert set(Status) - set(RUN_STATUSES) == {Status.IGNORADA}


def test_fan_in_modes_of_the_contract() -> None:
    assert {m.value for m in FanIn} == {"todos", "quorum", "primeiro", "todas_ok", "fechadas"}


def test_a_kind_picks_its_messages() -> None:
    assert (Kind.COLETA.order, Kind.COLETA.answer) == ("iniciar_coleta", "resultado_coleta")
    assert (Kind.EXECUCAO.order, Kind.EXECUCAO.answer) == ("iniciar_execucao", "resultado_execucao")


def test_refused_verdicts_are_those_that_belong_in_quarantine() -> None:
    refused = {Verdict.AMBIGUOUS, Verdict.UNKNOWN_TICKET, Verdict.WRONG_ATTEMPT, Verdict.TOO_MANY_ANSWERS}
    refused |= {Verdict.RUN_ENDED, Verdict.ALREADY_DECIDED}
    assert {v for v in Verdict if v.refused} == refused
