"""Names of what belongs to tenants: no two have the same one inside, and each gets its own back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.core.tenants import DEFAULT_TENANT, in_tenant, is_tenant, local_name, queue_in, tenant_of

TENANTS = st.sampled_from([DEFAULT_TENANT, "acme", "a", "acme-2", "a_b", "0"])
NAMES = st.text(max_size=20) | st.builds("espaco_{}.{}".format, TENANTS, st.text(max_size=8)) | st.just("espaco_")


@given(TENANTS, NAMES)
def test_a_name_comes_back_as_it_was_given(tenant: str, name: str) -> None:
    inside = in_tenant(tenant, name)
    assert (tenant_of(inside), local_name(inside)) == (tenant, name)


@given(TENANTS, NAMES, TENANTS, NAMES)
def test_no_two_have_the_same_name(tenant: str, name: str, other: str, another: str) -> None:
    assert (in_tenant(tenant, name) == in_tenant(other, another)) == ((tenant, name) == (other, another))


@pytest.mark.parametrize("name", ["abc123", "a/b", "", "espaco_", "espaco_acme", "x.espaco_acme.y", "ESPACO_acme.a"])
def test_names_of_default_are_what_they_are(name: str) -> None:
    assert in_tenant(DEFAULT_TENANT, name) == name
    assert local_name(name) is name


def test_what_is_derived_from_a_name_is_of_its_tenant() -> None:
    for derived in ("espaco_acme.pai/filha", "espaco_acme.diario@2026-01-01T00:00:00Z", "espaco_acme.a~1"):
        assert tenant_of(derived) == "acme"


@pytest.mark.parametrize(
    ("tenant", "queue", "meant"),
    [
        ("default", "escavador_a", "escavador_a"),
        ("default", "espaco_acme.escavador_a", None),
        ("acme", "escavador_a", "espaco_acme.escavador_a"),
        ("acme", "espaco_acme.escavador_a", "espaco_acme.escavador_a"),
        ("acme", "espaco_outro.escavador_a", None),
    ],
)
def test_a_queue_is_the_one_that_its_tenant_means(tenant: str, queue: str, meant: str | None) -> None:
    assert queue_in(tenant, queue) == meant


@pytest.mark.parametrize(("text", "good"), [("acme", True), ("a" * 32, True), ("a" * 33, False), ("0-_", True)])
def test_what_a_tenant_may_be_called(text: str, good: bool) -> None:
    assert is_tenant(text) is good


@pytest.mark.parametrize("text", ["", "*", "Acme", "a.b", "-a", "_a", "a b", "a\n", "é"])
def test_what_a_tenant_may_not_be_called(text: str) -> None:
    assert not is_tenant(text)
