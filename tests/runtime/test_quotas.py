"""Limits of a key: what is over them is refused, and says so; what is not stored in the end does not count."""

from __future__ import annotations

from datetime import timedelta

import pytest

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL, AccessRole, Actor, Limits, PrincipalKind, actor_of_key
from oraculo.errors import QuotaError
from oraculo.runtime.quotas import Quotas
from runtime.doubles import ManualClock


class OpenRuns(SqliteStore):
    """A store in which a key has `open` orchestrations."""

    open_runs = 0

    async def open_runs_of(self, key_id: str) -> int:
        return self.open_runs


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> OpenRuns:
    return OpenRuns(":memory:", threads=False)


@pytest.fixture
def quotas(store: OpenRuns, clock: ManualClock) -> Quotas:
    return Quotas(store, clock.now)


def limited(open: int | None = None, per_second: float | None = None) -> Actor:
    return Actor("kaaaaaaaaaaa", PrincipalKind.KEY, "default", frozenset(), limits=Limits(open, per_second))


async def allowed(quotas: Quotas, actor: Actor, count: int = 1) -> bool:
    try:
        await quotas.check(actor, count)
    except QuotaError:
        return False
    return True


async def test_who_has_no_limits_may_do_anything(quotas: Quotas, store: OpenRuns) -> None:
    store.open_runs = 10**9
    for _ in range(1000):
        await quotas.check(LOCAL, 1000)


async def test_open_orchestrations(quotas: Quotas, store: OpenRuns) -> None:
    actor = limited(open=3)
    store.open_runs = 2
    assert await allowed(quotas, actor) and not await allowed(quotas, actor, 2)
    with quotas.under_way(actor):
        assert not await allowed(quotas, actor)
    assert await allowed(quotas, actor)
    store.open_runs = 3
    with pytest.raises(QuotaError, match="may have 3 orchestrations open, 3 are") as refused:
        await quotas.check(actor)
    assert (refused.value.limit, refused.value.wait_s) == ("open", None)


async def test_what_is_under_way_counts_until_it_is_stored_or_fails(quotas: Quotas, store: OpenRuns) -> None:
    actor = limited(open=2)
    with quotas.under_way(actor), pytest.raises(ZeroDivisionError), quotas.under_way(actor):
        assert not await allowed(quotas, actor)
        raise ZeroDivisionError
    assert await allowed(quotas, actor, 2)


async def test_submissions_in_a_second(quotas: Quotas, clock: ManualClock) -> None:
    actor = limited(per_second=5)
    assert [await allowed(quotas, actor) for _ in range(7)] == [True] * 5 + [False] * 2
    clock.forward(0.2)
    assert [await allowed(quotas, actor) for _ in range(2)] == [True, False]
    clock.forward(100)
    assert [await allowed(quotas, actor) for _ in range(6)] == [True] * 5 + [False]


async def test_less_than_one_in_a_second(quotas: Quotas, clock: ManualClock) -> None:
    actor = limited(per_second=0.1)
    assert await allowed(quotas, actor)
    with pytest.raises(QuotaError, match=r"may submit 0\.1 orchestrations a second") as refused:
        await quotas.check(actor)
    assert refused.value.limit == "per_second" and refused.value.wait_s == pytest.approx(10)
    clock.forward(10)
    assert await allowed(quotas, actor)


async def test_many_at_once_are_paid_back(quotas: Quotas, clock: ManualClock) -> None:
    """A list that is longer than a second's worth could never be submitted otherwise."""
    actor = limited(per_second=10)
    assert await allowed(quotas, actor, 50)
    clock.forward(4)
    assert not await allowed(quotas, actor)
    clock.forward(1.1)
    assert await allowed(quotas, actor)


async def test_a_clock_that_stands_still_gives_nothing_away(quotas: Quotas, clock: ManualClock) -> None:
    actor = limited(per_second=1)
    assert await allowed(quotas, actor)
    clock.follow(clock.now() - timedelta(hours=1))
    assert not await allowed(quotas, actor)


class Tenants:
    """Tenants with limits, that need not be registered."""

    def __init__(self, **limits: Limits) -> None:
        self.limits = limits
        self.ensured: list[str] = []

    def limits_of(self, tenant: str) -> Limits:
        return self.limits.get(tenant, Limits())

    async def ensure(self, tenant: str) -> None:
        self.ensured.append(tenant)


async def test_limits_of_a_tenant_are_for_all_its_keys_together(store: OpenRuns, clock: ManualClock) -> None:
    tenants = Tenants(acme=Limits(open=3, per_second=2))
    quotas = Quotas(store, clock.now, tenants)
    one, other = (actor_of_key(id, AccessRole.OPERADOR, "acme", ()) for id in ("kaaaaaaaaaaa", "kbbbbbbbbbbb"))
    async with store:
        await quotas.check(one)
        await quotas.check(other)
        with pytest.raises(QuotaError, match="the tenant acme may submit 2 orchestrations a second") as told:
            await quotas.check(one)
        assert told.value.limit == "per_second"
        clock.forward(2)
        with quotas.under_way(one, 2), quotas.under_way(other):
            with pytest.raises(QuotaError, match="the tenant acme may have 3 orchestrations open, 3 are"):
                await quotas.check(other)
            await quotas.check(LOCAL, 100)
        await quotas.check(other)
    assert set(tenants.ensured) == {"acme"}
