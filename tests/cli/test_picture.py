"""The picture of an orchestration that moves: what it shows, folded when it is wide."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from oraculo.cli.picture import Picture

AT = "2025-10-14T12:00:{:02d}Z"


def ticket(number: int, destino: str, tipo: str = "coleta") -> dict[str, Any]:
    return {
        "ticket_id": f"t{number}",
        "destino": destino,
        "tipo": tipo,
        "status": "pendente",
        "tentativas": 0,
        "erro": None,
        "proxima_tentativa_em": None,
        "despachado_em": None,
        "concluido_em": None,
        "duracao_ms": None,
    }


def document(*tickets: dict[str, Any], name: str = "abc") -> dict[str, Any]:
    return {
        "correlation_id": name,
        "status": "pendente",
        "versao": 1,
        "inicio": AT.format(0),
        "fim": None,
        "duracao_ms": None,
        "espera": None,
        "notificacoes": [],
        "tickets": list(tickets),
    }


def drawn(picture: Picture, height: int = 40) -> str:
    text = io.StringIO()
    Console(file=text, width=100, height=height, force_terminal=True, color_system=None).print(picture)
    return text.getvalue()


def event(seq: int, name: str, **about: Any) -> dict[str, Any]:
    return {"seq": seq, "em": AT.format(seq), "evento": name, **about}


def test_it_follows_the_events() -> None:
    picture = Picture(
        document(ticket(0, "escavador_a"), ticket(1, "escavador_b"), ticket(2, "executador_c", "execucao"))
    )
    picture.apply(event(2, "tickets_dispatched", tickets=["t0", "t1"], tentativa=1))
    picture.apply(event(3, "dispatch_confirmed", tickets=["t0", "t1"]))
    assert "▶ escavador_a  em_execucao" in drawn(picture)
    picture.apply(
        event(4, "attempt_failed", ticket_id="t0", tentativa=1, causa="erro", erros=[{"mensagem": "não deu"}])
    )
    assert "↻ escavador_a  pendente" in drawn(picture) and "não deu" in drawn(picture)
    picture.apply(event(5, "tickets_dispatched", tickets=["t0"], tentativa=2))
    picture.apply(event(6, "ticket_concluded", ticket_id="t0", tentativa=2))
    assert "✔ escavador_a  concluida  attempt 2  4.0 s" in drawn(picture)
    picture.apply(event(7, "ticket_failed", ticket_id="t1", tentativa=1, status="timeout", erros=[]))
    picture.apply(event(8, "tickets_closed", tickets=["t2"], status="cancelada", motivo="sem dados"))
    picture.apply(event(9, "orchestration_closed", status="erro"))
    shown = drawn(picture)
    assert "⌛ escavador_b  timeout" in shown and "⊘ executador_c  cancelada" in shown and "3/3" in shown
    assert picture.status == "erro" and picture.version == 9


def test_wide_plans_are_counted_instead_of_listed() -> None:
    picture = Picture(document(*(ticket(n, "escavador_a") for n in range(1000)), ticket(1000, "escavador_b")))
    picture.apply(event(2, "tickets_dispatched", tickets=[f"t{n}" for n in range(1000)], tentativa=1))
    picture.apply(event(3, "dispatch_confirmed", tickets=[f"t{n}" for n in range(600)]))
    picture.apply(event(4, "ticket_concluded", ticket_id="t0", tentativa=1))
    shown = drawn(picture)
    assert "escavador_a  ×1000  ✔ 1  ▶ 599  ○ 400" in shown
    assert shown.count("\n") < 10


def test_what_does_not_fit_the_screen_is_folded_too() -> None:
    picture = Picture(document(*(ticket(n, f"escavador_{n % 3}") for n in range(45))))
    assert drawn(picture, height=60).count("\n") > 45
    assert drawn(picture, height=24).count("\n") < 10


def test_names_are_text_and_not_commands() -> None:
    shown = drawn(Picture(document(ticket(0, "escavador_a"), name="\x1b[31m[bold]x")))
    assert "\\x1b[31m[bold]x" in shown
