"""Keys: only their holder can use them, only as long as they are good, and a store never knows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import LOCAL, SCOPES_OF, AccessRole, Actor, PrincipalKind
from oraculo.errors import StoreUnavailableError, UnknownIdError, WireError
from oraculo.ports.api_keys import ApiKey
from oraculo.runtime.api_keys import CACHE_LIFE, KeyRing, is_key, is_session
from runtime.doubles import ManualClock

DAY_S = 86_400.0


class CountingStore(SqliteStore):
    """A real store that counts look-ups, and is away while `away`."""

    def __init__(self, path: str) -> None:
        super().__init__(path, threads=False)
        self.look_ups = 0
        self.away = False

    async def api_key(self, id: str) -> ApiKey | None:
        self.look_ups += 1
        if self.away:
            raise StoreUnavailableError("away")
        return await super().api_key(id)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    async with CountingStore(str(tmp_path / "keys.db")) as store:
        yield store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keys(store: CountingStore, clock: ManualClock) -> KeyRing:
    return KeyRing(store, clock)


async def made(keys: KeyRing, role: AccessRole = AccessRole.OPERADOR, life_s: float | None = None) -> tuple[str, str]:
    life = None if life_s is None else timedelta(seconds=life_s)
    queues = ("a",) if role is AccessRole.TRABALHADOR else ()
    key, text = await keys.create(role, by=LOCAL, queues=queues, life=life)
    return key.id, text


@pytest.mark.parametrize("role", list(AccessRole))
async def test_a_key_is_its_role(keys: KeyRing, role: AccessRole) -> None:
    id, text = await made(keys, role)
    assert is_key(text) and not is_session(text)
    bound = role is AccessRole.TRABALHADOR
    kind = PrincipalKind.WORKER if bound else PrincipalKind.KEY
    queues = frozenset({"a"}) if bound else None
    roles = frozenset({role})
    assert await keys.actor_of(text) == Actor(id, kind, "default", SCOPES_OF[role], "default", queues, roles=roles)


async def test_what_is_not_exactly_the_key_is_nobody(keys: KeyRing) -> None:
    id, text = await made(keys)
    _, other = await made(keys)
    secret = text[len(f"orc_{id}_") :]
    wrong = [
        *("", "orc_", text[:-1], text + "A", " " + text, text.upper(), f"orc_{id}_{'A' * 43}", other[:17] + secret),
        f"orc_kaaaaaaaaaaa_{secret}",
        text[:-1] + ("A" if text[-1] != "A" else "B"),
    ]
    for given in wrong:
        assert await keys.actor_of(given) is None, given
    assert await keys.actor_of(text) is not None


async def test_the_store_never_has_the_key(keys: KeyRing, store: CountingStore) -> None:
    id, text = await made(keys)
    cookie = await keys.begin_session(text)
    assert cookie is not None
    _, rotated = await keys.rotate(id, by=LOCAL)
    await store.close()
    content = b"".join(path.read_bytes() for path in Path(store.path).parent.iterdir())
    assert id.encode() in content
    for secret in (text, cookie, rotated):
        assert secret[-43:].encode() not in content


async def test_a_key_expires(keys: KeyRing, clock: ManualClock) -> None:
    id, text = await made(keys, life_s=DAY_S)
    clock.forward(DAY_S - 1)
    assert await keys.actor_of(text) is not None
    clock.forward(1)
    assert await keys.actor_of(text) is None
    with pytest.raises(WireError, match="has expired"):
        await keys.rotate(id, by=LOCAL)
    _, again = await keys.rotate(id, by=LOCAL, life=timedelta(days=1))
    assert await keys.actor_of(again) is not None


async def test_a_rotation_overlaps(keys: KeyRing, clock: ManualClock) -> None:
    id, old = await made(keys)
    before, new = await keys.rotate(id, by=LOCAL, overlap=timedelta(hours=1))
    assert before.id == id and new != old
    assert await keys.actor_of(old) == await keys.actor_of(new) is not None
    clock.forward(3599)
    assert await keys.actor_of(old) is not None
    clock.forward(1)
    assert await keys.actor_of(old) is None and await keys.actor_of(new) is not None


async def test_a_second_rotation_ends_the_first_secret(keys: KeyRing) -> None:
    id, first = await made(keys)
    _, second = await keys.rotate(id, by=LOCAL)
    _, third = await keys.rotate(id, by=LOCAL, overlap=timedelta())
    assert await keys.actor_of(first) is None and await keys.actor_of(second) is None
    assert await keys.actor_of(third) is not None


async def test_a_revoked_key_is_nobody_at_once_here_and_soon_elsewhere(
    keys: KeyRing, store: CountingStore, clock: ManualClock
) -> None:
    elsewhere = KeyRing(store, clock)
    id, text = await made(keys)
    assert await keys.actor_of(text) and await elsewhere.actor_of(text)
    await keys.revoke(id, by=LOCAL)
    assert await keys.actor_of(text) is None
    clock.forward(CACHE_LIFE.total_seconds())
    assert await elsewhere.actor_of(text) is None
    again = await keys.revoke(id, by=LOCAL)
    assert again.revoked_at is not None
    for work in (keys.rotate(id, by=LOCAL), keys.revoke("kzzzzzzzzzzz", by=LOCAL)):
        with pytest.raises(UnknownIdError):
            await work


async def test_a_look_up_is_remembered_for_a_while(keys: KeyRing, store: CountingStore, clock: ManualClock) -> None:
    _, text = await made(keys)
    for _ in range(10):
        assert await keys.actor_of(text)
        assert await keys.actor_of("orc_kaaaaaaaaaaa_" + "A" * 43) is None
    assert store.look_ups == 2
    clock.forward(CACHE_LIFE.total_seconds())
    assert await keys.actor_of(text)
    assert store.look_ups == 3


async def test_what_was_known_stays_good_while_the_store_is_away(
    keys: KeyRing, store: CountingStore, clock: ManualClock
) -> None:
    _, text = await made(keys, life_s=DAY_S)
    assert await keys.actor_of(text)
    store.away = True
    clock.forward(60)
    assert await keys.actor_of(text)
    with pytest.raises(StoreUnavailableError):
        await keys.actor_of("orc_kaaaaaaaaaaa_" + "A" * 43)
    clock.forward(DAY_S)
    assert await keys.actor_of(text) is None  # away or not, it has expired


async def test_the_last_use_is_recorded_now_and_then(keys: KeyRing, store: CountingStore, clock: ManualClock) -> None:
    id, text = await made(keys)
    used = []
    for _ in range(4):
        await keys.actor_of(text)
        key = await store.api_key(id)
        assert key is not None and key.used_at is not None
        used.append((clock.now() - key.used_at).total_seconds())
        clock.forward(20)
    assert used == [0, 20, 40, 0]


class TestSessions:
    async def test_a_session_is_its_key(self, keys: KeyRing, clock: ManualClock) -> None:
        _, text = await made(keys)
        cookie = await keys.begin_session(text)
        assert cookie is not None and is_session(cookie) and not is_key(cookie)
        assert await keys.actor_of_session(cookie) == await keys.actor_of(text)
        assert await keys.actor_of(cookie) is None and await keys.actor_of_session(text) is None
        assert await keys.actor_of_session(cookie[:-1] + ("A" if cookie[-1] != "A" else "B")) is None
        clock.forward(12 * 3600 - 1)
        assert await keys.actor_of_session(cookie)
        clock.forward(1)
        assert await keys.actor_of_session(cookie) is None

    async def test_a_session_ends_by_hand(self, keys: KeyRing) -> None:
        _, text = await made(keys)
        one, other = await keys.begin_session(text), await keys.begin_session(text)
        assert one is not None and other is not None
        await keys.end_session(one[:-1] + ("A" if one[-1] != "A" else "B"))  # not its holder
        assert await keys.actor_of_session(one)
        await keys.end_session(one)
        assert await keys.actor_of_session(one) is None and await keys.actor_of_session(other)
        await keys.end_session("what")

    async def test_a_session_ends_with_its_key(self, keys: KeyRing, clock: ManualClock) -> None:
        id, text = await made(keys, life_s=3600)
        cookie = await keys.begin_session(text)
        assert cookie is not None and await keys.actor_of_session(cookie)
        clock.forward(3600)
        assert await keys.actor_of_session(cookie) is None
        assert await keys.begin_session(text) is None
        id, text = await made(keys)
        cookie = await keys.begin_session(text)
        assert cookie is not None and await keys.actor_of_session(cookie)
        await keys.revoke(id, by=LOCAL)
        assert await keys.actor_of_session(cookie) is None


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"role": AccessRole.TRABALHADOR}, "queues: a key with the role trabalhador names the queues"),
        ({"role": AccessRole.OPERADOR, "queues": ["a"]}, "queues: only keys with the role trabalhador"),
        ({"role": AccessRole.TRABALHADOR, "queues": ["a b"]}, "queues: 'a b' does not match"),
        ({"role": AccessRole.TRABALHADOR, "queues": [f"q{n}" for n in range(101)]}, "queues: at most 100"),
        ({"role": AccessRole.LEITOR, "tenant": "Acme"}, "tenant: 'Acme' does not match ^[a-z0-9][a-z0-9_-]{0,31}$"),
        ({"role": AccessRole.LEITOR, "life": timedelta(seconds=59)}, "expires_s: from 60 seconds to 3660 days"),
        ({"role": AccessRole.LEITOR, "life": timedelta(days=3661)}, "expires_s: from 60 seconds to 3660 days"),
        ({"role": AccessRole.LEITOR, "note": "x" * 201}, "nota: at most 200 printable"),
        ({"role": AccessRole.LEITOR, "note": "a\x1b"}, "nota: at most 200 printable"),
    ],
)
async def test_what_cannot_be_is_refused(keys: KeyRing, wanted: dict[str, object], says: str) -> None:
    with pytest.raises(WireError) as refused:
        await keys.create(by=LOCAL, **wanted)
    assert says in str(refused.value)
    assert await keys.all() == []


async def test_who_made_and_revoked_what_is_recorded(keys: KeyRing, store: CountingStore) -> None:
    id, text = await made(keys, AccessRole.ADMIN)
    admin = await keys.actor_of(text)
    assert admin is not None
    other, _ = await keys.create(AccessRole.LEITOR, by=admin, note="painel")
    await keys.rotate(other.id, by=admin)
    await keys.revoke(other.id, by=admin)
    await keys.revoke(other.id, by=admin)
    told = [(one.kind, one.body["chave"], one.body["ator"]) for one in await store.system_events()]
    assert told == [
        *((kind, other.id, id) for kind in ("key_revoked", "key_rotated", "key_created")),
        ("key_created", id, "local"),
    ]
    assert other.created_by == id


async def test_there_is_an_administrator_or_not(keys: KeyRing, clock: ManualClock) -> None:
    assert not await keys.has_administrator()
    await made(keys, AccessRole.OPERADOR)
    assert not await keys.has_administrator()
    id, _ = await made(keys, AccessRole.ADMIN)
    assert await keys.has_administrator()
    await keys.revoke(id, by=LOCAL)
    assert not await keys.has_administrator()
    await made(keys, AccessRole.ADMIN, life_s=60)
    clock.forward(60)
    assert not await keys.has_administrator()
