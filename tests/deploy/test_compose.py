"""compose.yaml as Docker Compose reads it: profiles, dependencies, and settings that Oráculo takes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools.servers.compose import program

from oraculo.settings.settings import load
from servers import use

ROOT = Path(__file__).parents[2]
ALONE = {"oraculo"}
PROFILES = {
    "brokers": {"rabbitmq", "redis", "nats", "kafka"},
    "fluxo-c": {"kafka", "postgres", "mongodb", "redis", "temporal", "opa", "migrate", "topics"},
    "observability": {"prometheus", "grafana", "alertmanager", "jaeger"},
    "elk": {"elasticsearch", "elk-template", "logstash", "filebeat", "kibana"},
    "workers": {"worker"},
}
SERVERS = ("POSTGRES", "MONGODB", "RABBITMQ", "REDIS", "NATS", "GRAFANA")
ASKED_FOR = ("ORACULO_API_KEY", *(f"{name}_PASSWORD" for name in SERVERS))
ENDS = {"migrate", "topics", "elk-template"}  # they run once


def compose(*arguments: str) -> subprocess.CompletedProcess[str]:
    use("compose")
    clean = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    command = [str(program().path), "--file", str(ROOT / "compose.yaml"), *arguments]
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What init-env.sh writes."""
    folder = tmp_path_factory.mktemp("compose")
    (folder / "deploy/compose").mkdir(parents=True)
    script = folder / "deploy/compose/init-env.sh"
    script.write_text((ROOT / "deploy/compose/init-env.sh").read_text())
    (folder / ".env.example").write_text((ROOT / ".env.example").read_text())
    subprocess.run(["sh", str(script)], check=True, capture_output=True)
    return folder / ".env"


def project(secrets: Path, *arguments: str) -> dict[str, Any]:
    done = compose("--env-file", str(secrets), *arguments)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def everything(secrets: Path) -> dict[str, Any]:
    services: dict[str, Any] = project(secrets, *(f"--profile={name}" for name in PROFILES))["services"]
    return services


class TestSecrets:
    def test_without_values_it_says_which_are_missing_and_how_to_get_them(self) -> None:
        done = compose("--env-file", str(ROOT / ".env.example"))
        assert done.returncode == 1
        for name in ASKED_FOR:
            assert f"required variable {name} is" in done.stderr
        assert "run deploy/compose/init-env.sh" in done.stderr

    def test_the_script_makes_all_of_them_random_and_unreadable_to_others(self, secrets: Path) -> None:
        lines = secrets.read_text().splitlines()
        made = dict(line.split("=", 1) for line in lines if line and line[0] != "#")
        assert set(made) == {*ASKED_FOR, "POSTGRES_SUPERUSER_PASSWORD"}
        assert len(set(made.values())) == len(made)
        assert all(len(value) == 48 for value in made.values())
        assert secrets.stat().st_mode & 0o077 == 0

    def test_the_script_leaves_an_existing_file_alone(self, secrets: Path) -> None:
        before = secrets.read_text()
        script = secrets.parent / "deploy/compose/init-env.sh"
        done = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert ".env exists already" in done.stderr
        assert secrets.read_text() == before

    def test_a_file_of_an_earlier_release_is_enough(self, secrets: Path, tmp_path: Path) -> None:
        """It has no superuser of PostgreSQL, and its volume needs none."""
        earlier = tmp_path / ".env"
        lines = secrets.read_text().splitlines(keepends=True)
        earlier.write_text("".join(line for line in lines if "SUPERUSER" not in line))
        environment = project(earlier, "--profile=fluxo-c")["services"]["postgres"]["environment"]
        assert environment["POSTGRES_PASSWORD"] == "", "with which the image makes no new volume"

    def test_no_password_is_written_into_a_file_of_the_repository(self, secrets: Path) -> None:
        for name, service in everything(secrets).items():
            for key, value in (service.get("environment") or {}).items():
                if key.endswith(("PASSWORD", "_PASS", "_PWD", "AUTH", "API_KEY")):
                    assert value in secrets.read_text(), f"{key} of {name}"


class TestProfiles:
    def test_alone_it_is_one_service(self, secrets: Path) -> None:
        assert set(project(secrets)["services"]) == ALONE

    @pytest.mark.parametrize("profile", PROFILES)
    def test_a_profile_adds_its_servers(self, secrets: Path, profile: str) -> None:
        assert set(project(secrets, f"--profile={profile}")["services"]) == ALONE | PROFILES[profile]

    @pytest.mark.parametrize("path", sorted((ROOT / "deploy/compose").glob("*.env")), ids=lambda path: path.stem)
    def test_an_environment_file_makes_settings_that_oraculo_takes(self, secrets: Path, path: Path) -> None:
        found = project(secrets, "--env-file", str(path))["services"]
        for name in ("oraculo", "migrate", "topics"):
            if name in found:
                chosen = load({**found[name]["environment"], "ORACULO_HOST": "0.0.0.0"}, None)
        hosts = {"amqp": "rabbitmq", "redis": "redis", "nats": "nats", "kafka": "kafka"}
        for url in chosen.broker.split(","):
            scheme = url.partition("://")[0]
            assert scheme == "memory" or hosts[scheme] in found, f"{scheme} has no server in this profile"

    def test_fluxo_c_is_wired_to_every_server_of_its_profile(self, secrets: Path) -> None:
        found = project(secrets, "--env-file", str(ROOT / "deploy/compose/fluxo-c.env"))["services"]
        chosen = load(found["oraculo"]["environment"], None)
        assert chosen.takes_plans
        assert chosen.engine == "temporal"
        assert chosen.store.startswith("postgresql://oraculo:")
        assert "@postgres:5432/oraculo" in chosen.store
        for text, server in (
            (chosen.kafka.servers, "kafka:9092"),
            (chosen.mongodb.uri, "@mongodb:27017"),
            (chosen.cache.url, "@redis:6379"),
            (chosen.temporal.host, "temporal"),
        ):
            assert server in text

    def test_oraculo_and_temporal_are_not_the_superuser_of_postgresql(self, secrets: Path) -> None:
        found = project(secrets, "--env-file", str(ROOT / "deploy/compose/fluxo-c.env"))["services"]
        given = dict(line.split("=", 1) for line in secrets.read_text().splitlines() if line[:1].isupper())
        server, temporal = (found[name]["environment"] for name in ("postgres", "temporal"))
        assert (server["POSTGRES_USER"], server["POSTGRES_PASSWORD"]) == (
            "postgres",
            given["POSTGRES_SUPERUSER_PASSWORD"],
        )
        assert (temporal["POSTGRES_USER"], temporal["POSTGRES_PWD"]) == ("oraculo", given["POSTGRES_PASSWORD"])
        assert server["ORACULO_PASSWORD"] == given["POSTGRES_PASSWORD"]
        others = {name: one for name, one in found.items() if name != "postgres"}
        assert given["POSTGRES_SUPERUSER_PASSWORD"] not in json.dumps(others)
        scripts = [one["source"] for one in found["postgres"]["volumes"] if "initdb.d" in one["target"]]
        assert [Path(one).name for one in scripts] == ["role.sql"]

    def test_any_other_setting_comes_from_a_file_of_its_own(self, secrets: Path, tmp_path: Path) -> None:
        own, chosen = tmp_path / "own.env", tmp_path / "chosen.env"
        own.write_text("ORACULO_MAX_OPEN=77\nORACULO_API_KEY=not-this-one\n")
        chosen.write_text(f"SETTINGS_FILE={own}\n")
        found = project(secrets, "--env-file", str(chosen), "--profile=fluxo-c")["services"]
        for name in ("oraculo", "migrate", "topics"):
            known = load({**found[name]["environment"], "ORACULO_HOST": "0.0.0.0"}, None)
            assert known.max_open == 77
            assert known.api_key in secrets.read_text(), "what compose.yaml says itself wins"

    def test_the_example_of_that_file_has_settings_that_oraculo_takes(self, tmp_path: Path) -> None:
        lines = (ROOT / "deploy/compose/oraculo.env.example").read_text().splitlines()
        given = dict(line[1:].split("=", 1) for line in lines if line.startswith("#ORACULO_"))
        for name in ("ORACULO_TLS_CERT", "ORACULO_TLS_KEY"):
            (tmp_path / name).touch()
            given[name] = str(tmp_path / name)
        known = load(given, None)
        assert known.unknown == ()
        assert (known.oidc.client_id, known.result_tokens) == ("oraculo", "accept")

    def test_a_report_of_a_worker_is_where_the_dashboard_looks(self, secrets: Path) -> None:
        found = everything(secrets)
        known = load({**found["oraculo"]["environment"], "ORACULO_HOST": "0.0.0.0"}, None)
        folder = found["worker"]["environment"]["ORACULO_RELATORIOS"]
        assert known.artefatos == folder
        mounted = {
            name: {one["target"]: one["source"] for one in found[name]["volumes"]} for name in ("oraculo", "worker")
        }
        assert mounted["oraculo"][folder] == mounted["worker"][folder]

    def test_a_worker_has_no_password_but_its_key(self, secrets: Path) -> None:
        made = {line.partition("=")[2] for line in secrets.read_text().splitlines() if line[:1].isupper()}
        given = everything(secrets)["worker"]["environment"]
        assert {name for name, value in given.items() if value in made} == {"ORACULO_API_KEY"}


class TestServices:
    def test_every_server_says_whether_it_is_well(self, secrets: Path) -> None:
        silent = {
            name
            for name, service in everything(secrets).items()
            if name not in ENDS and (service.get("healthcheck") or {}).get("disable", "healthcheck" not in service)
        }
        assert silent == {"worker"}, "a worker has no port; it is seen in GET /api/v1/workers"

    def test_nothing_is_published_beyond_loopback(self, secrets: Path) -> None:
        ports = [port for service in everything(secrets).values() for port in service.get("ports") or ()]
        assert len(ports) > 10
        assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
        assert len({port["published"] for port in ports}) == len(ports)

    def test_what_is_kept_is_on_a_volume(self, secrets: Path) -> None:
        whole = project(secrets, *(f"--profile={name}" for name in PROFILES))
        used = {
            mount["source"]
            for service in whole["services"].values()
            for mount in service.get("volumes") or ()
            if mount["type"] == "volume"
        }
        assert used == set(whole["volumes"])
        mounts = {
            ROOT / mount["source"]
            for service in whole["services"].values()
            for mount in service.get("volumes") or ()
            if mount["type"] == "bind" and not mount["source"].startswith("/var/lib/docker")
        }
        assert mounts
        assert [path for path in mounts if not path.exists()] == []

    def test_oraculo_can_write_nowhere_else_and_has_time_to_stop(self, secrets: Path) -> None:
        from oraculo.cli.serve import STOP_TIMEOUT_S

        for name in ("oraculo", "worker"):
            service = everything(secrets)[name]
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert float(service["stop_grace_period"].removesuffix("s")) > STOP_TIMEOUT_S

    def test_images_are_pinned(self, secrets: Path) -> None:
        for name, service in everything(secrets).items():
            _, _, tag = service["image"].rpartition(":")
            assert tag not in ("", "latest") and "/" not in tag, name
