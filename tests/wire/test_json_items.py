"""A list cut into its items has the items that reading it whole has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oraculo.errors import WireError
from oraculo.wire.json_items import split_items

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["[", "]", "{", '\\"', "a,b", "\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def items(raw: bytes) -> list[bytes]:
    return [item for item in split_items(raw) if item is not None]


@given(st.lists(values, max_size=6), st.sampled_from([None, 1]), st.booleans())
def test_the_items_are_those_of_the_list(given_list: list[Any], indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(given_list, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert [json.loads(item.decode("utf-8", "surrogatepass")) for item in items(b" \n" + raw + b"\t")] == given_list


@pytest.mark.parametrize("raw", [b"", b"{}", b"[", b"[1", b'["a]', b"[1]]", b"[1] x", b"[1}", b'[{"a":[}]'])
def test_what_is_no_list_is_refused_here_or_by_the_reader_of_its_items(raw: bytes) -> None:
    with pytest.raises((WireError, ValueError)):
        for item in items(raw):
            json.loads(item)


def test_an_item_that_is_missing_is_there_for_its_reader_to_refuse() -> None:
    assert items(b"[1,,2]") == [b"1", b"", b"2"]
    assert items(b"[1,]") == [b"1", b""]


@pytest.mark.parametrize("shape", [b"[]", b'""', b"0", b'"' + b"x" * 1000 + b'"'])
def test_others_have_their_turn_while_a_long_list_is_cut(shape: bytes) -> None:
    raw = b"[" + b",".join([shape] * (4_000_000 // (len(shape) + 1))) + b"]"
    pauses = sum(item is None for item in split_items(raw))
    assert pauses >= 10
