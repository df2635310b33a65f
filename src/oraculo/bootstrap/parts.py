"""All that a running orchestrator is made of."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.bootstrap.foresight import Foresight
from oraculo.ports.engine import Engine
from oraculo.runtime.answers import AnswerReader
from oraculo.runtime.api_keys import KeyRing
from oraculo.runtime.consumers import QueueConsumers
from oraculo.runtime.destination_pauses import DestinationBook
from oraculo.runtime.flow.plans import PlanIntake
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.leases import HttpLeases
from oraculo.runtime.local_users import UserDirectory
from oraculo.runtime.probes import Prober
from oraculo.runtime.project import Projections
from oraculo.runtime.requests import RequestIntake
from oraculo.runtime.reserved import ReservedQueues
from oraculo.runtime.schedules.book import ScheduleBook
from oraculo.runtime.schedules.firing import ScheduleFiring
from oraculo.runtime.signatures import MessageGuards
from oraculo.runtime.tenants import TenantBook
from oraculo.runtime.workers import WorkerBook


@dataclass(slots=True)
class Parts:
    """All that a running orchestrator is made of."""

    ports: KernelPorts
    options: KernelOptions
    engine: Engine
    requests: RequestIntake
    plans: PlanIntake | None  # None: Fluxo C is off
    reserved: ReservedQueues
    leases: HttpLeases
    consumers: QueueConsumers
    prober: Prober | None  # None: the broker is inside the process
    projections: Projections
    keys: KeyRing
    users: UserDirectory | None  # None: passwords are not taken
    answers: AnswerReader
    guards: MessageGuards
    schedules: ScheduleBook
    destinations: DestinationBook
    firing: ScheduleFiring
    tenants: TenantBook
    foresight: Foresight
    workers: WorkerBook
