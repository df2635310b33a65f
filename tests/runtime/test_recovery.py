"""What a process that starts sends again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oraculo.core.replay import rebuild
from oraculo.runtime.kernel import handler
from oraculo.service import Oraculo
from oraculo.settings.settings import Settings, load

RUNS = 3


def settings(folder: Path) -> Settings:
    return load({"ORACULO_STORE": f"sqlite:///{folder / 'o.db'}", "ORACULO_BROKER": "memory://"}, None)


async def test_what_is_sent_again_is_in_memory_and_is_not_recorded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The in-process broker forgot the orders. They are with it again, and nothing is folded or written for that."""
    async with Oraculo(settings(tmp_path)) as oraculo:
        for number in range(RUNS):
            await oraculo.submit({"coletas": [{"fonte": "a"}], "correlation_id": f"r{number}"})
        await oraculo.engine.drained()
        written = await versions(oraculo)
    folded = []

    def counted(*given: Any) -> Any:
        folded.append(given)
        return rebuild(*given)

    monkeypatch.setattr(handler, "rebuild", counted)
    async with Oraculo(settings(tmp_path)) as oraculo:
        await oraculo.engine.drained()
        assert (await oraculo.kernel_ports.broker.backlog("escavador_a")).waiting == RUNS
        assert await versions(oraculo) == written
        assert folded == []


async def versions(oraculo: Oraculo) -> list[int]:
    states = [await oraculo.engine.state_of(f"r{number}") for number in range(RUNS)]
    return [state.version for state in states if state is not None]
