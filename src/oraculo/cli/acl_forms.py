"""Users of a broker with the least rights that the orchestrator and its workers need, in the server's own form.

Every queue is named: a server whose users may use whatever begins with `escavador_` cannot tell two workers apart. The
rights are those that the adapters use (docs/brokers), and tests log in with them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, tenant_of
from oraculo.wire import names

ORCHESTRATOR = "oraculo"
WORKER_PREFIX = "trabalhador_"
GROUP = "oraculo"


@dataclass(frozen=True, slots=True)
class BrokerUser:
    """A user with its password, and what it may do. `takes`: queues that it consumes, made by it where they are
    missing; `gives`: queues that it may only write to; `makes`: those of them that it may make."""

    name: str
    password: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    makes: tuple[str, ...]

    @property
    def uses(self) -> tuple[str, ...]:
        """Every queue, once."""
        return tuple(dict.fromkeys((*self.takes, *self.gives)))


def users_of(queues: Sequence[str], notices: Sequence[str] = (), topics: Sequence[str] = ()) -> list[BrokerUser]:
    """The orchestrator, and one worker for each queue. `notices` are queues that notices of the end go to, `topics`
    those of Fluxo C."""
    tenants = dict.fromkeys((DEFAULT_TENANT, *map(tenant_of, queues)))
    read = tuple(in_tenant(tenant, queue) for tenant in tenants for queue in (names.RESULTS, names.REQUESTS))
    own = (*read, names.PROBE, *topics)
    dead = tuple(names.dead_letter_queue(queue) for queue in (*queues, *read, *topics))
    sent = (*queues, *notices, *dead)
    users = [BrokerUser(ORCHESTRATOR, _password(), own, sent, sent)]
    for queue in queues:
        letters = names.dead_letter_queue(queue)
        gives = (in_tenant(tenant_of(queue), names.RESULTS), letters)
        name = WORKER_PREFIX + queue.replace(".", "~")  # one part of a subject of NATS
        users.append(BrokerUser(name, _password(), (queue, names.PROBE), gives, (letters,)))
    return users


def _password() -> str:
    return secrets.token_urlsafe(24)


# -- RabbitMQ ----------------------------------------------------------------------------------------------------------


def rabbitmq(users: Sequence[BrokerUser], vhost: str = "/") -> str:
    """Definitions for `rabbitmqctl import_definitions`, with hashed passwords."""
    document = {
        "vhosts": [{"name": vhost}],
        "users": [
            {
                "name": user.name,
                "password_hash": _rabbitmq_hash(user.password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": [],
                "limits": {},
            }
            for user in users
        ],
        "permissions": [_rabbitmq_rights(user, vhost) for user in users],
    }
    return json.dumps(document, indent=2) + "\n"


def _rabbitmq_rights(user: BrokerUser, vhost: str) -> dict[str, str]:
    """A user that may write to the default exchange may write to every queue of the virtual host: that is AMQP's."""
    return {
        "user": user.name,
        "vhost": vhost,
        "configure": _pattern(user.takes + user.makes),
        "write": _pattern((*user.takes, *user.makes, "amq.default")),
        "read": _pattern((*user.takes, *(("amq.direct",) if user.name == ORCHESTRATOR else ()))),
    }


def _pattern(queues: Sequence[str]) -> str:
    return f"^({'|'.join(re.escape(queue) for queue in dict.fromkeys(queues))})$"


def _rabbitmq_hash(password: str) -> str:
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


# -- Redis -------------------------------------------------------------------------------------------------------------

_REDIS_ALWAYS = "+ping +client|setname +client|id +client|unblock +info +time +wait"
_REDIS_STREAM = (
    "+xadd +xreadgroup +xack +xclaim +xpending +xrange +xlen +xtrim +xdel +xinfo|groups +xinfo|consumers +xgroup"
)


def redis(users: Sequence[BrokerUser]) -> str:
    """Lines of an ACL file for Redis 7 or newer, with hashed passwords. The user `default`, who needs none, is off."""
    return "user default off\n" + "".join(_redis_line(user) for user in users)


def _redis_line(user: BrokerUser) -> str:
    """The orchestrator looks after the queues that it writes to; a worker adds to them and nothing else."""
    digest = hashlib.sha256(user.password.encode()).hexdigest()
    worker = user.name != ORCHESTRATOR
    keys = user.takes if worker else user.uses
    line = f"user {user.name} on #{digest} resetchannels -@all {_REDIS_ALWAYS} {_REDIS_STREAM} {_keys(keys)}"
    return f"{line} (+xadd {_keys(user.gives)})\n" if worker else f"{line}\n"


def _keys(queues: Sequence[str]) -> str:
    return " ".join("~" + re.sub(r"([*?\[\]\\])", r"\\\1", queue) for queue in queues)


# -- NATS --------------------------------------------------------------------------------------------------------------


def nats(users: Sequence[BrokerUser]) -> str:
    """The block `authorization` of the server's configuration. NATS hashes passwords with bcrypt only, so they are in
    clear here. MissingExtraError: the adapter, which knows the names of streams, is not installed."""
    from oraculo.adapters.brokers.nats_jetstream.streams import name_of

    def rights(user: BrokerUser) -> dict[str, Any]:
        taken = [name_of(queue) for queue in user.takes]
        used = [name_of(queue) for queue in user.uses]
        kept = taken if user.name != ORCHESTRATOR else used  # streams whose old messages it removes
        made = [name_of(queue) for queue in (*user.takes, *user.makes)]
        publish = [
            *user.uses,
            "$JS.API.INFO",
            "$JS.API.STREAM.NAMES",
            *(f"$JS.API.STREAM.CREATE.{stream}" for stream in made),
            *(f"$JS.API.{verb}.{stream}" for stream in used for verb in ("STREAM.INFO", "CONSUMER.LIST")),
            *(f"$JS.API.CONSUMER.INFO.{stream}.*" for stream in used),
            *(f"$JS.API.{verb}.{stream}" for stream in kept for verb in ("STREAM.PURGE", "STREAM.MSG.GET")),
            *(f"$JS.API.CONSUMER.{verb}.{stream}.{GROUP}" for stream in taken for verb in ("CREATE", "MSG.NEXT")),
            *(f"$JS.ACK.{stream}.{GROUP}.>" for stream in taken),
        ]
        return {"publish": {"allow": publish}, "subscribe": {"allow": [f"_INBOX.{user.name}.>"]}}

    entries = [{"user": user.name, "password": user.password, "permissions": rights(user)} for user in users]
    return f"authorization: {json.dumps({'users': entries}, indent=2)}\n"
