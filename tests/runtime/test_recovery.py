"""What a process that starts sends again."""

from __future__ import annotations

from pathlib import Path

from oraculo.service import Oraculo
from oraculo.settings.settings import Settings, load

RUNS = 3


def settings(folder: Path) -> Settings:
    return load({"ORACULO_STORE": f"sqlite:///{folder / 'o.db'}", "ORACULO_BROKER": "memory://"}, None)


async def test_what_is_sent_again_is_in_memory_and_is_not_recorded_again(tmp_path: Path) -> None:
    """The in-process broker forgot the orders. They are with it again, and nothing is read or written for that."""
    async with Oraculo(settings(tmp_path)) as oraculo:
        for number in range(RUNS):
            await oraculo.submit({"coletas": [{"fonte": "a"}], "correlation_id": f"r{number}"})
        await oraculo.engine.drained()
        known = [await oraculo.engine.state_of(f"r{number}") for number in range(RUNS)]
        written = [one.version for one in known if one is not None]
    async with Oraculo(settings(tmp_path)) as oraculo:
        await oraculo.engine.drained()
        ports = oraculo.kernel_ports
        assert (await ports.broker.backlog("escavador_a")).waiting == RUNS
        loads = 0
        load_of_store = ports.store.load

        async def counted(runs: object) -> object:
            nonlocal loads
            loads += 1
            return await load_of_store(runs)  # type: ignore[arg-type]

        ports.store.load = counted  # type: ignore[method-assign, assignment]
        again = [await oraculo.engine.state_of(f"r{number}") for number in range(RUNS)]
        assert loads == 0
        assert [one.version for one in again if one is not None] == written
