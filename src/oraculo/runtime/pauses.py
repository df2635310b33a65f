"""Pausing, resuming and urgency, as an operator asks for it. Durable when a call returns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from oraculo.core.access import Actor
from oraculo.core.commands import PauseRun, Prioritise, ResumeRun
from oraculo.core.state import Orchestration
from oraculo.core.tenants import DEFAULT_TENANT, in_tenant
from oraculo.errors import RunEndedError, UnknownIdError
from oraculo.ports.engine import Engine
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.work import Fate, Work
from oraculo.runtime.destination_pauses import DestinationBook

PAUSED_EVENT, RESUMED_EVENT = "orchestration_paused", "orchestration_resumed"


class RunPauses:
    """Pauses single orchestrations of a tenant and lets them go on; `destinations` does the same to where orders go."""

    def __init__(
        self,
        engine: Engine,
        destinations: DestinationBook,
        store: Store,
        now: Callable[[], datetime],
        tenant: str = DEFAULT_TENANT,
    ) -> None:
        self._engine = engine
        self.destinations = destinations
        self._store = store
        self._now = now
        self._tenant = tenant

    async def pause(self, correlation_id: str, reason: str, actor: Actor) -> bool:
        """Pause an orchestration; return False when it was paused already. RunEndedError: it has ended."""
        changed = await self._ask(correlation_id, PauseRun(reason, actor.id))
        return changed and await self._record(PAUSED_EVENT, correlation_id, reason, actor)

    async def resume(self, correlation_id: str, reason: str, actor: Actor) -> bool:
        """Let an orchestration go on; return False when it was not paused. RunEndedError: it has ended."""
        changed = await self._ask(correlation_id, ResumeRun(reason, actor.id))
        return changed and await self._record(RESUMED_EVENT, correlation_id, reason, actor)

    async def prioritise(self, correlation_id: str, priority: int, reason: str, actor: Actor) -> bool:
        """Change how urgent an orchestration is; return False when it was so already. RunEndedError: it has ended."""
        return await self._ask(correlation_id, Prioritise(priority, reason, actor.id))

    async def _record(self, kind: str, correlation_id: str, reason: str, actor: Actor) -> bool:
        """List who did it beside all other pauses; the journal of the run, which is the record, has it already."""
        body = {"correlation_id": correlation_id, "ator": actor.id, "motivo": reason}
        await self._store.record_system_event(SystemEvent(kind, self._now(), body, tenant=self._tenant))
        return True

    async def _ask(self, correlation_id: str, command: PauseRun | ResumeRun | Prioritise) -> bool:
        outcome = (await self._engine.submit([Work(command, in_tenant(self._tenant, correlation_id))]))[0]
        if outcome.fate is Fate.UNKNOWN:
            raise UnknownIdError("orchestration", correlation_id)
        if outcome.fate is Fate.IDLE:
            raise RunEndedError(correlation_id, (await self._state(correlation_id)).status.value)
        return outcome.fate is Fate.APPLIED

    async def _state(self, correlation_id: str) -> Orchestration:
        state = await self._engine.state_of(in_tenant(self._tenant, correlation_id))
        if state is None:
            raise UnknownIdError("orchestration", correlation_id)
        return state
