"""Model clients whose requests exist once: they ask under names of their own for what others ask for as well."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from oraculo.core.uniqueness import UniqueMode
from oraculo.errors import BusyError, StoreError
from oraculo.simulation import plans
from oraculo.simulation.clients import Client
from oraculo.simulation.faults import ProcessDiedError
from oraculo.simulation.process import DEFAULTS
from oraculo.wire import requests

GIVEN_KEYS = ("cliente-1", None)  # None: equal requests are those that say the same
TOGETHER_SHARE = 0.6  # of requests
WINDOW_MAX_S = 12.0


@dataclass(slots=True)
class UniqueClient(Client):
    """One request that exists once."""

    async def run(self) -> None:
        scene, rng = self.scene, self.scene.rng
        if rng.random() < TOGETHER_SHARE:  # at the same time as others
            await asyncio.sleep(scene.dials.horizon * rng.choice((0.1, 0.3)))
        else:
            await scene.sleep(0, scene.dials.horizon * 0.6)
        key = rng.choice(GIVEN_KEYS)
        own, equal = plans.request(rng, scene.dials.masked, None), scene.equal_request
        self.body = {
            **(equal if key is None and equal is not None else own),
            "correlation_id": self.name,
            "unica": rule(rng, key),
        }
        scene.plans[self.name] = requests.plan_of(requests.parse(self.body), DEFAULTS)
        self.watch.unique.asked(self.name, self.body["unica"])
        if rng.random() < 0.3 and not scene.dials.volatile:
            await self._message(self.body)
        else:
            await self._ask_over_http()
        self.accepted = self.finished = True
        scene.count("requests that exist once")

    async def _ask_over_http(self) -> None:
        """Until it is known which run it is, which is durable then."""
        while True:
            try:
                accepted = await self.process.submit(self.body, None)
                break
            except (ProcessDiedError, StoreError, BusyError):
                await self.scene.sleep(0.1, 1.5)
        run = accepted.run
        if accepted.merged:
            self.watch.unique.merged(self.name, run)
        elif run != self.watch.by_name.get(self.name):
            self.scene.violate("acceptance is durable", f"{self.name} was accepted and is not in the journal")


def rule(rng: Random, key: str | None) -> dict[str, Any]:
    """The word `unica` of a request."""
    mode = rng.choice((UniqueMode.OPEN, UniqueMode.OPEN, UniqueMode.WINDOW, UniqueMode.WINDOW, UniqueMode.FOREVER))
    window = {"janela_s": round(rng.uniform(0.5, WINDOW_MAX_S), 3)} if mode is UniqueMode.WINDOW else {}
    return {"modo": mode.value, **window, **({} if key is None else {"chave": key})}
