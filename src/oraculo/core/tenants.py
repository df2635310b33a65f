"""Tenants (*espaços*): how what belongs to one is named, so that nothing of one is taken for another's.

Orchestrations, queues, schedules, task types and idempotency keys of the tenant `acme` are called `espaco_acme.<name>`
inside; what is derived from such a name (a child, a retry, the run of an instant) is of the same tenant. The names of
`default` are what they are: without tenants nothing is called differently. Outside, a tenant sees its own names only.
"""

from __future__ import annotations

import re
from typing import Final

DEFAULT_TENANT: Final = "default"
EVERY_TENANT: Final = "*"
TENANT_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,31}$"

_PREFIX: Final = "espaco_"
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_OF_TENANT: Final = re.compile(r"espaco_([a-z0-9][a-z0-9_-]{0,31})\.(.*)", re.DOTALL)


def is_tenant(text: str) -> bool:
    """True if a tenant may be called that."""
    return _TENANT.fullmatch(text) is not None


def in_tenant(tenant: str, name: str) -> str:
    """The name inside of what a tenant calls `name`. No two pairs have the same one."""
    if tenant == DEFAULT_TENANT and not (name.startswith(_PREFIX) and _OF_TENANT.fullmatch(name)):
        return name
    return f"{_PREFIX}{tenant}.{name}"


def tenant_of(name: str) -> str:
    """The tenant that a name inside belongs to."""
    found = _OF_TENANT.fullmatch(name) if name.startswith(_PREFIX) else None
    return DEFAULT_TENANT if found is None else found[1]


def local_name(name: str) -> str:
    """What its tenant calls it."""
    found = _OF_TENANT.fullmatch(name) if name.startswith(_PREFIX) else None
    return name if found is None else found[2]


def queue_in(tenant: str, queue: str) -> str | None:
    """The queue that a tenant means by this name: its own, whether or not the name says so; None for a queue of
    another tenant."""
    owner = tenant_of(queue)
    if owner == tenant:
        return queue
    return in_tenant(tenant, queue) if owner == DEFAULT_TENANT else None
