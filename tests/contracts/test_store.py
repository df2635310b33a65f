"""What every store must do: one append is all or nothing, and what was written is read back as it was."""

from __future__ import annotations

import asyncio
import copy
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.conftest import StoreCase
from contracts.writing import batch, begin, finished, write
from core.given import Story, at, coleta, execucao, flow, plan, seconds
from core.test_named_tasks import plan_of as tasks_of
from oraculo.core.access import AccessRole, Limits
from oraculo.core.breaking import DestinationBreaker
from oraculo.core.state import Orchestration, fold
from oraculo.core.vocabulary import FanIn, Status
from oraculo.errors import StoreError
from oraculo.ports.api_keys import ApiKey, KeySession
from oraculo.ports.catalogue import Query, Summary
from oraculo.ports.cursors import Lag
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Key, LockRequest, Recorded
from oraculo.ports.projected import ProjectedChange, ProjectedMark
from oraculo.ports.schedules import StoredSchedule
from oraculo.ports.sla import StoredSlo, ToldAlert
from oraculo.ports.statistics import Bucket, FailingQueue
from oraculo.ports.store import Store
from oraculo.ports.system_events import SystemEvent
from oraculo.ports.tenants import StoredTenant
from oraculo.ports.token_keys import StoredTokenKey
from oraculo.ports.unique_keys import KeyHolder, MergedRequest
from oraculo.ports.users import LocalUser
from oraculo.ports.workers import WorkerBeat
from waiting import until
from wire.test_mensagem import IDS


def letter(body: bytes = b"x", queue: str = "q", reason: str = "not_json", **more: object) -> DeadLetter:
    return DeadLetter(queue, reason, "detalhe", body, **more)


async def state_in(store: Store, run: int) -> Orchestration:
    return fold((one.at, one.events) for one in (await store.load([run]))[run])


async def used_keys(store: Store, wanted: list[str]) -> dict[str, Key]:
    found = await store.begin(LockRequest(keys=wanted))
    await store.abandon()
    return found.keys


async def held(store: Store, keys: list[str]) -> dict[str, KeyHolder]:
    found = await store.begin(LockRequest(unique=keys))
    await store.abandon()
    return found.holders


async def everything(store: Store) -> list[Recorded]:
    return await store.tail(0, 1_000_000)


async def refused(store: Store, bad: Batch) -> None:
    """The append fails, and the whole store is as it was."""
    before = (
        await everything(store), await store.find(Query(limit=1000)), await store.counts(),
        await store.dead_letters(limit=1000), await store.live(),
    )  # fmt: skip
    with pytest.raises(StoreError):
        await store.append(bad)
    after = (
        await everything(store), await store.find(Query(limit=1000)), await store.counts(),
        await store.dead_letters(limit=1000), await store.live(),
    )  # fmt: skip
    assert after == before


class TestAppendAndLoad:
    async def test_an_empty_store(self, store: Store) -> None:
        assert await everything(store) == []
        assert await store.find(Query()) == [] and await store.live() == []
        assert await store.load([1]) == {} and await store.locate(["x"]) == {}
        assert (await store.summary("x"), await store.result(1), await store.last_instant()) == (None, None, None)
        assert (await store.counts(), await store.count_by_status(), await store.task_types()) == ({}, {}, {})
        assert (await store.dead_letters(), await store.dead_letter(1), await store.dead_letter_groups()) == (
            [],
            None,
            [],
        )
        assert await used_keys(store, ["k"]) == {}

    async def test_what_is_loaded_folds_into_the_state_that_was_written(self, store: Store) -> None:
        story = begin(
            wanted=plan([coleta("youtube", attempts=2, parametros='{"é":[1,2.5,null]}'.encode())], 1, fila="avisos")
        )
        await write(store, story.started)
        for happening in (
            lambda: story.confirm(when=1),
            lambda: story.fail(0, when=2),
            lambda: story.wake(5),
            lambda: story.ok(0, '{"título":"vídeo"}'.encode(), when=6),
            lambda: story.ok(1, when=7),
            lambda: story.told(0, 1, delivered=True, when=8),
        ):
            await write(store, happening(), when=story.now)
            assert await state_in(store, story.run) == story.state

    async def test_instants_are_kept_to_the_microsecond(self, store: Store) -> None:
        story = begin(when=0.123457)
        await write(store, story.started)
        (recorded,) = (await store.load([story.run]))[story.run]
        assert recorded.at == at(0.123457) and recorded.at.utcoffset() == timedelta(0)

    async def test_many_steps_of_many_orchestrations_in_one_append(self, store: Store) -> None:
        stories = [begin(wanted=plan(2, 1)) for _ in range(20)]
        steps = [story.started for story in stories]
        for story in stories:
            steps += [story.ok(0), story.ok(1), story.ok(2)]
        await write(store, *steps)
        loaded = await store.load([story.run for story in stories])
        for story in stories:
            assert [(r.at, r.events) for r in loaded[story.run]] == story.journal
            assert fold((r.at, r.events) for r in loaded[story.run]) == story.state

    async def test_events_are_numbered_without_gaps(self, store: Store) -> None:
        story = begin(wanted=plan(3, 1))
        await write(store, story.started, story.confirm(), story.ok(0))
        await write(store, story.ok(1), story.ok(2))
        number = 1
        for recorded in (await store.load([story.run]))[story.run]:
            assert recorded.first == number
            number += len(recorded.events)
        assert number == story.state.version + 1

    async def test_only_what_is_asked_for_is_loaded(self, store: Store) -> None:
        one, two = await finished(store), await finished(store)
        assert set(await store.load([one.run, 12345])) == {one.run}
        assert set(await store.load([one.run, two.run])) == {one.run, two.run}
        assert await store.load([]) == {}

    async def test_any_correlation_id_is_found_again(self, store: Store) -> None:
        stories = {name: begin(name) for name in IDS}
        await write(store, *(story.started for story in stories.values()))
        assert await store.locate([*IDS, "nobody"]) == {name: story.run for name, story in stories.items()}
        for name in IDS:
            found = await store.summary(name)
            assert found is not None and found.correlation_id == name

    async def test_a_wide_orchestration(self, store: Store) -> None:
        story = begin(wanted=plan(3000, 1))
        await write(store, story.started)
        assert len((await state_in(store, story.run)).tickets) == 3001

    async def test_the_newest_instant(self, store: Store) -> None:
        await finished(store, when=5)
        await finished(store, when=9)
        assert await store.last_instant() == at(9)


class TestAllOrNothing:
    async def test_the_same_correlation_id_again(self, store: Store) -> None:
        await finished(store, "taken")
        good, bad = begin(), begin("taken")
        await refused(store, batch(good.started, bad.started, dead=[letter()], counts={("q", "applied"): 3}))

    async def test_the_same_correlation_id_twice_in_one_batch(self, store: Store) -> None:
        await refused(store, batch(begin("twice").started, begin("twice").started))

    async def test_the_same_run_again(self, store: Store) -> None:
        first = await finished(store)
        again = Story(plan(1), run=first.run, correlation_id="another", check=False)
        await refused(store, batch(again.started))

    async def test_the_same_idempotency_key_again(self, store: Store) -> None:
        one, two = begin(), begin()
        await store.append(batch(one.started, keys=[Key("k", "f", one.run)]))
        await refused(store, batch(two.started, keys=[Key("other", "f", two.run), Key("k", "f", two.run)]))
        assert await used_keys(store, ["k", "other"]) == {"k": Key("k", "f", one.run)}

    async def test_a_step_decided_on_an_old_version(self, store: Store) -> None:
        story = begin(wanted=plan(2))
        await write(store, story.started)
        loser = copy.deepcopy(story)
        await write(store, story.ok(0))
        await refused(store, batch(loser.fail(0), dead=[letter()], counts={("q", "applied"): 1}))
        assert await state_in(store, story.run) == story.state

    async def test_a_step_decided_on_a_version_that_is_not_there_yet(self, store: Store) -> None:
        story = begin(wanted=plan(2))
        await write(store, story.started)
        story.ok(0)
        await refused(store, batch(story.ok(1)))

    async def test_one_loser_takes_its_whole_batch_with_it(self, store: Store) -> None:
        loser, other = begin(wanted=plan(2)), begin(wanted=plan(2))
        await write(store, loser.started, other.started)
        twin = copy.deepcopy(loser)
        await write(store, loser.ok(0))
        await refused(store, batch(other.ok(0), twin.ok(1)))

    async def test_a_step_of_an_orchestration_that_does_not_exist(self, store: Store) -> None:
        await refused(store, batch(begin().ok(0)))

    async def test_after_a_refusal_everything_works(self, store: Store) -> None:
        await finished(store, "taken")
        await refused(store, batch(begin("taken").started))
        await finished(store, "free")
        assert await store.summary("free")

    async def test_an_empty_batch_is_nothing(self, store: Store) -> None:
        assert not Batch(at(0))
        await store.append(Batch(at(0)))
        assert await everything(store) == []


class TestCatalogue:
    async def test_a_summary(self, store: Store) -> None:
        story = begin("resumo", plan(3, 1), when=2)
        await write(store, story.started)
        assert await store.summary("resumo") == Summary(
            story.run, "resumo", Status.PENDENTE, None, at(2), None, 4, 4, 0, "f", 2, at(602)
        )
        later = begin("outro", plan(3, 1), when=2)
        await write(store, later.started, later.fail(0), later.ok(1), later.ok(2), later.ok(3, when=5), when=5)
        shown = await store.summary("outro")
        assert shown is not None
        assert (shown.status, shown.closed_at, shown.total, shown.open, shown.failed) == (
            Status.PARCIAL,
            at(5),
            4,
            0,
            1,
        )
        assert shown.version == later.state.version

    async def test_a_plan_that_grows_is_counted_whole(self, store: Store) -> None:
        story = begin("cresce", flow({"a": [], "b": ["a"]}))
        await write(store, story.started, story.ok(0), story.fail(1, definitivo=True))
        shown = await store.summary("cresce")
        assert shown is not None and (shown.total, shown.open) == (4, 2)  # two more, which undo those
        await write(store, story.ok(2), story.ok(3))
        shown = await store.summary("cresce")
        assert shown is not None and (shown.status, shown.total, shown.open) == (Status.PARCIAL, 4, 0)

    async def test_live_is_what_is_not_finished_with_the_world(self, store: Store) -> None:
        done = await finished(store)
        waiting = begin(wanted=plan([coleta(timeout=30)]))
        await write(store, waiting.started, waiting.confirm(when=1))
        owing = begin(wanted=plan(1))
        await write(store, owing.started)
        told = begin(wanted=plan(1, fila="avisos"))
        await write(store, told.started, told.ok(0))
        retrying = begin(wanted=plan(1, webhook="https://example.com"))
        await write(store, retrying.started, retrying.ok(0), retrying.told(0, 1))
        live = {one.run: one for one in await store.live()}
        assert done.run not in live
        assert [live[s.run].owes for s in (waiting, owing, told, retrying)] == [0, 1, 1, 0]
        assert [live[s.run].open for s in (waiting, owing, told, retrying)] == [True, True, False, False]
        assert live[waiting.run].wake_at == at(31) and live[owing.run].wake_at == at(600)
        assert live[told.run].wake_at is None and live[retrying.run].wake_at == retrying.state.wake_at()
        assert live[owing.run].correlation_id == owing.state.correlation_id
        await write(store, told.told(0, 1, delivered=True))
        assert told.run not in {one.run for one in await store.live()}

    async def test_results(self, store: Store) -> None:
        story = begin(wanted=plan(1))
        await write(store, story.started)
        assert await store.result(story.run) is None
        await write(store, story.ok(0, '{"título":"☃"}'.encode()))
        document = json.loads(await store.result(story.run) or b"")
        assert document["coletas"][0]["dados"] == {"título": "☃"} and document["status"] == "concluida"

    async def test_count_by_status(self, store: Store) -> None:
        for _ in range(3):
            await finished(store)
        open_ = begin()
        await write(store, open_.started)
        assert await store.count_by_status() == {"concluida": 3, "pendente": 1}

    async def test_keys(self, store: Store) -> None:
        one = begin()
        await store.append(batch(one.started, keys=[Key("k'1", "fp", one.run)]))
        assert await used_keys(store, ["k'1", "k2", ""]) == {"k'1": Key("k'1", "fp", one.run)}

    async def test_counters_add_up(self, store: Store) -> None:
        for _ in range(3):
            await store.append(batch(counts={("q", "applied"): 2, ("q", "duplicate"): 1, ("r", "applied"): 5}))
        assert await store.counts() == {("q", "applied"): 6, ("q", "duplicate"): 3, ("r", "applied"): 15}

    async def test_task_types(self, store: Store) -> None:
        await store.put_task_type("b", b'{"coletas":[]}', at(0))
        await store.put_task_type("a", '{"é":1}'.encode(), at(0))
        await store.put_task_type("b", b'{"coletas":[1]}', at(1))
        assert await store.task_types() == {"a": '{"é":1}'.encode(), "b": b'{"coletas":[1]}'}
        assert await store.remove_task_type("a") is True
        assert await store.remove_task_type("a") is False
        assert list(await store.task_types()) == ["b"]

    async def test_schemas_of_parameters(self, store: Store) -> None:
        await store.put_parameter_schema("b", b'{"type":"object"}', at(0))
        await store.put_parameter_schema("a", '{"title":"é"}'.encode(), at(0))
        await store.put_parameter_schema("b", b"{}", at(1))
        assert await store.parameter_schemas() == {"a": '{"title":"é"}'.encode(), "b": b"{}"}
        assert [await store.remove_parameter_schema("b") for _ in range(2)] == [True, False]
        assert list(await store.parameter_schemas()) == ["a"]

    async def test_durability_is_one_of_three_words(self, store: Store) -> None:
        assert await store.durability() in ("power-safe", "crash-safe", "best-effort")


class TestTenants:
    """What belongs to one tenant is in no list, count or search of another, however alike the names are."""

    async def test_orchestrations(self, store: Store) -> None:
        for name in ("a", "espaco_acme.a", "espaco_acme.b", "espaco_outro.a"):
            await finished(store, name)
        for tenant, names in (("default", ["a"]), ("acme", ["espaco_acme.b", "espaco_acme.a"]), ("nenhum", [])):
            for query in (Query(), Query(status=list(Status)), Query(status=[Status.CONCLUIDA]), Query(since=at(-1))):
                found = await store.find(replace(query, tenant=tenant))
                assert [one.correlation_id for one in found] == names
                assert await store.count(replace(query, tenant=tenant)) == len(names)
            assert sum((await store.count_by_status(tenant)).values()) == len(names)
            assert sum(one.count for one in await store.activity(at(-1), seconds(60), tenant)) == len(names)
        found = await store.find(Query(text="a", tenant="acme"))
        assert [one.correlation_id for one in found] == ["espaco_acme.a"]
        assert [one.correlation_id for one in await store.find(Query(text="a"))] == ["a"]
        assert len(await store.find(Query(tenant=None))) == sum((await store.count_by_status()).values()) == 4

    async def test_a_name_of_128_characters_fits_with_the_longest_tenant(self, store: Store) -> None:
        name = f"espaco_{'t' * 32}.{'x' * 128}"
        story = await finished(store, name)
        assert await store.locate([name]) == {name: story.run}

    async def test_dead_letters(self, store: Store) -> None:
        queues = ("q", "espaco_acme.q", "espaco_acme.q", "espaco_outro.q")
        await store.append(Batch(at(0), dead=[DeadLetter(queue, "not_json", "", b"x") for queue in queues]))
        mine = await store.dead_letters(tenant="acme")
        assert [one.queue for one in mine] == ["espaco_acme.q"] * 2
        assert await store.dead_letter_groups("acme") == [("espaco_acme.q", "not_json", 2)]
        [theirs] = await store.dead_letters(tenant="outro")
        assert await store.dead_letter(theirs.id, "acme") is None
        assert (await store.dead_letter(theirs.id, "outro")) == theirs
        assert await store.remove_dead_letters([theirs.id, mine[0].id], "discarded", "acme") == 1
        assert len(await store.dead_letters()) == 3

    async def test_schedules_and_system_events(self, store: Store) -> None:
        for name in ("b", "espaco_acme.a", "espaco_acme.c"):
            await store.save_schedule(StoredSchedule(name, b"{}", b"{}", None))
        assert [one.name for one in await store.schedules("acme", "espaco_acme.a", 9)] == ["espaco_acme.c"]
        assert [one.name for one in await store.schedules("default", "", 9)] == ["b"]
        for tenant in ("default", "acme", "acme"):
            await store.record_system_event(SystemEvent("k", at(0), {}, tenant=tenant))
        assert len(await store.system_events(tenant="acme")) == 2
        assert {one.tenant for one in await store.system_events()} == {"default", "acme"}

    async def test_users_are_put_changed_and_forgotten_with_their_sessions(self, store: Store) -> None:
        ana = LocalUser("ana", "acme", (AccessRole.LEITOR, AccessRole.AUDITOR), "$hash", at(1), "local", at(1))
        await store.put_user(ana)
        await store.put_user(replace(ana, name="rui", tenant="default", disabled_at=at(2)))
        assert [user.name for user in await store.users()] == ["ana", "rui"] and await store.user("ana") == ana
        await store.add_session(KeySession("s1", "local-user:ana", "d", at(9)), at(1))
        await store.put_user(replace(ana, password_hash="$other", changed_at=at(3)))
        assert await store.session("s1") is not None
        await store.put_user(ana, ends_sessions_of="local-user:ana")
        assert await store.session("s1") is None and await store.user("ana") == ana
        await store.add_session(KeySession("s2", "local-user:ana", "d", at(9)), at(1))
        assert await store.remove_user("ana", "local-user:ana") and not await store.remove_user("ana", "")
        assert await store.session("s2") is None and await store.user("ana") is None

    async def test_registered_with_limits(self, store: Store) -> None:
        assert await store.tenants() == []
        await store.add_tenant("b", at(0))
        await store.put_tenant(StoredTenant("a", at(1), Limits(10, 0.5, 7, 1.5, 2)))
        await store.put_tenant(StoredTenant("b", at(2), Limits(3)))
        await store.add_tenant("b", at(3))
        assert await store.tenants() == [
            StoredTenant("a", at(1), Limits(10, 0.5, 7, 1.5, 2)),
            StoredTenant("b", at(0), Limits(3)),
        ]
        assert await store.remove_tenant("a") and not await store.remove_tenant("a")

    async def test_what_is_open_is_counted_up_to_a_limit(self, store: Store) -> None:
        await write(store, *(begin(f"espaco_acme.{number}").started for number in range(4)))
        assert [await store.open_runs_in("acme", limit) for limit in (2, 9)] == [2, 4]
        assert await store.open_runs_in("default", 9) == 0
        assert await store.dead_letters_in("acme", 9) == 0


class TestSchedules:
    @staticmethod
    def one(name: str, due: float | None = 0.0, version: int = 0) -> StoredSchedule:
        return StoredSchedule(name, b'{"a":1}', b'{"b":"\xc3\xa3"}', None if due is None else at(due), version)

    async def test_written_over_the_version_it_was_made_of_and_no_other(self, store: Store) -> None:
        first = await store.save_schedule(self.one("a"))
        assert first == self.one("a", version=1) == await store.schedule("a")
        assert await store.save_schedule(self.one("a")) is None  # there is one of that name
        second = await store.save_schedule(replace(first, state=b'{"n":2}', due_at=None))
        assert second is not None and second.version == 2 and second.state == b'{"n":2}'
        assert await store.save_schedule(first) is None
        assert await store.schedule("a") == second and await store.schedule("b") is None
        assert await store.remove_schedule("a") and not await store.remove_schedule("a")
        assert await store.save_schedule(second) is None

    async def test_one_of_many_writers_wins(self, store: Store) -> None:
        kept = await store.save_schedule(self.one("a"))
        assert kept is not None
        saved = await asyncio.gather(*(store.save_schedule(replace(kept, state=b"%d" % n)) for n in range(10)))
        assert sum(one is not None for one in saved) == 1

    async def test_listed_by_name(self, store: Store) -> None:
        for name in ("b", "a", "c-1", "Z"):
            await store.save_schedule(self.one(name))
        assert [one.name for one in await store.schedules("default", "", 3)] == ["Z", "a", "b"]
        assert [one.name for one in await store.schedules("default", "b", 3)] == ["c-1"]

    async def test_due_are_those_that_waited_longest_first(self, store: Store) -> None:
        """A store with a clock of its own goes by that: these are long due, or far off, by any clock."""
        for name, due in (("b", -20.0), ("a", -10.0), ("c", -30.0), ("never", None)):
            await store.save_schedule(self.one(name, due))
        far = datetime(2190, 1, 1, tzinfo=UTC)
        await store.save_schedule(replace(self.one("far"), due_at=far))
        found = await store.due_schedules(at(0), 2)
        assert [one.name for one in found.schedules] == ["c", "b"] and found.next_at == far
        assert [one.name for one in (await store.due_schedules(at(0), 10)).schedules] == ["c", "b", "a"]


class TestFind:
    @pytest.fixture
    async def many(self, store: Store) -> list[Story]:
        """Forty orchestrations, one each second; every fourth has a blog, every fifth is still open."""
        stories = []
        for n in range(40):
            tasks = [coleta("youtube")] + ([coleta("blog")] if n % 4 == 0 else [])
            story = begin(f"{'par' if n % 2 == 0 else 'impar'}-{n:02}", plan(tasks, [execucao("relatorio")]), when=n)
            steps = [story.started]
            if n % 5:
                steps += [story.ok(position) for position in range(len(tasks) + 1)]
            await write(store, *steps, when=n)
            stories.append(story)
        return stories

    async def names(self, store: Store, **query: object) -> list[str]:
        return [one.correlation_id for one in await store.find(Query(**{"limit": 1000, **query}))]

    async def test_newest_first(self, store: Store, many: list[Story]) -> None:
        assert await self.names(store) == [story.state.correlation_id for story in reversed(many)]
        assert len(await self.names(store, limit=7)) == 7

    async def test_by_status(self, store: Store, many: list[Story]) -> None:
        assert len(await self.names(store, status=[Status.PENDENTE])) == 8
        assert len(await self.names(store, status=[Status.CONCLUIDA])) == 32
        assert len(await self.names(store, status=[Status.PENDENTE, Status.CONCLUIDA])) == 40
        assert await self.names(store, status=[Status.ERRO]) == []

    async def test_by_queue(self, store: Store, many: list[Story]) -> None:
        blogs = await self.names(store, destino="escavador_blog")
        assert len(blogs) == 10 and blogs == sorted(blogs, key=lambda name: -int(name[-2:]))
        assert len(await self.names(store, destino="executador_relatorio")) == 40
        assert await self.names(store, destino="escavador_") == []

    async def test_by_label(self, store: Store) -> None:
        for n in range(12):
            labels = (f"cliente:{n % 3}", "todas") if n < 9 else ()
            story = begin(f"rotulada-{n:02}", replace(plan([coleta("youtube")]), labels=labels), when=n)
            steps = [story.started] if n % 2 else [story.started, story.ok(0)]
            await write(store, *steps, when=n)
        assert await self.names(store, label="cliente:0") == ["rotulada-06", "rotulada-03", "rotulada-00"]
        assert len(await self.names(store, label="todas", limit=5)) == 5
        assert await self.names(store, label="cliente") == [] and await self.names(store, label="nul\0") == []
        both = {"label": "todas", "status": [Status.PENDENTE, Status.ERRO]}
        assert await self.names(store, **both) == ["rotulada-07", "rotulada-05", "rotulada-03", "rotulada-01"]
        assert await self.names(store, label="cliente:1", destino="escavador_youtube", text="rotulada-0") == [
            "rotulada-07", "rotulada-04", "rotulada-01",
        ]  # fmt: skip
        assert await store.count(Query(label="cliente:2", limit=100)) == 3
        found = await store.find(Query(limit=4))
        assert [one.labels for one in found] == [(), (), (), ("cliente:2", "todas")]
        assert await store.summary("rotulada-01") == (await store.find(Query(text="rotulada-01")))[0]

    @pytest.mark.parametrize("since", [0, 1, 17, 17.5, 39, 40])
    async def test_since(self, store: Store, many: list[Story], since: float) -> None:
        expected = [s.state.correlation_id for s in reversed(many) if s.state.started_at >= at(since)]
        assert await self.names(store, since=at(since)) == expected

    async def test_since_the_very_instant_of_creation_also_when_the_number_was_given_earlier(
        self, store: Store
    ) -> None:
        story = begin("cedo", when=10)
        late = Story(plan(1), run=story.run, correlation_id="cedo", when=10.250, check=False)
        await write(store, late.started)
        assert await self.names(store, since=at(10.250)) == ["cedo"]
        assert await self.names(store, since=at(10.250001)) == []

    async def test_by_the_beginning_of_the_correlation_id(self, store: Store, many: list[Story]) -> None:
        assert len(await self.names(store, text="par-")) == 20
        assert await self.names(store, text="par-0") == ["par-08", "par-06", "par-04", "par-02", "par-00"]
        assert await self.names(store, text="%") == [] and await self.names(store, text="_ar") == []

    async def test_all_at_once(self, store: Store, many: list[Story]) -> None:
        assert await self.names(
            store, destino="escavador_blog", status=[Status.CONCLUIDA], since=at(8), text="par", limit=3,
            before_run=many[36].run,
        ) == ["par-32", "par-28", "par-24"]  # fmt: skip

    async def test_pages_over_a_thousand_are_stable_while_new_ones_arrive(self, store: Store) -> None:
        old = [begin(f"velha-{n:04}", when=n) for n in range(1000)]
        await write(store, *(story.started for story in old))
        seen: list[str] = []
        cursor = None
        while True:
            page = await store.find(Query(before_run=cursor, limit=90))
            if not page:
                break
            seen += [one.correlation_id for one in page]
            cursor = page[-1].run
            new = begin(when=5000)
            await write(store, new.started)
        assert seen == [f"velha-{n:04}" for n in reversed(range(1000))]

    @pytest.mark.parametrize("until", [0, 1, 17, 17.5, 39, 40])
    async def test_until(self, store: Store, many: list[Story], until: float) -> None:
        expected = [s.state.correlation_id for s in reversed(many) if s.state.started_at < at(until)]
        assert await self.names(store, until=at(until)) == expected

    async def test_newer_than_one(self, store: Store, many: list[Story]) -> None:
        assert await self.names(store, after_run=many[37].run) == ["impar-39", "par-38"]
        assert await self.names(store, after_run=many[39].run) == []
        assert await self.names(store, after_run=many[30].run, status=[Status.PENDENTE]) == ["impar-35"]

    async def test_counted_no_further_than_asked(self, store: Store, many: list[Story]) -> None:
        async def count(**query: object) -> int:
            return await store.count(Query(**{"limit": 1000, **query}))

        assert (await count(), await count(limit=7), await count(text="par-")) == (40, 7, 20)
        assert await count(status=[Status.PENDENTE, Status.CONCLUIDA], since=at(10)) == 30
        assert await count(status=[Status.ERRO], destino="escavador_blog") == 0


class TestFigures:
    """What the overview of a dashboard asks."""

    async def test_activity_in_slices_of_time(self, store: Store) -> None:
        assert await store.activity(at(0), seconds(60)) == []
        for n in range(5):
            await finished(store, when=60 * n)
        await write(store, begin(when=61).started)
        found = await store.activity(at(60), seconds(120))
        width = 120
        assert all(one.at.timestamp() % width == 0 for one in found)
        assert [one.at for one in found] == sorted(one.at for one in found)
        assert sum(one.count for one in found if one.status is Status.CONCLUIDA) == 4
        (waiting,) = [one for one in found if one.status is Status.PENDENTE]
        start = at(61).timestamp()
        assert waiting == Bucket(at(61 - start % width), Status.PENDENTE, 1)

    async def test_failures_by_queue(self, store: Store) -> None:
        assert await store.failures(at(0)) == []
        both = plan([coleta("blog", attempts=1), coleta("blog", attempts=1), coleta("youtube")], [execucao(attempts=1)])
        for when in (0, 100, 200):
            story = begin(wanted=both, when=when)
            steps = [story.started, story.fail(0), story.fail(1), story.ok(2), story.fail(3)]
            await write(store, *steps, when=when)
        await finished(store, when=100)
        assert await store.failures(at(100)) == [
            FailingQueue("escavador_blog", 4, 2),
            FailingQueue("executador_relatorio", 2, 2),
        ]
        open_one = begin(wanted=both, when=300)
        await write(store, open_one.started, open_one.fail(0), when=300)
        assert await store.failures(at(300)) == []  # it has not ended

    async def test_queues_of_runs_those_with_failures_first(self, store: Store) -> None:
        both = plan([coleta("blog", attempts=1), coleta("youtube", attempts=1)])
        bad, good = begin("bad", wanted=both, when=0), begin("good", wanted=both, when=1)
        await write(store, bad.started, bad.ok(0), bad.fail(1), when=0)
        await write(store, good.started, when=1)
        expected = {bad.run: ["escavador_youtube", "escavador_blog"], good.run: ["escavador_blog", "escavador_youtube"]}
        assert await store.destinations([bad.run, good.run, 7], 100) == expected
        assert await store.destinations([bad.run], 1) == {bad.run: ["escavador_youtube"]}
        assert await store.destinations([], 10) == {}

    async def test_who_runs_out_of_time_first(self, store: Store) -> None:
        assert await store.nearest_deadlines(10) == []
        for name, timeout in (("longa", 500), ("curta", 50), ("media", 200)):
            story = begin(name, plan(1, timeout=timeout), when=10)
            await write(store, story.started, when=10)
        await finished(store, when=0)
        found = await store.nearest_deadlines(2)
        assert [(one.correlation_id, one.deadline) for one in found] == [("curta", at(60)), ("media", at(210))]


class TestEvents:
    async def test_from_any_number_on(self, store: Store) -> None:
        story = begin(wanted=plan(5, 1))
        await write(store, story.started, story.confirm())
        for position in range(5):
            await write(store, story.ok(position))
        last = story.state.version
        numbered = list(enumerate(story.events, 1))
        for after in range(last + 3):
            got = []
            for recorded in await store.events(story.run, after, 1000):
                assert recorded.first + len(recorded.events) - 1 > after, "a step that holds nothing new"
                got += [(n, e) for n, e in enumerate(recorded.events, recorded.first) if n > after]
            assert got == numbered[after:]

    async def test_in_pages(self, store: Store) -> None:
        story = begin(wanted=plan(30))
        await write(store, story.started)
        for position in range(30):
            await write(store, story.ok(position))
        after, got = 0, []
        while page := await store.events(story.run, after, 4):
            assert len(page) <= 4
            got += [event for recorded in page for event in recorded.events]
            after = page[-1].first + len(page[-1].events) - 1
        assert got == story.events

    async def test_of_nobody(self, store: Store) -> None:
        assert await store.events(424242, 0, 10) == []


class TestTail:
    async def test_the_whole_journal_in_the_order_of_commits(self, store: Store) -> None:
        one, two = begin(wanted=plan(2)), begin(wanted=plan(2))
        await write(store, one.started)
        await write(store, two.started, one.ok(0))
        await write(store, two.ok(1))
        assert [r.run for r in await everything(store)] == [one.run, two.run, one.run, two.run]

    async def test_from_a_position_on(self, store: Store) -> None:
        for _ in range(10):
            await finished(store)
        whole = await everything(store)
        after, got = 0, []
        while page := await store.tail(after, 3):
            got += page
            after = page[-1].position
        assert got == whole and len(whole) == 20

    async def test_positions_are_never_used_again(self, store: Store) -> None:
        await finished(store, when=0)
        last = (await everything(store))[-1].position
        assert await store.prune(at(100), 10) == 1
        await finished(store, when=200)
        assert [r.position > last for r in await everything(store)] == [True, True]

    async def test_no_gaps_while_several_write(self, store_case: StoreCase, stack: AsyncExitStack) -> None:
        """A reader that follows the tail misses nothing, whoever commits when."""
        writers = [store_case.store, await store_case.second(stack) or store_case.store]
        reader = await store_case.second(stack) or store_case.store
        written = 0
        total = 120

        async def writing(store: Store) -> None:
            nonlocal written
            for _ in range(total // 4):
                await finished(store)
                written += 2
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(writing(store)) for store in writers for _ in range(2)]
        after, got = 0, []
        while len(got) < 2 * total:
            page = await reader.tail(after, 17)
            got += page
            after = page[-1].position if page else after
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert [r.position for r in got] == sorted({r.position for r in got})
        assert [(r.run, r.first) for r in got] == [(r.run, r.first) for r in await everything(reader)]


class TestSeveralWriters:
    async def test_one_of_two_wins_and_the_other_is_told(self, store_case: StoreCase, stack: AsyncExitStack) -> None:
        other = await store_case.second(stack)
        if other is None:
            pytest.skip("nobody else can reach this database")
        story = begin(wanted=plan(2))
        await write(store_case.store, story.started)
        twin = copy.deepcopy(story)
        results = await asyncio.gather(
            write(store_case.store, story.ok(0)), write(other, twin.fail(0)), return_exceptions=True
        )
        assert sorted(isinstance(result, StoreError) for result in results) == [False, True]
        winner = twin if isinstance(results[0], StoreError) else story
        assert await state_in(other, story.run) == winner.state

    async def test_what_one_writes_the_other_reads(self, store_case: StoreCase, stack: AsyncExitStack) -> None:
        other = await store_case.second(stack)
        if other is None:
            pytest.skip("nobody else can reach this database")
        story = await finished(store_case.store, "visto")
        assert await other.locate(["visto"]) == {"visto": story.run}


class TestDeadLetters:
    @pytest.mark.parametrize("body", [b"", b"\x00", b"\xff\x00\xfe", "é".encode(), b"x" * 1_048_577])
    async def test_the_bytes_are_kept_as_they_were(self, store: Store, body: bytes) -> None:
        await store.append(batch(when=3, dead=[letter(body, correlation_id="c", headers={"h": "ç"})]))
        (one,) = await store.dead_letters()
        assert (one.body, one.correlation_id, one.headers, one.at) == (body, "c", {"h": "ç"}, at(3))
        assert (one.queue, one.reason, one.detail) == ("q", "not_json", "detalhe")
        assert await store.dead_letter(one.id) == one

    async def test_pages_and_filters(self, store: Store) -> None:
        dead = [letter(b"%d" % n, "abc"[n % 3], "xy"[n % 2]) for n in range(30)]
        await store.append(batch(dead=dead))
        whole = await store.dead_letters(limit=100)
        assert [int(one.body) for one in whole] == list(reversed(range(30)))
        pages, before = [], None
        while page := await store.dead_letters(before=before, limit=7):
            pages += page
            before = page[-1].id
        assert pages == whole
        assert len(await store.dead_letters(queue="a")) == 10
        assert len(await store.dead_letters(reason="y")) == 15
        assert len(await store.dead_letters(queue="a", reason="y")) == 5
        assert await store.dead_letters(queue="z") == []

    async def test_a_list_without_bodies_has_their_sizes(self, store: Store) -> None:
        await store.append(batch(dead=[letter(b"x" * 100_000), letter("é".encode()), letter(b"")]))
        found = await store.dead_letters(bodies=False)
        assert [(one.body, one.size) for one in found] == [(b"", 0), (b"", 2), (b"", 100_000)]
        assert [one.size for one in await store.dead_letters()] == [0, 2, 100_000]

    async def test_groups(self, store: Store) -> None:
        await store.append(batch(dead=[letter(queue="b"), letter(queue="a"), letter(queue="a"), letter(reason="nul")]))
        assert await store.dead_letter_groups() == [("a", "not_json", 2), ("b", "not_json", 1), ("q", "nul", 1)]

    async def test_removing_counts_what_became_of_them(self, store: Store) -> None:
        dead = [letter(), letter(), letter(queue="r")]
        await store.append(batch(dead=dead, counts={("q", "quarantined"): 2, ("r", "quarantined"): 1}))
        ids = [one.id for one in await store.dead_letters()]
        assert await store.remove_dead_letters([*ids[:2], 999_999], "discarded") == 2
        assert await store.remove_dead_letters(ids[:2], "discarded") == 0
        assert await store.remove_dead_letters(ids[2:], "requeued") == 1
        counts = await store.counts()
        assert sum(n for (_, verdict), n in counts.items() if verdict in ("discarded", "requeued")) == 3
        assert sum(n for (_, verdict), n in counts.items() if verdict == "quarantined") == 3
        assert await store.dead_letters() == []

    async def test_ids_are_never_used_again(self, store: Store) -> None:
        await store.append(batch(dead=[letter()]))
        (one,) = await store.dead_letters()
        await store.remove_dead_letters([one.id], "discarded")
        await store.append(batch(dead=[letter()]))
        assert (await store.dead_letters())[0].id > one.id


class TestPrune:
    async def test_it_forgets_what_ended_before_and_all_of_it(self, store: Store) -> None:
        old, new = await finished(store, "velha", when=0), await finished(store, "nova", when=100)
        assert await store.prune(at(50), 10) == 1
        assert await store.locate(["velha", "nova"]) == {"nova": new.run}
        assert await store.load([old.run]) == {} and await store.result(old.run) is None
        assert await store.find(Query(destino="escavador_fonte0")) == await store.find(Query())
        assert {one.run for one in await everything(store)} == {new.run}

    async def test_it_keeps_what_is_open_owes_or_waits(self, store: Store) -> None:
        running, owing, waiting = begin("aberta"), begin("deve", plan(1, fila="f")), begin("espera", plan(1, fila="f"))
        await write(store, running.started, owing.started, owing.ok(0))
        await write(store, waiting.started, waiting.ok(0), waiting.told(0, 1))
        assert await store.prune(at(10_000_000), 10) == 0
        await write(store, owing.told(0, 1, delivered=True))
        assert await store.prune(at(10_000_000), 10) == 1

    async def test_no_more_than_asked_for_and_the_oldest_first(self, store: Store) -> None:
        for n in range(10):
            await finished(store, f"n{n}", when=n)
        assert await store.prune(at(8), 3) == 3
        assert await store.locate([f"n{n}" for n in range(10)]) == await store.locate([f"n{n}" for n in range(3, 10)])
        assert await store.prune(at(8), 100) == 5
        assert await store.prune(at(8), 100) == 0

    async def test_a_key_lives_as_long_as_its_orchestration(self, store: Store) -> None:
        old, running = begin("velha"), begin("aberta")
        keys = [Key("a", "f", old.run), Key("b", "f", running.run)]
        await store.append(batch(old.started, old.ok(0), running.started, keys=keys))
        await store.prune(at(1000), 10)
        assert set(await used_keys(store, ["a", "b"])) == {"b"}

    async def test_the_key_of_a_request_that_exists_once_outlives_its_run_when_it_says_so(self, store: Store) -> None:
        for n, kept in enumerate((at(0), at(500), None)):
            story = begin(f"u{n}")
            holder = KeyHolder(f"k:{n}", story.run, f"u{n}", at(0), kept)
            holder.add(MergedRequest(at(0), "outra", "ana"))
            await store.append(batch(story.started, story.ok(0), holders={story.run: holder}))
            assert await store.key_holder(story.run) == replace(holder, open=False)
        await finished(store, "agora", when=400)
        found = await held(store, ["k:0", "k:1", "k:2", "k:3"])
        assert [one.merged for one in found.values()] == [1, 1, 1]
        await store.prune(at(100), 10)
        assert {key: one.forgotten for key, one in (await held(store, list(found))).items()} == {
            "k:1": True,
            "k:2": True,
        }
        await finished(store, "depois", when=600)
        await store.prune(at(500), 10)
        assert set(await held(store, list(found))) == {"k:2"}

    async def test_the_newest_run_of_a_key_holds_it(self, store: Store) -> None:
        first, second = begin("a"), begin("b", when=5)
        holders = [KeyHolder("k:x", one.run, n, at(when), None) for one, n, when in ((first, "a", 0), (second, "b", 5))]
        await store.append(batch(first.started, holders={first.run: holders[0]}))
        await store.append(batch(second.started, holders={second.run: holders[1]}))
        assert await held(store, ["k:x"]) == {"k:x": holders[1]}
        assert await store.key_holder(first.run) == holders[0] and await store.key_holder(77) is None

    async def test_the_id_is_free_again(self, store: Store) -> None:
        await finished(store, "de-novo", when=0)
        await store.prune(at(1), 10)
        await finished(store, "de-novo", when=2)
        assert await store.summary("de-novo")

    async def test_ended_ones_are_listed_by_their_ends_and_forgotten_by_their_numbers(self, store: Store) -> None:
        third, first, second = [await finished(store, f"e{n}", when=n) for n in (9, 1, 5)]
        running, owing = begin("aberta"), begin("deve", plan(1, fila="f"), when=6)
        await store.append(batch(running.started, owing.started, owing.ok(0), keys=[Key("k", "f", first.run)]))
        found = await store.ended_runs(None, at(100), 2)
        found += await store.ended_runs(found[-1], at(100), 10)
        assert [one.run for one in found if one.settled] == [first.run, second.run, third.run]
        assert [one.run for one in found if not one.settled] == [owing.run]
        assert {(one.tenant, one.tipo) for one in found} == {("default", None)}
        assert [one.run for one in await store.ended_runs(None, at(5), 10)] == [first.run]
        read = (await store.load([first.run]))[first.run][-1].position
        every = [one.run for one in found] + [running.run, 77]
        assert await store.forget_runs(every, read) == 2  # the second and third that were written came before
        assert await store.forget_runs(every) == 1 and await store.forget_runs([]) == 0
        assert await store.locate(["e1", "e5", "e9", "aberta", "deve"]) == {"aberta": running.run, "deve": owing.run}
        assert await used_keys(store, ["k"]) == {}

    async def test_counters_and_dead_letters_stay(self, store: Store) -> None:
        await store.append(batch(dead=[letter()], counts={("q", "quarantined"): 1}))
        await store.prune(at(1000), 10)
        assert await store.counts() and await store.dead_letters()


async def test_system_events_newest_first(store: Store) -> None:
    assert await store.system_events() == []
    for number in range(3):
        await store.record_system_event(SystemEvent("broker_switched", at(number), {"route_epoch": number}))
    found = await store.system_events(limit=2)
    assert [(one.kind, one.at, one.body) for one in found] == [
        ("broker_switched", at(number), {"route_epoch": number}) for number in (2, 1)
    ]
    assert found[0].id > found[1].id
    assert await store.system_events(kind="outra") == [] and len(await store.system_events(kind="broker_switched")) == 3


def token_key(kid: str, signs_from: int = 0, good_until: int | None = None) -> StoredTokenKey:
    until = None if good_until is None else at(good_until)
    return StoredTokenKey(kid, bytes(range(224, 256)), at(0), at(signs_from), until)


class TestBreakers:
    async def test_a_breaker_is_written_by_its_next_version_only_and_with_its_event(self, store: Store) -> None:
        first = DestinationBreaker("escavador_a", 2, 7, error="fora", version=1)
        opened = replace(first, failures=3, opened_at=at(1), probe_at=at(31), version=2)
        probing = replace(opened, probe=(9, 0, 2), probes=1, version=3)
        assert await store.put_breaker(first)
        assert not await store.put_breaker(replace(first, failures=9))
        assert await store.put_breaker(opened, SystemEvent("breaker_opened", at(1), {"fila": "escavador_a"}))
        assert not await store.put_breaker(opened, SystemEvent("breaker_opened", at(1), {"fila": "escavador_a"}))
        assert [one.kind for one in await store.system_events()] == ["breaker_opened"]
        assert await store.put_breaker(probing) and await store.put_breaker(DestinationBreaker("a", version=1))
        assert await store.breakers() == [DestinationBreaker("a", version=1), probing]


class TestTokenKeys:
    async def test_of_two_first_keys_one_is_stored(self, store: Store) -> None:
        assert await store.token_keys() == []
        await asyncio.gather(*(store.add_first_token_key(token_key(kid)) for kid in ("a", "b", "c")))
        assert len(await store.token_keys()) == 1

    async def test_a_successor_gives_the_others_an_end(self, store: Store) -> None:
        await store.add_first_token_key(token_key("a"))
        await store.succeed_token_keys(token_key("b", 10), at(100), at(5))
        assert await store.token_keys() == [token_key("b", 10), token_key("a", 0, 100)]
        await store.succeed_token_keys(token_key("c", 20), at(200), at(15))  # an end that was given is not put off
        assert await store.token_keys() == [token_key("c", 20), token_key("b", 10, 200), token_key("a", 0, 100)]
        await store.succeed_token_keys(token_key("d", 150), at(160), at(100))  # the first is over
        assert await store.token_keys() == [token_key("d", 150), token_key("c", 20, 160), token_key("b", 10, 160)]

    async def test_when_all_have_an_end_there_may_be_a_first_again(self, store: Store) -> None:
        await store.add_first_token_key(token_key("a", 0, 5))
        await store.add_first_token_key(token_key("b", 1))
        await store.add_first_token_key(token_key("c", 2))
        assert [key.kid for key in await store.token_keys()] == ["b", "a"]


def api_key(id: str = "kaaaaaaaaaaa", **more: object) -> ApiKey:
    fields = {"role": AccessRole.OPERADOR, "queues": (), "note": "de ç", "digest": "d1", "created_at": at(0), **more}
    return ApiKey(id, tenant="default", created_by="local", **fields)


class TestApiKeys:
    async def test_what_was_stored_is_read_back(self, store: Store) -> None:
        worker = api_key(
            "kbbbbbbbbbbb", role=AccessRole.TRABALHADOR, queues=("a", "b"), created_at=at(1), expires_at=at(9)
        )
        assert await store.api_keys() == [] and await store.api_key(worker.id) is None
        await store.add_api_key(api_key())
        await store.add_api_key(worker)
        assert await store.api_keys() == [worker, api_key()]
        assert await store.api_key(worker.id) == worker

    async def test_an_id_is_used_once(self, store: Store) -> None:
        await store.add_api_key(api_key())
        with pytest.raises(StoreError):
            await store.add_api_key(api_key(note="outra"))
        assert await store.api_keys() == [api_key()]

    async def test_a_rotation_keeps_the_digest_before(self, store: Store) -> None:
        await store.add_api_key(api_key())
        assert await store.rotate_api_key("kaaaaaaaaaaa", "d2", at(5), at(9))
        rotated = api_key(digest="d2", old_digest="d1", old_until=at(5), expires_at=at(9))
        assert await store.api_key("kaaaaaaaaaaa") == rotated
        assert not await store.rotate_api_key("knone", "d3", at(5), None)

    async def test_a_key_is_revoked_once_and_its_sessions_end(self, store: Store) -> None:
        await store.add_api_key(api_key())
        await store.add_api_key(api_key("kbbbbbbbbbbb"))
        await store.use_api_key("kaaaaaaaaaaa", at(2))
        mine = KeySession("s1", "kaaaaaaaaaaa", "d", at(50))
        other = KeySession("s2", "kbbbbbbbbbbb", "d", at(50))
        await store.add_session(mine, at(1))
        await store.add_session(other, at(1))
        assert await store.session("s1") == mine
        assert await store.revoke_api_key("kaaaaaaaaaaa", at(3))
        assert not await store.revoke_api_key("kaaaaaaaaaaa", at(4))
        assert not await store.rotate_api_key("kaaaaaaaaaaa", "d2", at(5), None)
        assert await store.api_key("kaaaaaaaaaaa") == api_key(used_at=at(2), revoked_at=at(3))
        assert await store.session("s1") is None and await store.session("s2") == other

    async def test_what_a_key_has_open_is_counted(self, store: Store) -> None:
        mine, other = "kaaaaaaaaaaa", "kbbbbbbbbbbb"
        stories = [begin(f"n{number}", actor=actor) for number, actor in enumerate((mine, mine, other, "local", None))]
        await store.append(batch(*(story.started for story in stories)))
        assert (await store.open_runs_of(mine), await store.open_runs_of(other)) == (2, 1)
        assert await store.open_runs_of("local") == 0  # only keys have limits
        await write(store, stories[0].ok(0))
        assert await store.open_runs_of(mine) == 1

    async def test_limits_are_kept(self, store: Store) -> None:
        limited = api_key(limits=Limits(5, 0.5))
        await store.add_api_key(limited)
        assert await store.api_key(limited.id) == limited

    async def test_sessions_end(self, store: Store) -> None:
        await store.add_session(KeySession("s1", "k", "d", at(10)), at(1))
        await store.add_session(KeySession("s2", "k", "d", at(20)), at(10))  # the first is over by now
        assert await store.session("s1") is None and await store.session("s2") is not None
        assert await store.end_session("s2") and not await store.end_session("s2")


class TestCursors:
    async def test_nobody_has_read_anything(self, store: Store) -> None:
        assert await store.cursors() == {} and await store.lag(0) == Lag()

    async def test_a_cursor_begins_at_the_beginning_and_never_goes_back(self, store: Store) -> None:
        assert await store.claim_cursor("auditoria") == 0
        await store.move_cursor("auditoria", 7)
        await store.move_cursor("auditoria", 5)
        assert await store.claim_cursor("auditoria") == 7
        assert await store.claim_cursor("outra") == 0
        assert await store.cursors() == {"auditoria": 7, "outra": 0}

    async def test_how_far_behind(self, store: Store) -> None:
        for when in (1, 2, 3):
            await write(store, begin(when=when).started, when=when)
        first, second, third = await everything(store)
        end = third.position
        assert await store.lag(0) == Lag(end - first.position + 1, first.at, end)
        assert await store.lag(first.position) == Lag(end - second.position + 1, second.at, end)
        assert await store.lag(end) == Lag(end=end) and await store.lag(end + 9) == Lag(end=end + 9)

    async def test_how_far_behind_with_what_is_of_one_type(self, store: Store) -> None:
        for when, tipo in enumerate((None, "relatório", None, "relatório", None), start=1):
            await write(store, begin(wanted=replace(plan(1), tipo=tipo), when=when).started, when=when)
        steps = await everything(store)
        end = steps[-1].position
        found = await store.lag(0, "relatório")
        assert found == Lag(end - steps[1].position + 1, steps[1].at, end) and found.read == steps[1].position - 1
        assert await store.lag(steps[1].position, "relatório") == Lag(end - steps[3].position + 1, steps[3].at, end)
        assert await store.lag(steps[3].position, "relatório") == Lag(end=end)
        assert await store.lag(0, "outro") == Lag(end=end) and (await store.lag(0, "outro")).read == end

    async def test_what_may_have_a_ceiling_is_told_apart(self, store: Store) -> None:
        """Whatever its type and its tenant: a plan of Fluxo C, and named tasks of which one says its priority."""
        urgent = tasks_of(a={"executador": "x", "prioridade": 9}, b={"executador": "x"})
        usual = tasks_of(a={"executador": "x"})
        wanted = [begin("espaco_acme.a", urgent), begin(), begin(wanted=flow({"a": ()})), begin(wanted=usual)]
        await write(store, *(one.started for one in wanted))
        limited = [wanted[0].run, wanted[2].run]
        assert [step.run for step in await store.tail(0, 10, limited=True)] == limited
        assert [step.run for step in await store.tail(0, 10, "fluxo_c", limited=True)] == limited[1:]
        found = await store.find(Query(status=tuple(Status), limited=True, tenant=None))
        assert sorted(one.run for one in found) == limited
        await write(store, wanted[0].ok(0), wanted[1].ok(0))
        assert [step.run for step in await store.tail(0, 10, limited=True)] == [*limited, wanted[0].run]

    async def test_what_is_not_read_yet_is_not_pruned(self, store: Store) -> None:
        old, new = await finished(store, "velha", when=0), await finished(store, "nova", when=1)
        steps = await everything(store)
        read = max(step.position for step in steps if step.run == old.run)
        assert await store.prune(at(100), 10, read - 1) == 0
        assert await store.prune(at(100), 10, read) == 1
        assert {step.run for step in await everything(store)} == {new.run}
        assert await store.prune(at(100), 10) == 1


async def test_system_events_from_one_on(store: Store) -> None:
    for number in range(3):
        await store.record_system_event(SystemEvent("plan_refused", at(number), {"n": number}))
    first, second = await store.later_system_events(0, 2)
    assert (first.body, second.body, first.kind, first.at) == ({"n": 0}, {"n": 1}, "plan_refused", at(0))
    assert [one.body for one in await store.later_system_events(second.id, 10)] == [{"n": 2}]


async def test_every_queue_that_was_ever_used(store: Store) -> None:
    assert await store.queues() == []
    await finished(store, "um")
    await finished(store, "dois")
    assert await store.queues() == sorted({task.queue for task in plan(1).tasks})


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    for call in (store.live, store.counts, lambda: store.find(Query()), lambda: finished(store)):
        with pytest.raises(StoreError):
            await call()


async def test_quorum_is_told_apart_by_queue_of_cancelled_tickets_too(store: Store) -> None:
    story = begin(wanted=plan(3, modo=FanIn.PRIMEIRO))
    await write(store, story.started, story.ok(0))
    assert [one.run for one in await store.find(Query(destino="escavador_fonte2"))] == [story.run]


class TestProjectedDocuments:
    async def test_nothing_was_written_yet(self, store: Store) -> None:
        assert await store.projected_mark("p") == ProjectedMark()
        assert await store.projected("p") == {}

    async def test_documents_are_written_over_the_version_they_were_made_of(self, store: Store) -> None:
        assert await store.save_projected("p", 0, ProjectedChange(7, {"a": b'{"n":1}', "b": b"2"})) == frozenset()
        assert await store.projected_mark("p") == ProjectedMark(1, 7)
        assert await store.save_projected("p", 0, ProjectedChange(8, {"a": b"9"})) is None
        assert (
            await store.save_projected("p", 1, ProjectedChange(9, {"a": b"3", "b": None, "é/ ": b"4"})) == frozenset()
        )
        assert await store.save_projected("p", 1, ProjectedChange(9, {"c": b"5"})) is None
        assert await store.projected("p") == {"a": b"3", "é/ ": b"4"}
        assert await store.projected("p", 1) == {"a": b"3", "é/ ": b"4"} and await store.projected("p", 2) == {}
        assert await store.projected("other") == {} and await store.projected_mark("p") == ProjectedMark(2, 9)

    async def test_what_is_forgotten_begins_again(self, store: Store) -> None:
        assert await store.claim_cursor("p") == 0
        await store.move_cursor("p", 5)
        assert await store.save_projected("p", 0, ProjectedChange(5, {"a": b"1"})) == frozenset()
        assert await store.save_projected("q", 0, ProjectedChange(5, {"a": b"1"})) == frozenset()
        await store.forget_projected("p")
        assert await store.projected("p") == {} and await store.projected_mark("p") == ProjectedMark()
        assert await store.claim_cursor("p") == 0 and await store.projected("q") == {"a": b"1"}


class TestServiceLevels:
    async def test_objectives_are_kept_replaced_and_removed(self, store: Store) -> None:
        one = StoredSlo("b", b'{"n":1}', "local", at(1))
        assert await store.put_slo(one) and await store.put_slo(replace(one, name="a"))
        assert not await store.put_slo(replace(one, body=b"{}", actor="ana"))
        assert [(slo.name, slo.body, slo.actor) for slo in await store.slos()] == [
            ("a", b'{"n":1}', "local"),
            ("b", b"{}", "ana"),
        ]
        assert await store.remove_slo("a") and not await store.remove_slo("a")

    async def test_an_alert_is_told_once_and_read_in_order(self, store: Store) -> None:
        told = [ToldAlert(f"id{n}", "acme" if n == 3 else "default", n, "X", at(n), b'{"n":1}') for n in range(4)]
        assert await store.save_projected("s", 0, ProjectedChange(1, told=told[:2])) == {"id0", "id1"}
        assert await store.save_projected("s", 1, ProjectedChange(2, told=told)) == {"id2", "id3"}
        found = await store.later_sla_alerts(0, 10)
        assert [replace(one, seq=0) for one in found] == told
        assert [one.id for one in await store.later_sla_alerts(found[1].seq, 1)] == ["id2"]
        assert [one.id for one in await store.sla_alerts("default", 2)] == ["id2", "id1"]
        assert [one.id for one in await store.sla_alerts("default", 2, before=found[1].seq)] == ["id0"]
        assert [one.id for one in await store.sla_alerts("default", 2, run=1)] == ["id1"]

    async def test_alerts_are_forgotten_with_their_runs(self, store: Store) -> None:
        story, kept = await finished(store, when=1), begin(when=1)
        await write(store, kept.started, when=1)
        told = [ToldAlert(str(run), "default", run, "X", at(1), b"1") for run in (story.run, kept.run, None)]
        await store.save_projected("s", 0, ProjectedChange(1, told=told))
        assert await store.prune(at(100), 10) == 1
        assert [one.run for one in await store.later_sla_alerts(0, 10)] == [kept.run]


class TestWorkers:
    async def test_a_registered_worker_is_read_back(self, store: Store) -> None:
        leases = store.worker_leases
        assert await leases.is_empty()
        made = await leases.register("w1", b'{"a":1}', b"{}", timedelta(seconds=60))
        assert (made.key, made.body, made.beat, made.alive, made.drain) == ("w1", b'{"a":1}', b"{}", True, None)
        assert made.lease_until - made.last_seen == timedelta(seconds=60)
        assert await leases.worker("w1") == made and await leases.worker("w2") is None
        await leases.register("espaco_acme.w1", b"{}", b"{}", timedelta(seconds=60))
        assert [one.key for one in await leases.workers("default")] == ["w1"]
        assert [one.key for one in await leases.workers("acme")] == ["espaco_acme.w1"]
        assert not await leases.is_empty()
        assert await leases.remove("w1") and not await leases.remove("w1")

    async def test_heartbeats_of_many_are_one_call(self, store: Store) -> None:
        leases = store.worker_leases
        for number in range(30):
            await leases.register(f"w{number:02}", b"{}", b"{}", timedelta(seconds=60))
        beats = [WorkerBeat(f"w{number:02}", b'{"n":1}', 2, 1, b'{"e":1}') for number in range(30)]
        known = await leases.beat([*beats, WorkerBeat("stranger", b"{}")])
        assert known == {f"w{number:02}" for number in range(30)}
        await leases.beat([WorkerBeat("w07", answered=3)])
        one = await leases.worker("w07")
        assert one is not None
        assert (one.beat, one.answered, one.failed, one.last_error) == (b'{"n":1}', 5, 1, b'{"e":1}')

    async def test_registering_again_keeps_counts_and_drain(self, store: Store) -> None:
        leases = store.worker_leases
        await leases.register("w1", b"{}", b"{}", timedelta(seconds=60))
        await leases.beat([WorkerBeat("w1", answered=4, failed=2)])
        assert await leases.drain("w1", b'{"ator":"ana"}') and not await leases.drain("w9", None)
        again = await leases.register("w1", b'{"v":2}', b"{}", timedelta(seconds=60))
        assert (again.body, again.answered, again.failed, again.drain) == (b'{"v":2}', 4, 2, b'{"ator":"ana"}')
        assert await leases.drained() == ["w1"]
        assert await leases.drain("w1", None) and await leases.drained() == []

    async def test_a_lease_that_ended_is_marked_by_one_caller(self, store: Store) -> None:
        leases = store.worker_leases
        await leases.register("dead", b"{}", b'{"x":1}', timedelta(0))
        await leases.register("alive", b"{}", b"{}", timedelta(seconds=60))
        (found,) = await until(lambda: leases.expired(10))
        assert (found.key, found.beat, found.alive) == ("dead", b'{"x":1}', False)
        assert await leases.gone(["dead", "alive", "stranger"]) == ["dead"]
        assert await leases.mark_lost(["dead", "alive"]) == ["dead"]
        assert await leases.mark_lost(["dead"]) == [] and await leases.expired(10) == []
        assert await leases.beat([WorkerBeat("dead"), WorkerBeat("alive")]) == {"alive"}
        assert await leases.forget(5) == 1
        assert [one.key for one in await leases.workers("default")] == ["alive"]
