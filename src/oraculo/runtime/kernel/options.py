"""What an engine is made from: its ports, and the settings of the kernel, each in one dataclass.

A new setting of the runtime is a field here, its declaration in the settings, a line in the wiring, and the part that
uses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from oraculo.ports.breakers import BreakerGate
from oraculo.ports.broker import Broker
from oraculo.ports.cache import Cache
from oraculo.ports.clock import Clock
from oraculo.ports.destination_pauses import DestinationGate
from oraculo.ports.message_seal import MessageSeal
from oraculo.ports.notifier import Notifier
from oraculo.ports.store import Store
from oraculo.runtime.effects.children import ChildRuns
from oraculo.runtime.effects.references import OrderReferences
from oraculo.runtime.ids import RunNumbers
from oraculo.runtime.kernel.observers import ObserverFanOut
from oraculo.runtime.policies.asking import Policies
from oraculo.runtime.signatures import SignatureRing
from oraculo.runtime.token_ring import TokenRing
from oraculo.runtime.watchers import RunWatchers
from oraculo.wire.orders import OrderWriter


@dataclass(frozen=True, slots=True)
class KernelOptions:
    name: str = "oraculo"  # of this process, among those that share a store
    lease: timedelta = timedelta(seconds=10)  # after which others take over from a process that fell silent
    max_open: int = 100_000  # orchestrations that may be open at once; more are refused with BusyError
    ceiling: int | None = None  # tickets of Fluxo C that may be with workers at once, over all processes
    retry_rate: float | None = None  # attempts after the first that one queue gets in a second
    tickets_queue: str = ""  # the queue that most tickets of Fluxo C go to


@dataclass(frozen=True, slots=True)
class KernelPorts:
    store: Store
    broker: Broker
    clock: Clock
    notifier: Notifier | None = None
    observers: ObserverFanOut = field(default_factory=ObserverFanOut)
    watchers: RunWatchers = field(default_factory=RunWatchers)
    cache: Cache | None = None
    writer: OrderWriter = field(default_factory=OrderWriter)
    references: OrderReferences | None = None  # None: every order carries its data
    tokens: TokenRing | None = None  # None: orders have no tokens
    order_keys: TokenRing | None = None  # None: orders have no signatures
    seal: MessageSeal | None = None  # None: messages of an engine are in clear
    signatures: SignatureRing | None = None  # None: signatures of messages are not looked at
    gate: DestinationGate | None = None  # None: no destination can be paused
    breakers: BreakerGate | None = None  # None: orders go to destinations that fail as to others
    policies: Policies = field(default_factory=Policies)
    children: ChildRuns = field(default_factory=ChildRuns)
    numbers: RunNumbers = field(default_factory=RunNumbers)
