"""How long ended orchestrations are kept: an age for all, others for single types of tasks and tenants.

`30d, relatorio=7d, acme/*=90d, acme/relatorio=365d`: the most exact rule counts. What no rule names is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from oraculo.core.tenants import is_tenant

EVERY = "*"
HOUR = timedelta(hours=1)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGE = re.compile(r"(\d{1,9})([smhdw])")
_TIPO = re.compile(r"[A-Za-z0-9_.:-]{1,200}")


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """`tenant` and `tipo` may be EVERY."""

    tenant: str
    tipo: str
    age: timedelta


@dataclass(frozen=True, slots=True)
class RetentionRules:
    rules: tuple[RetentionRule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)

    @property
    def ages(self) -> list[timedelta]:
        """Each age that there is, the shortest first."""
        return sorted({one.age for one in self.rules})

    def age_of(self, tenant: str, tipo: str | None) -> timedelta | None:
        """How long an orchestration is kept after its end; None: for ever."""
        known = {(one.tenant, one.tipo): one.age for one in self.rules}
        for key in ((tenant, tipo or EVERY), (tenant, EVERY), (EVERY, tipo or EVERY), (EVERY, EVERY)):
            if key in known:
                return known[key]
        return None


def cutoff(now: datetime, age: timedelta) -> datetime:
    """The instant before which what has this age is forgotten. It moves in whole hours, or by the age if that is less,
    so that few instants have to be noted."""
    grain = min(age, HOUR).total_seconds()
    seconds = (now - age).timestamp()
    return datetime.fromtimestamp(seconds - seconds % grain, now.tzinfo)


def read_rules(text: str) -> RetentionRules:
    """Read rules; ValueError says which is wrong."""
    found: dict[tuple[str, str], RetentionRule] = {}
    for part in (one.strip() for one in text.split(",") if one.strip()):
        whom, _, written = part.rpartition("=")
        tenant, _, tipo = whom.strip().rpartition("/") if "/" in whom else (EVERY, "", whom.strip() or EVERY)
        age = _AGE.fullmatch(written.strip())
        if age is None or int(age[1]) == 0:
            raise ValueError(f"ages like 30d, 12h, 2w; {written.strip()!r} is none")
        if (tenant != EVERY and not is_tenant(tenant)) or (tipo != EVERY and not _TIPO.fullmatch(tipo)):
            raise ValueError(f"AGE, TYPE=AGE, TENANT/*=AGE or TENANT/TYPE=AGE; {part!r} is none of them")
        if (tenant, tipo) in found:
            raise ValueError(f"each type and tenant once; {part!r} is there twice")
        found[tenant, tipo] = RetentionRule(tenant, tipo, timedelta(seconds=int(age[1]) * _UNIT_SECONDS[age[2]]))
    return RetentionRules(tuple(found.values()))
