"""Who may do what: roles, the scopes that each of them has, and the decision. Tables and one function, no cryptography.

An `Actor` is a principal as one request or message knows it: who it is, of which tenant, and what it may do. It is made
where credentials are checked, and everything behind that only asks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from oraculo.core.tenants import DEFAULT_TENANT, EVERY_TENANT, queue_in, tenant_of


class Scope(StrEnum):
    """One permission, as `thing:verb`. Repeating an orchestration is a submission."""

    DOCS_READ = "docs:read"  # what is the same for everybody: documents, schemas, preferences
    RUN_READ = "run:read"
    RUN_SUBMIT = "run:submit"
    RUN_CANCEL = "run:cancel"
    RUN_SIGNAL = "run:signal"
    PLAN_APPROVE = "plan:approve"
    TYPE_WRITE = "type:write"
    SCHEDULE_WRITE = "schedule:write"
    SLO_WRITE = "slo:write"
    QUEUE_PAUSE = "queue:pause"
    INSTALLATION_PAUSE = "installation:pause"  # every destination of every tenant
    LEASE_TAKE = "lease:take"
    RESULT_WRITE = "result:write"
    DLQ_READ = "dlq:read"
    DLQ_REQUEUE = "dlq:requeue"
    DLQ_DISCARD = "dlq:discard"
    SYSTEM_READ = "system:read"
    INSTALLATION_READ = "installation:read"  # what is no tenant's alone: brokers, processes
    METRICS_READ = "metrics:read"
    AUDIT_READ = "audit:read"
    KEY_ADMIN = "key:admin"
    TENANT_ADMIN = "tenant:admin"


class AccessRole(StrEnum):
    """What a principal is for. The words are those of the contract with the outside."""

    LEITOR = "leitor"
    REMETENTE = "remetente"
    OPERADOR = "operador"
    APROVADOR = "aprovador"
    TRABALHADOR = "trabalhador"
    AUDITOR = "auditor"
    ADMIN = "admin"


class PrincipalKind(StrEnum):
    LOCAL = "local"  # this machine, where no key is asked for
    KEY = "key"
    USER = "user"  # a person, or a program, whom an identity provider knows
    WORKER = "worker"
    BROKER = "broker"  # a message that came from a queue
    NONE = "none"  # no credential was given, and none was needed


_READ = frozenset({Scope.DOCS_READ, Scope.RUN_READ, Scope.DLQ_READ, Scope.SYSTEM_READ})
_READ |= {Scope.INSTALLATION_READ, Scope.METRICS_READ}
SCOPES_OF: Final[dict[AccessRole, frozenset[Scope]]] = {
    AccessRole.LEITOR: _READ,
    AccessRole.REMETENTE: _READ | {Scope.RUN_SUBMIT, Scope.RUN_SIGNAL},
    AccessRole.OPERADOR: _READ
    | {
        Scope.RUN_SUBMIT,
        Scope.RUN_CANCEL,
        Scope.RUN_SIGNAL,
        Scope.PLAN_APPROVE,
        Scope.TYPE_WRITE,
        Scope.SCHEDULE_WRITE,
        Scope.SLO_WRITE,
        Scope.QUEUE_PAUSE,
        Scope.INSTALLATION_PAUSE,
        Scope.DLQ_REQUEUE,
        Scope.DLQ_DISCARD,
    },
    AccessRole.APROVADOR: frozenset({Scope.DOCS_READ, Scope.RUN_READ, Scope.PLAN_APPROVE}),
    AccessRole.TRABALHADOR: frozenset({Scope.DOCS_READ, Scope.LEASE_TAKE, Scope.RESULT_WRITE}),
    AccessRole.AUDITOR: _READ | {Scope.AUDIT_READ},
    AccessRole.ADMIN: frozenset(Scope),
}


INSTALLATION_SCOPES: Final = frozenset(
    {Scope.INSTALLATION_READ, Scope.INSTALLATION_PAUSE, Scope.METRICS_READ, Scope.TENANT_ADMIN}
)


def scopes_of(roles: Iterable[AccessRole], tenant: str = DEFAULT_TENANT) -> frozenset[Scope]:
    """The scopes that these roles have together in a tenant. What is about the whole installation is for those of
    `default` only."""
    found = frozenset(scope for role in roles for scope in SCOPES_OF[role])
    return found if tenant == DEFAULT_TENANT else found - INSTALLATION_SCOPES


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an actor may ask for: orchestrations that are open at once, and submissions in a second; of tenants also
    dead letters that are kept before nothing more is submitted, bytes of bodies in a second, and streams that are open
    at once. None: as much as it likes."""

    open: int | None = None
    per_second: float | None = None
    dead_letters: int | None = None
    bytes_per_second: float | None = None
    streams: int | None = None


NO_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Actor:
    """A principal at work. `tenant` is the one that its requests are about, `home` the one that its credential belongs
    to, EVERY_TENANT for an administrator of all. `queues` are the only ones it may lease and answer; None: any."""

    id: str
    kind: PrincipalKind
    home: str
    scopes: frozenset[Scope]
    tenant: str = DEFAULT_TENANT
    queues: frozenset[str] | None = None
    limits: Limits = NO_LIMITS
    roles: frozenset[AccessRole] = frozenset()

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def may_use(self, queue: str) -> bool:
        """True if it may take messages from this queue and answer them: one of its tenant, by its name inside."""
        return tenant_of(queue) == self.tenant and (self.queues is None or queue in self.queues)

    def may_decide(self, roles: Iterable[str]) -> bool:
        """True if it has one of these roles, or is an administrator, or no role is asked for."""
        wanted = frozenset(roles)
        return not wanted or not self.roles.isdisjoint({AccessRole.ADMIN, *wanted})

    def administers(self, tenant: str) -> bool:
        """True if keys and limits of this tenant are its to change, where its scopes allow that at all: those of its
        own, and as one of `default`, which runs the installation, those of all."""
        return self.home in (tenant, DEFAULT_TENANT, EVERY_TENANT)

    @property
    def sees_all(self) -> bool:
        """True if what belongs to no tenant alone may be shown to it: processes, brokers, metrics."""
        return self.home == EVERY_TENANT


def actor_of_key(id: str, role: AccessRole, tenant: str, queues: Iterable[str], limits: Limits = NO_LIMITS) -> Actor:
    """The actor that has a stored key. Only a worker is bound to queues."""
    scopes, roles = scopes_of([role], tenant), frozenset({role})
    if role is AccessRole.TRABALHADOR:
        named = frozenset(found for queue in queues if (found := queue_in(tenant, queue)) is not None)
        return Actor(id, PrincipalKind.WORKER, tenant, scopes, tenant, named, limits, roles=roles)
    return Actor(id, PrincipalKind.KEY, tenant, scopes, tenant, limits=limits, roles=roles)


USER_ROLES: Final = tuple(role for role in AccessRole if role is not AccessRole.TRABALHADOR)  # that one names queues
_USER_ID_MAX_CHARS: Final = 200
_RESERVED_IDS: Final = frozenset({"local", "api-key", "broker", "link"})
_KEY_ID: Final = re.compile(r"k[a-z2-7]{11}")
_LOCAL_USER: Final = "local:"  # begins the id of an actor who logged in with a password
_NOT_OF_USERS: Final = (_LOCAL_USER, "spiffe://")


def is_key_id(text: str) -> bool:
    """True if this is the form of a stored key's id; no other actor has such an id."""
    return _KEY_ID.fullmatch(text) is not None


def is_user_id(subject: str) -> bool:
    """True if the subject of a token can stand as an actor: it cannot be taken for another kind of actor."""
    fits = 0 < len(subject) <= _USER_ID_MAX_CHARS and subject.isprintable() and subject == subject.strip()
    return fits and subject not in _RESERVED_IDS and not is_key_id(subject) and not subject.startswith(_NOT_OF_USERS)


def actor_of_user(subject: str, roles: Iterable[AccessRole], tenant: str = DEFAULT_TENANT) -> Actor:
    """The actor that an identity provider knows as `subject`. One without a role may do nothing."""
    given = frozenset(roles)
    return Actor(subject, PrincipalKind.USER, tenant, scopes_of(given, tenant), tenant, roles=given)


def actor_of_local_user(name: str, roles: Iterable[AccessRole], tenant: str = DEFAULT_TENANT) -> Actor:
    """The actor that logged in with the password of this user."""
    given = frozenset(roles)
    return Actor(_LOCAL_USER + name, PrincipalKind.USER, tenant, scopes_of(given, tenant), tenant, roles=given)


_ADMIN = frozenset({AccessRole.ADMIN})
LOCAL = Actor("local", PrincipalKind.LOCAL, EVERY_TENANT, frozenset(Scope), roles=_ADMIN)
SHARED_KEY = Actor("api-key", PrincipalKind.KEY, EVERY_TENANT, frozenset(Scope), roles=_ADMIN)  # of ORACULO_API_KEY
BROKER = Actor(  # a message of a queue: who sent it is the broker's affair
    "broker", PrincipalKind.BROKER, EVERY_TENANT, frozenset({Scope.RUN_SUBMIT, Scope.RESULT_WRITE, Scope.PLAN_APPROVE})
)
STRANGER = Actor("", PrincipalKind.NONE, "", frozenset(), "")  # without a credential, at routes that ask for none
