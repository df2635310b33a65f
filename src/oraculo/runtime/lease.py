"""One lease: a message that the orchestrator holds for a worker over HTTP, or that it offered to one of a broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from oraculo.core.tenants import in_tenant, tenant_of
from oraculo.ports.broker import Delivery


@dataclass(slots=True)
class Lease:
    lease_id: str
    delivery: Delivery
    ticket: tuple[str, int] | None  # ticket_id, attempt
    worker: str
    expires_at: datetime
    length: timedelta
    is_kept: bool = False  # its worker asked for more time
    is_offered: bool = False  # it is with a worker of a broker (docs/adr/0123)
    is_settled: bool = False  # its message is done with: the worker that it was offered to has it

    @property
    def taken_at(self) -> datetime:
        """When it was taken, or kept last."""
        return self.expires_at - self.length

    @property
    def worker_key(self) -> str:
        return in_tenant(tenant_of(self.delivery.queue), self.worker)

    def work_ms(self, now: datetime) -> int | None:
        """How long the worker has had the order; None for one that was kept: it is known since then only."""
        return None if self.is_kept else max(0, (now - self.taken_at) // timedelta(milliseconds=1))
