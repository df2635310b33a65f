"""Apache Kafka: one process that is broker and controller (KRaft). Beside it librdkafka's imitation of a cluster."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.servers import kafka_jars
from tools.servers.server import Server, free_port, listens

CLUSTER = "oraculo-kafka-tests-00"  # any 22 characters
JAVA = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={data}
num.network.threads=2
num.io.threads=4
num.partitions=1
default.replication.factor=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=2097152
log.index.size.max.bytes=65536
controlled.shutdown.enable=false
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=250
"""

LOGGING = """\
Configuration:
  status: error
  Appenders:
    Console: {name: out, PatternLayout: {pattern: "%d %p %m (%c)%n"}}
  Loggers:
    Root: {level: warn, AppenderRef: [{ref: out}]}
"""


class Kafka(Server):
    """`settings` are lines of server.properties that come after ours, and so win."""

    name = "kafka"

    def __init__(self, folder: Path, port: int | None = None, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, port)
        self.settings = settings or {}
        self._controller = free_port()
        self._archive = f"-XX:SharedArchiveFile={_archive()}"

    @classmethod
    def missing(cls) -> str | None:
        """Fetches the jars when they are not here yet."""
        java = shutil.which("java")
        if java is None:
            return "Apache Kafka needs Java 17 or newer, and there is none"
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        found = re.search(r'version "(\d+)', said)
        if found is None or int(found[1]) < 17:
            return f"Apache Kafka needs Java 17 or newer, not {said.splitlines()[0] if said else 'this one'}"
        try:
            kafka_jars.fetch()
        except kafka_jars.JarsMissingError as error:
            return str(error)
        return None

    @classmethod
    def version(cls) -> str:
        return kafka_jars.version()

    @classmethod
    def prepare(cls) -> None:
        """Once for this version: an archive of its classes, with which it starts in half the time."""
        if _archive().exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            server = cls(Path(folder) / "server")
            made = _archive().with_suffix(f".{os.getpid()}")
            server._archive = f"-XX:ArchiveClassesAtExit={made}"
            server.start().stop(patience=120)
            made.rename(_archive())

    def command(self) -> list[str]:
        data = self.folder / "data"
        ours = PROPERTIES.format(port=self.port, controller=self._controller, data=data)
        theirs = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        properties = self.folder / "server.properties"
        properties.write_text(ours + theirs)
        (self.folder / "log4j2.yaml").write_text(LOGGING)
        if not (data / "meta.properties").exists():
            self._format(properties)
        java, *arguments = self._java("kafka.Kafka", str(properties))
        return [java, self._archive, *arguments]

    @property
    def url(self) -> str:
        return f"kafka://127.0.0.1:{self.port}"

    def _format(self, properties: Path) -> None:
        """As `kafka-storage.sh format` does. What it writes knows neither folder nor port, so it is made once and
        copied: a virtual machine less to wait for."""
        kept = kafka_jars.home() / "formatted"
        if not kept.exists():
            command = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(properties))
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
            part = kept.with_name(f"formatted-{os.getpid()}")
            shutil.copytree(self.folder / "data", part)
            with contextlib.suppress(OSError):  # another process was quicker
                part.rename(kept)
            shutil.rmtree(part, ignore_errors=True)
        else:
            shutil.copytree(kept, self.folder / "data", dirs_exist_ok=True)

    def _java(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"
        return ["java", *JAVA, logging, "-cp", f"{kafka_jars.fetch()}/*", main, *arguments]


def _archive() -> Path:
    return kafka_jars.home() / "classes.jsa"


MOCK = """\
import sys, time, confluent_kafka as k
producer = k.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
open("port", "w").write(str(broker.port))
while True:
    time.sleep(60)
"""


class MockKafka(Server):
    """librdkafka's mock cluster in a process of its own, where there is no Java. It speaks the protocol and keeps all
    in memory, on a port that it chooses: good for publishing and fetching, no evidence of durability."""

    name = "mock-kafka"

    @classmethod
    def missing(cls) -> str | None:
        if importlib.util.find_spec("confluent_kafka") is None:
            return "confluent-kafka is not installed"
        return None

    @classmethod
    def version(cls) -> str:
        return "mock"

    def command(self) -> list[str]:
        (self.folder / "port").unlink(missing_ok=True)
        return [sys.executable, "-c", MOCK]

    def answers(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            self.port = int((self.folder / "port").read_text())
            return listens(self.port)
        return False

    @property
    def url(self) -> str:
        return f"kafka://127.0.0.1:{self.port}"
