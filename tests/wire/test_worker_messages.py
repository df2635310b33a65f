"""What workers say about themselves, where one part of it needs another."""

from __future__ import annotations

import pytest

from oraculo.errors import WireError
from oraculo.wire.control_messages import control
from oraculo.wire.worker_messages import Registration, read_control


def test_a_worker_that_waits_for_offers_says_where() -> None:
    with pytest.raises(WireError) as error:
        read_control(control("registro", "w", {"filas": ["escavador_a"], "ofertas": True}))
    assert "`fila_propria`" in error.value.detail
    raw = control("registro", "w", {"queues": ["escavador_a"], "offers": True, "own_queue": "trabalhador_w"})
    _kind, _worker, said = read_control(raw)
    assert isinstance(said, Registration) and said.ofertas and said.fila_propria == "trabalhador_w"
