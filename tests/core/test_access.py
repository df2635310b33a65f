"""Roles and scopes: the table, written by hand a second time."""

from __future__ import annotations

import pytest

from oraculo.core.access import (
    BROKER,
    LOCAL,
    SCOPES_OF,
    SHARED_KEY,
    STRANGER,
    USER_ROLES,
    AccessRole,
    Scope,
    actor_of_key,
    actor_of_user,
    is_user_id,
    scopes_of,
)

READ = {"docs:read", "run:read", "dlq:read", "system:read", "installation:read", "metrics:read"}
BY_HAND = {
    "leitor": READ,
    "remetente": READ | {"run:submit", "run:signal"},
    "operador": READ
    | {
        "run:submit",
        "run:cancel",
        "run:signal",
        "plan:approve",
        "type:write",
        "schedule:write",
        "slo:write",
        "queue:pause",
        "installation:pause",
    }
    | {"dlq:requeue", "dlq:discard"},
    "aprovador": {"docs:read", "run:read", "plan:approve"},
    "trabalhador": {"docs:read", "lease:take", "result:write"},
    "auditor": READ | {"audit:read"},
    "admin": {scope.value for scope in Scope},
}


def test_the_table_is_the_one_that_was_agreed() -> None:
    assert {role.value: {scope.value for scope in scopes} for role, scopes in SCOPES_OF.items()} == BY_HAND
    assert set(SCOPES_OF) == set(AccessRole)


@pytest.mark.parametrize("role", [role for role in AccessRole if role is not AccessRole.ADMIN])
def test_only_an_administrator_administers(role: AccessRole) -> None:
    assert not {Scope.KEY_ADMIN, Scope.TENANT_ADMIN} & SCOPES_OF[role]


@pytest.mark.parametrize("role", [AccessRole.LEITOR, AccessRole.AUDITOR])
def test_readers_change_nothing(role: AccessRole) -> None:
    assert all(scope.value.endswith(":read") for scope in SCOPES_OF[role])


def test_roles_add_up() -> None:
    assert scopes_of([]) == frozenset()
    both = scopes_of([AccessRole.APROVADOR, AccessRole.TRABALHADOR])
    assert both == SCOPES_OF[AccessRole.APROVADOR] | SCOPES_OF[AccessRole.TRABALHADOR]


def test_who_may_decide_has_a_role_that_is_asked_for_or_administers() -> None:
    approver = actor_of_key("k", AccessRole.APROVADOR, "default", ())
    assert approver.may_decide(()) and approver.may_decide(("aprovador",)) and not approver.may_decide(("financeiro",))
    admin = actor_of_key("k", AccessRole.ADMIN, "default", ())
    assert admin.may_decide(("financeiro",)) and LOCAL.may_decide(("financeiro",))
    assert not BROKER.may_decide(("aprovador",)) and BROKER.may_decide(())


def test_a_worker_has_its_own_queues_only() -> None:
    worker = actor_of_key("w", AccessRole.TRABALHADOR, "acme", ["a", "espaco_acme.c", "espaco_outro.d"])
    assert worker.may(Scope.LEASE_TAKE) and worker.may_use("espaco_acme.a") and worker.may_use("espaco_acme.c")
    for queue in ("a", "espaco_acme.b", "espaco_outro.a", "espaco_outro.d"):
        assert not worker.may_use(queue)
    assert not worker.may(Scope.RUN_READ) and not worker.sees_all


def test_nobody_uses_queues_of_another_tenant() -> None:
    for actor in (LOCAL, SHARED_KEY, actor_of_key("k", AccessRole.ADMIN, "outro", ())):
        assert not actor.may_use("espaco_acme.a")
    assert actor_of_key("k", AccessRole.ADMIN, "acme", ()).may_use("espaco_acme.a")


@pytest.mark.parametrize("role", list(AccessRole))
def test_what_is_of_the_whole_installation_is_for_the_tenant_default(role: AccessRole) -> None:
    assert scopes_of([role], "acme") == SCOPES_OF[role] - {
        Scope.INSTALLATION_READ,
        Scope.INSTALLATION_PAUSE,
        Scope.METRICS_READ,
        Scope.TENANT_ADMIN,
    }


def test_who_has_no_key_of_its_own() -> None:
    assert LOCAL.scopes == SHARED_KEY.scopes == frozenset(Scope)
    assert LOCAL.sees_all and SHARED_KEY.sees_all and LOCAL.may_use("any")
    assert not STRANGER.scopes and not STRANGER.sees_all


class TestUsers:
    @pytest.mark.parametrize(
        "subject", ["ana", "auth0|5f7c8ec7c33c6c004bbafe82", "ana@example.org", "Ána Ç", "x" * 200]
    )
    def test_what_providers_call_people_is_an_actor(self, subject: str) -> None:
        assert is_user_id(subject) and actor_of_user(subject, []).id == subject

    @pytest.mark.parametrize(
        "subject", ["", " ana", "a\nb", "x" * 201, "local", "api-key", "broker", "link", "k7qmz2c4tb5x", "\u202eana"]
    )
    def test_what_could_be_taken_for_another_actor_is_none(self, subject: str) -> None:
        assert not is_user_id(subject)

    def test_a_user_has_the_scopes_of_all_its_roles_and_of_no_other(self) -> None:
        actor = actor_of_user("ana", [AccessRole.APROVADOR, AccessRole.AUDITOR])
        assert actor.scopes == SCOPES_OF[AccessRole.APROVADOR] | SCOPES_OF[AccessRole.AUDITOR]
        assert (actor.home, actor.tenant, actor.sees_all) == ("default", "default", False)
        assert actor_of_user("ana", []).scopes == frozenset() and AccessRole.TRABALHADOR not in USER_ROLES
