"""Users of an identity provider as sessions in the store name them: where the id of a key stands, and unlike one."""

from __future__ import annotations

from oraculo.core.access import AccessRole, Actor, actor_of_user, is_user_id
from oraculo.core.tenants import DEFAULT_TENANT, is_tenant
from oraculo.errors import WireError
from oraculo.wire import strict_json

_PREFIX = "user:"


def text_of_user(actor: Actor) -> str:
    """Who a session belongs to: subject, roles and tenant, as they were when it began."""
    return _PREFIX + strict_json.dumps({"sub": actor.id, "roles": sorted(actor.roles), "tenant": actor.tenant}).decode()


def user_of_text(text: str) -> Actor | None:
    """The user that a session belongs to; None when it belongs to a key, or cannot be read."""
    if not text.startswith(_PREFIX):
        return None
    try:
        found = strict_json.loads(text.removeprefix(_PREFIX).encode())
        subject, roles = found["sub"], [AccessRole(role) for role in found["roles"]]
        tenant = found.get("tenant", DEFAULT_TENANT)
    except (WireError, KeyError, TypeError, ValueError):
        return None
    good = isinstance(subject, str) and is_user_id(subject) and isinstance(tenant, str) and is_tenant(tenant)
    return actor_of_user(subject, roles, tenant) if good else None
