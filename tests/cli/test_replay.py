"""`replay`, `prune` and `doctor`: commands that read the store itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

import mongo
from cli.processes import Cli, Server
from databases import database, sql
from oraculo.adapters.stores.sqlite.store import SqliteStore

FAILS_ONCE = {
    "correlation_id": "r1",
    "coletas": [{"fonte": "falha", "parametros": {"ok_na": 2}}, {"fonte": "eco"}],
    "execucoes": [{"executador": "soma"}],
}


pytestmark = pytest.mark.xdist_group("cli-replay")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One orchestration with a retry in a store that no server has open any more."""
    folder = tmp_path_factory.mktemp("stored")
    server = Server(folder, "--worker", "trabalho:worker")
    server.start()
    cli = Cli(folder, server.url)
    try:
        assert cli.submit(FAILS_ONCE, "--wait", "20")["status"] == "concluida"
        events = cli.json("watch", "r1")
        told = cli.json("replay", "r1", "--url", server.url)
        assert [event for step in told for event in step["eventos"]] == events
        assert all(step["confere"] is None for step in told)
    finally:
        server.kill()
    return folder


@pytest.fixture
def cli(stored: Path, tmp_path: Path) -> Cli:
    """A copy of that store."""
    for file in stored.glob("oraculo.db*"):
        shutil.copy(file, tmp_path)
    return Cli(tmp_path)


def test_replay_gives_the_same_and_says_so(cli: Cli) -> None:
    steps = cli.json("replay", "r1")
    assert steps[0]["causa"] == "Start"
    assert all(step["confere"] is True for step in steps)
    numbers = [event["seq"] for step in steps for event in step["eventos"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert steps[-1]["estado"]["status"] == "concluida"
    assert any(event["evento"] == "attempt_failed" for step in steps for event in step["eventos"])
    done = cli("replay", "r1")
    assert done.returncode == 0 and "replay gives the same" in done.stderr
    assert "attempt_failed destino=escavador_falha" in done.stdout


def test_replay_until(cli: Cli) -> None:
    steps = cli.json("replay", "r1", "--until", "3")
    assert [step["passo"] for step in steps] == list(range(1, len(steps) + 1))
    assert steps[-1]["eventos"][0]["seq"] <= 3 <= steps[-1]["eventos"][-1]["seq"]


def test_a_journal_that_was_changed_is_noticed(cli: Cli) -> None:
    with apsw.Connection(str(cli.folder / "oraculo.db")) as database:
        database.execute(
            """UPDATE journal SET events = replace(events, '"status":"concluida"', '"status":"parcial"')"""
        )
        assert database.total_changes() > 0
    done = cli("replay", "r1")
    assert done.returncode == 1
    assert "other events" in done.stderr
    last = cli.json("replay", "r1", code=1)[-1]
    assert last["confere"] is False and last["em_vez"][-1]["status"] == "concluida"


def test_replay_of_what_is_not_there(cli: Cli, alone: Cli) -> None:
    assert cli("replay", "nunca").returncode == 3


def test_without_a_database_nothing_is_made(alone: Cli) -> None:
    for command in (["replay", "x"], ["prune", "--older-than", "1d", "--yes"]):
        done = alone(*command)
        assert done.returncode == 3 and "no database" in done.stderr
    assert list(alone.folder.iterdir()) == []


def test_prune_forgets_what_is_old_enough(cli: Cli) -> None:
    assert cli.json("prune", "--older-than", "1h", "--yes")["removed"] == 0
    assert cli("prune", "--older-than", "1h").returncode == 2  # nobody to ask
    assert cli("prune", "--older-than", "muito", "--yes").returncode == 2
    assert cli.json("prune", "--older-than", "0s", "--yes")["removed"] == 1
    assert cli("replay", "r1").returncode == 3


async def test_prune_and_doctor_do_not_wait_for_a_projection_of_another_type(cli: Cli) -> None:
    """As if the server had died before the cursor of Fluxo C's topics had moved at all."""
    with apsw.Connection(str(cli.folder / "oraculo.db")) as database:
        database.execute("INSERT OR REPLACE INTO cursors (name, position) VALUES ('fluxo_c_topics', 0)")
    found = [one["detail"] for one in cli.json("doctor")["checks"] if one["name"] == "projection"]
    assert "fluxo_c_topics: up to date" in found
    told = cli.json("prune", "--older-than", "0s", "--yes")
    assert (told["removed"], told["unread"]) == (1, {})


async def test_prune_keeps_what_a_projection_has_not_read(cli: Cli) -> None:
    async with SqliteStore(str(cli.folder / "oraculo.db")) as store:
        await store.claim_cursor("auditoria")
        steps = (await store.lag(0)).steps
    found = [one["detail"] for one in cli.json("doctor")["checks"] if one["name"] == "projection"]
    assert f"auditoria: {steps} steps behind" in found
    told = cli.json("prune", "--older-than", "0s", "--yes")
    assert (told["removed"], told["unread"]) == (0, {"auditoria": steps})
    assert cli.json("prune", "--older-than", "0s", "--yes", "--unread")["removed"] == 1


def test_doctor_finds_nothing_wrong(cli: Cli) -> None:
    found = cli.json("doctor")
    levels = {one["name"]: one["level"] for one in found["checks"]}
    assert found["ok"] is True
    assert {"settings", "store", "disk", "schema", "integrity", "broker", "sqlite", "python"} <= set(levels)
    assert levels["server"] == "warning"
    assert "everything is in order" in cli("doctor").stdout


def test_a_journal_that_was_compared_with_nothing_is_not_called_whole(cli: Cli) -> None:
    done = cli("audit", "verify")
    assert done.returncode == 0 and "no copy to compare it with" in done.stdout and "whole" not in done.stdout


def test_doctor_says_when_temporal_is_not_used(alone: Cli) -> None:
    given = {"TEMPORAL_HOST": "temporal", "TEMPORAL_NAMESPACE": "n", "ORACULO_ENGINE": "local"}
    (found,) = [one for one in alone.json("doctor", **given)["checks"] if one["name"] == "temporal"]
    assert found["level"] == "warning"
    assert found["detail"] == "TEMPORAL_HOST, TEMPORAL_NAMESPACE: not used, the engine is local"


def test_doctor_names_a_database_that_others_may_read(alone: Cli) -> None:
    apsw.Connection(str(alone.folder / "oraculo.db")).close()
    (alone.folder / "oraculo.db").chmod(0o644)
    found = [one for one in alone.json("doctor")["checks"] if one["name"] == "store" and one["level"] == "warning"]
    assert "mode 644" in found[0]["detail"]
    assert found[0]["fix"].startswith("chmod go-rwx")


def test_doctor_of_an_empty_folder_makes_nothing(alone: Cli) -> None:
    assert alone.json("doctor")["ok"] is True
    assert list(alone.folder.iterdir()) == []


@pytest.mark.parametrize("scheme", ["amqp", "redis", "nats", "kafka"])
def test_doctor_says_which_broker_cannot_be_reached(alone: Cli, scheme: str) -> None:
    found = alone.json("doctor", code=1, ORACULO_BROKER=f"{scheme}://user:segredo@127.0.0.1:9")
    (broker,) = [one for one in found["checks"] if one["name"] == "broker"]
    assert broker["level"] == "broken" and broker["fix"] and "segredo" not in str(found)


def test_doctor_says_that_the_kafka_of_fluxo_c_cannot_be_reached(alone: Cli) -> None:
    found = alone.json("doctor", code=1, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:9")
    (kafka,) = [one for one in found["checks"] if one["name"] == "kafka"]
    assert kafka["level"] == "broken" and "KAFKA_BOOTSTRAP_SERVERS" in kafka["fix"]


async def test_replay_prune_and_doctor_on_postgresql(alone: Cli, cli: Cli) -> None:
    url = await database(empty=True)
    found = {one["name"]: one for one in alone.json("doctor", ORACULO_STORE=url)["checks"]}
    assert found["schema"]["level"] == "ok" and "none yet" in found["schema"]["detail"]
    assert found["durability"]["detail"] == "power-safe" and "PostgreSQL" in found["store"]["detail"]
    assert "there is no Oráculo" in alone("replay", "r1", ORACULO_STORE=url).stderr
    told = cli.json("migrate-store", f"sqlite:///{cli.folder / 'oraculo.db'}", url)
    assert told["to"].rpartition("@")[2] == url.rpartition("@")[2]  # the name of the user is hidden
    assert told["tables"]["runs"] == 1 and told["tables"]["journal"] > 1
    assert all(step["confere"] is True for step in alone.json("replay", "r1", ORACULO_STORE=url))
    await sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = off")
    found = {one["name"]: one for one in alone.json("doctor", ORACULO_STORE=url)["checks"]}
    assert found["durability"]["level"] == "warning" and found["orchestrations"]["detail"] == "1 concluida"
    assert found["members"]["detail"].startswith("none")
    assert alone.json("prune", "--older-than", "0s", "--yes", ORACULO_STORE=url)["removed"] == 1


def test_doctor_looks_at_mongodb(alone: Cli) -> None:
    def audit(url: str, code: int = 0) -> dict[str, str]:
        checks = alone.json("doctor", code=code, MONGODB_URI=url, MONGODB_MIN_POOL_SIZE="0")["checks"]
        (found,) = [one for one in checks if one["name"] == "audit"]
        assert "segredo" not in str(checks)
        return found

    assert audit(mongo.url())["level"] == "ok"
    assert audit("mongodb://ana:segredo@127.0.0.1:9/?serverSelectionTimeoutMS=100")["level"] == "warning"
    assert audit("mongodb://ana:segredo@h:x/", code=1)["level"] == "broken"


def test_doctor_says_that_postgresql_cannot_be_reached(alone: Cli) -> None:
    found = alone.json("doctor", code=1, ORACULO_STORE="postgresql://ana:segredo@127.0.0.1:9/x")
    (store,) = [one for one in found["checks"] if one["name"] == "store"]
    assert store["level"] == "broken" and store["fix"] and "segredo" not in str(found)


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"ORACULO_PORT": "x"}, "settings"),
        ({"ORACULO_HOST": "0.0.0.0"}, "api key"),
        ({"ORACULO_STORE": "sqlite:////usr"}, "store"),
    ],
)
def test_doctor_names_the_problem_and_its_fix(alone: Cli, env: dict[str, str], name: str) -> None:
    found = alone.json("doctor", code=1, **env)
    wrong = [one for one in found["checks"] if one["level"] == "broken"]
    assert [one["name"] for one in wrong] == [name]
    assert wrong[0]["fix"]


def test_doctor_says_when_the_database_is_broken(alone: Cli) -> None:
    (alone.folder / "oraculo.db").write_bytes(b"no database" * 500)
    assert alone("doctor").returncode == 1


def test_doctor_wants_the_server_that_was_named(alone: Cli) -> None:
    assert alone("doctor", "--url", "http://127.0.0.1:1").returncode == 1
