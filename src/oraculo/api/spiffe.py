"""SPIFFE identities: workloads that are known by the URI in their certificate (X.509-SVID), without a key.

Which identities there are, and what each may do, is in a file of the operator's. The certificate was checked against
the bundle of the trust domain before anything here is asked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from oraculo.client.watched_files import WatchedFiles
from oraculo.core.access import AccessRole, Actor, actor_of_key
from oraculo.core.tenants import DEFAULT_TENANT, is_tenant
from oraculo.errors import SettingsError

log = structlog.get_logger("oraculo.api")

SETTING: Final = "ORACULO_SPIFFE_IDENTITIES"
_ID_MAX_CHARS: Final = 2048
_SEGMENT: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]+"
_ID: Final = re.compile(rf"spiffe://[a-z0-9._-]{{1,255}}(?:/{_SEGMENT})+")
_FIELDS: Final = {"id": str, "role": str, "tenant": str, "queues": list}


def is_spiffe_id(text: str) -> bool:
    """True if it is the id of a workload; an authority's own id has no path."""
    return len(text) <= _ID_MAX_CHARS and _ID.fullmatch(text) is not None


def id_of(certificate: Mapping[str, Any] | None) -> str | None:
    """The SPIFFE ID of a certificate as `ssl` shows it: its only URI. None when it has none, or several."""
    names = () if certificate is None else certificate.get("subjectAltName", ())
    found = [value for kind, value in names if kind == "URI"]
    return found[0] if len(found) == 1 and is_spiffe_id(found[0]) else None


class SpiffeIdentities:
    """Id → actor, from a file that is read again when it changes. A file that cannot be used is a SettingsError at the
    start; later, it leaves things as they were."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = WatchedFiles([path])
        self._actors = _read(path)

    def actor_of(self, id: str) -> Actor | None:
        """The actor of a SPIFFE ID; None when it is not in the file."""
        try:
            self._files.renew(self._again)
        except SettingsError as error:
            log.warning("identities not read again", error=str(error))
        return self._actors.get(id)

    def _again(self) -> None:
        self._actors = _read(self._path)
        log.info("identities read again", file=self._path, identities=len(self._actors))


def _read(path: str) -> dict[str, Actor]:
    try:
        document = tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise SettingsError(SETTING, path, f"a file that can be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(SETTING, path, f"a TOML file: {error}") from None
    entries = document.pop("identity", [])
    if document or not isinstance(entries, list):
        raise SettingsError(SETTING, path, "a TOML file with tables [[identity]] and nothing else")
    actors: dict[str, Actor] = {}
    for number, entry in enumerate(entries, 1):
        actor = _actor(path, number, entry)
        if actor.id in actors:
            raise SettingsError(SETTING, path, f"identities that are there once: {actor.id} is there twice")
        actors[actor.id] = actor
    return actors


def _actor(path: str, number: int, entry: Any) -> Actor:
    def needs(what: str) -> SettingsError:
        return SettingsError(SETTING, path, f"identity {number}: {what}")

    if not isinstance(entry, dict) or not entry.keys() <= _FIELDS.keys():
        raise needs(f"a table with {', '.join(_FIELDS)} and nothing else")
    wrong = [name for name, value in entry.items() if not isinstance(value, _FIELDS[name])]
    if wrong:
        raise needs(f"{wrong[0]} is a {'list of texts' if wrong[0] == 'queues' else 'text'}")
    id, tenant, queues = entry.get("id", ""), entry.get("tenant", DEFAULT_TENANT), entry.get("queues", [])
    if not is_spiffe_id(id):
        raise needs("id is a SPIFFE ID with a path: spiffe://domain/path")
    if entry.get("role") not in list(AccessRole):
        raise needs(f"role is one of {', '.join(AccessRole)}")
    if not is_tenant(tenant):
        raise needs("tenant is the name of a tenant")
    role = AccessRole(entry["role"])
    if (role is AccessRole.TRABALHADOR) is not bool(queues):
        raise needs("queues are named for trabalhador, and for no other role")
    if not all(isinstance(queue, str) for queue in queues):
        raise needs("queues is a list of texts")
    return actor_of_key(id, role, tenant, queues)
