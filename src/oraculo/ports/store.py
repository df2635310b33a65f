"""Port: the whole store, as the wiring sees it. Each part is a port of its own; ask for the parts that you need."""

from __future__ import annotations

from typing import Protocol, Self

from oraculo.ports.api_keys import ApiKeys
from oraculo.ports.breakers import Breakers
from oraculo.ports.catalogue import Catalogue
from oraculo.ports.cursors import Cursors
from oraculo.ports.data_keys import DataKeys
from oraculo.ports.dead_letters import DeadLetters
from oraculo.ports.destination_pauses import DestinationPauses
from oraculo.ports.ended_runs import EndedRuns
from oraculo.ports.journal import Journal
from oraculo.ports.membership import MemberLeases, SharedView, Takeover
from oraculo.ports.parameter_schemas import ParameterSchemas
from oraculo.ports.projected import ProjectedDocuments
from oraculo.ports.schedules import ScheduleRegistry
from oraculo.ports.singleton_roles import SingletonRoles
from oraculo.ports.sla import SlaRegistry
from oraculo.ports.statistics import Statistics
from oraculo.ports.system_events import SystemEventLog
from oraculo.ports.task_types import TaskTypeRegistry
from oraculo.ports.tenants import TenantRegistry
from oraculo.ports.token_keys import TokenKeys
from oraculo.ports.unique_keys import UniqueKeys
from oraculo.ports.users import LocalUsers
from oraculo.ports.workers import WorkerLeases


class Store(
    Journal,
    Catalogue,
    Statistics,
    DeadLetters,
    TaskTypeRegistry,
    ParameterSchemas,
    ScheduleRegistry,
    ApiKeys,
    TokenKeys,
    DataKeys,
    TenantRegistry,
    LocalUsers,
    SystemEventLog,
    DestinationPauses,
    Breakers,
    EndedRuns,
    Cursors,
    ProjectedDocuments,
    SlaRegistry,
    UniqueKeys,
    Protocol,
):
    """One database that holds all parts, so that one transaction writes to all of them."""

    @property
    def worker_leases(self) -> WorkerLeases:
        """Workers that registered."""
        ...

    @property
    def sharing(self) -> SharedStore | None:
        """The same store with what several processes on it need; None where one process has it to itself."""
        ...

    def seen_by(self, tenant: str) -> Self:
        """The same store for what is read of a tenant and written for it. A database that can hold back rows of other
        tenants does so, whatever is asked for."""
        ...

    async def durability(self) -> str:
        """How much a confirmed transaction survives: "power-safe", "crash-safe" or "best-effort"."""
        ...

    async def close(self) -> None:
        """Finish what is being written and let go of the database; every call after it fails with StoreError."""
        ...


class SharedStore(Store, MemberLeases, Takeover, SharedView, SingletonRoles, Protocol):
    """A store that several processes work on at once."""
