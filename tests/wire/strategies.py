"""Values by chance: JSON that we accept, and envelopes that are right, nearly right and wrong."""

from __future__ import annotations

import string
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

bounded = settings(deadline=None, derandomize=True, max_examples=100)

# What strict_json accepts: no U+0000, no surrogates, 64-bit integers, finite numbers.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXT, JSON, max_size=4)
NAMES = st.text(string.ascii_letters + string.digits + "_.-", min_size=1, max_size=20).filter(
    lambda text: text[0] not in "_.-"
)

EVENTS = st.sampled_from(["iniciar_coleta", "resultado_coleta", "iniciar_execucao", "resultado_execucao"])
INSTANTS = st.one_of(
    st.datetimes().map(lambda at: at.isoformat(timespec="microseconds") + "Z"),
    st.builds(
        lambda at, zone: at.isoformat(timespec="seconds") + zone,
        st.datetimes(),
        st.sampled_from(["Z", "+00:00", "-03:00", "+05:30", "-23:59", "+23:59"]),
    ),
)
NEARLY_INSTANTS = st.one_of(
    INSTANTS,
    st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?(Z|[+-][0-9]{2}:[0-9]{2}|)\Z"),
    st.builds(lambda at, junk: at + junk, INSTANTS, st.sampled_from(["\n", " ", "Z", "\u0660"])),
)  # fmt: skip
ERRORS = st.one_of(
    st.none(), TEXT, OBJECTS, st.lists(st.one_of(TEXT, OBJECTS), max_size=3), st.lists(SCALARS, max_size=2), SCALARS
)
PAYLOADS = st.one_of(
    OBJECTS,
    st.fixed_dictionaries(
        {},
        optional={
            "fonte": st.one_of(NAMES, SCALARS),
            "executador": st.one_of(NAMES, SCALARS),
            "status": st.one_of(st.sampled_from(["ok", "erro"]), JSON),
            "dados": JSON,
            "erros": ERRORS,
            "ticket_id": SCALARS,
            "tentativa": st.one_of(st.integers(-1, 3), st.just(1.0), SCALARS),
            "outro": JSON,
        },
    ),
)

ENVELOPES = st.fixed_dictionaries(
    {"correlation_id": TEXT.filter(bool), "tipo_evento": EVENTS, "payload": OBJECTS, "timestamp": INSTANTS},
    optional={
        "message_id": st.none() | TEXT,
        "ticket_id": st.none() | TEXT,
        "tentativa": st.none() | st.integers(1, 2**31),
        "prazo": st.none() | INSTANTS,
        "fila_resposta": st.none() | TEXT,
        "traceparent": st.none() | TEXT,
        "token": st.none() | TEXT,
        "campo_desconhecido": JSON,
    },
)
ANYTHING_LIKE_AN_ENVELOPE = st.one_of(
    ENVELOPES,
    st.fixed_dictionaries(
        {},
        optional={
            "correlation_id": st.one_of(TEXT, st.just("x" * 128), st.just("x" * 129), SCALARS),
            "tipo_evento": st.one_of(EVENTS, SCALARS),
            "payload": st.one_of(PAYLOADS, JSON),
            "timestamp": st.one_of(NEARLY_INSTANTS, SCALARS),
            "prazo": st.one_of(NEARLY_INSTANTS, SCALARS),
            "ticket_id": SCALARS,
            "tentativa": st.one_of(SCALARS, st.sampled_from([0, 1, 1.0, 1.5, 2**31, 2**31 + 1, True, 1e300])),
            "message_id": SCALARS,
            "token": SCALARS,
            "outro": JSON,
        },
    ),
    st.builds(
        lambda base, payload, extra: {**base, "payload": payload, **extra},
        ENVELOPES,
        PAYLOADS,
        st.fixed_dictionaries({}, optional={"ticket_id": SCALARS, "tentativa": SCALARS, "timestamp": NEARLY_INSTANTS}),
    ),
    JSON,
)
