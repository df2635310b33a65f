"""The jars of Apache Kafka, from Maven Central, each checked against the hash that kafka_jars.txt pins.

    python -m tools.servers.kafka_jars     fetches what is missing, says where it is, and prepares it for quick starts

kafka_jars.txt is the flat list of org.apache.kafka:kafka_2.13 with its runtime dependencies and the log4j binding that
its log needs, `group:artifact:version sha256` a line. The jars go to `.services/kafka/<version>/jars`;
MAVEN_CENTRAL_URL names another repository to take them from, ORACULO_SERVICES another folder than `.services` to keep
them in.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CENTRAL = "https://repo.maven.apache.org/maven2"
LIST = Path(__file__).with_suffix(".txt")
PATIENCE = 60.0  # seconds that the repository may be silent


class JarsMissingError(Exception):
    """They are not here and could not be fetched."""


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file}"


def pinned() -> list[Jar]:
    jars = []
    for line in LIST.read_text().splitlines():
        name, sha256 = line.split()
        group, artifact, version = name.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return jars


def version() -> str:
    return next(jar.version for jar in pinned() if jar.artifact == "kafka_2.13")


def home() -> Path:
    """Where everything of this version is kept."""
    kept = os.environ.get("ORACULO_SERVICES") or Path(__file__).parents[2] / ".services"
    return Path(kept) / "kafka" / version()


def fetch() -> Path:
    """Return the folder of the jars; missing ones are fetched, by one process at a time."""
    folder = home() / "jars"
    if _complete(folder):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with open(home() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = [jar for jar in pinned() if not (folder / jar.file).exists()]
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda jar: _fetch(jar, folder), wanted))
        except OSError as error:
            raise JarsMissingError(f"the jars of Apache Kafka cannot be fetched: {error}") from error
    return folder


def _complete(folder: Path) -> bool:
    """A jar is moved here only after its hash was checked, so its name is enough."""
    return all((folder / jar.file).exists() for jar in pinned())


def _fetch(jar: Jar, folder: Path) -> None:
    base = os.environ.get("MAVEN_CENTRAL_URL", CENTRAL).rstrip("/")
    with urllib.request.urlopen(f"{base}/{jar.path}", timeout=PATIENCE) as answer:
        body = answer.read()
    if hashlib.sha256(body).hexdigest() != jar.sha256:
        raise JarsMissingError(f"{jar.file} is not the file that {LIST.name} pins")
    part = folder / f"{jar.file}.part"
    part.write_bytes(body)
    part.rename(folder / jar.file)


if __name__ == "__main__":
    from tools.servers.kafka import Kafka

    try:
        print(fetch())  # noqa: T201
    except JarsMissingError as error:
        sys.exit(str(error))
    if Kafka.missing() is None:
        Kafka.prepare()
