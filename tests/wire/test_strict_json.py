"""JSON with strict limits: the whole list of inputs on which parsers disagree, and the limits themselves."""

from __future__ import annotations

import contextlib
import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import processor_time
from oraculo.errors import WireError
from oraculo.wire import strict_json
from oraculo.wire.strict_json import MAX_BYTES, MAX_DEPTH
from wire.strategies import JSON, bounded

REFUSED = {
    "a hundred thousand arrays": (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
    "a hundred thousand arrays, none closed": (b"[" * 100_000, "too_deep"),
    "a hundred thousand objects": (b'{"a":' * 100_000, "too_deep"),
    "one level too many": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "too_deep"),
    "one object too many": (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "too_deep"),
    "NaN": (b"NaN", "not_json"),
    "nan": (b"[nan]", "not_json"),
    "Infinity": (b"[Infinity]", "not_json"),
    "-Infinity": (b'{"a":-Infinity}', "not_json"),
    "1e400": (b"1e400", "number_out_of_range"),
    "1E+400": (b"[1E+400]", "number_out_of_range"),
    "-1e0400": (b'{"a":-1e0400}', "number_out_of_range"),
    "a double of 310 digits": (b"1" * 310 + b".5", "number_out_of_range"),
    "an integer of 5,000 digits": (b"1" * 5_000, "number_out_of_range"),
    "a negative one": (b"-" + b"1" * 5_000, "number_out_of_range"),
    "2^64": (b"18446744073709551616", "number_out_of_range"),
    "2^64+1, deep inside": (b'{"a":[{"b":18446744073709551617}]}', "number_out_of_range"),
    "-2^63-1": (b"-9223372036854775809", "number_out_of_range"),
    "a repeated key": (b'{"a":1,"a":2}', "duplicate_key"),
    "a repeated key with the same value": (b'{"a":1,"a":1}', "duplicate_key"),
    "a repeated key inside": (b'{"x":[{"a":1,"a":2}]}', "duplicate_key"),
    "a key repeated as an escape": (b'{"a":1,"\\u0061":2}', "duplicate_key"),
    "an escape repeated as a key": (b'{"x":{"\\u0061":1,"a":2}}', "duplicate_key"),
    "a repeated empty key": (b'{"":1,"":2}', "duplicate_key"),
    "a lone high surrogate": (b'"\\ud800"', "invalid_unicode"),
    "a lone low surrogate": (b'"\\udc00"', "invalid_unicode"),
    "a pair the wrong way round": (b'"\\ude00\\ud83d"', "invalid_unicode"),
    "a surrogate in a key": (b'{"\\ud800":1}', "invalid_unicode"),
    "a surrogate as bytes": (b'"\xed\xa0\x80"', "invalid_unicode"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "not_json"),
    "UTF-16": ("{}".encode("utf-16"), "not_json"),
    "Latin-1": ('"é"'.encode("latin-1"), "invalid_unicode"),
    "an overlong encoding": (b'"\xc0\x80"', "invalid_unicode"),
    "half a character": (b'"\xe2\x82"', "invalid_unicode"),
    "NUL as an escape": (b'"a\\u0000b"', "nul"),
    "NUL in a key": (b'{"a\\u0000":1}', "nul"),
    "NUL deep inside": (b'[[{"a":["\\u0000"]}]]', "nul"),
    "NUL as a byte in a string": (b'"a\x00b"', "not_json"),
    "NUL before": (b"\x00{}", "not_json"),
    "NUL after": (b"{}\x00", "not_json"),
    "a newline in a string": (b'"a\nb"', "not_json"),
    "one byte too many": (b'"' + b"a" * (MAX_BYTES - 1) + b'"', "too_large"),
    "ten megabytes": (b'"' + b"a" * 10_000_000 + b'"', "too_large"),
    "something after": (b"{} x", "not_json"),
    "two values": (b"{}{}", "not_json"),
    "nothing": (b"", "not_json"),
    "white space": (b" \n\t\r", "not_json"),
    "a trailing comma": (b"[1,]", "not_json"),
    "single quotes": (b"{'a':1}", "not_json"),
    "a comment": (b"{/*x*/}", "not_json"),
    "a leading zero": (b"01", "not_json"),
    "a plus": (b"+1", "not_json"),
    "no digit before the point": (b".5", "not_json"),
    "no digit after the point": (b"5.", "not_json"),
    "hexadecimal": (b"0x10", "not_json"),
    "a bare minus": (b"-", "not_json"),
    "a bare exponent": (b"1e", "not_json"),
    "a bad escape": (b'"\\x41"', "not_json"),
    "no end of the string": (b'"abc', "not_json"),
    "Python's True": (b"True", "not_json"),
    "a no-break space before": ("\u00a0{}".encode(), "not_json"),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "not_json"),
}

ACCEPTED: dict[str, tuple[bytes, Any]] = {
    "as deep as allowed": (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
    "many brackets, not deep": (b"[" + b",".join([b"[{}]"] * 100) + b"]", [[{}]] * 100),
    "brackets in a string": (b'"' + b"[{" * 1000 + b'"', "[{" * 1000),
    "2^64-1": (b"18446744073709551615", 2**64 - 1),
    "2^63": (b"9223372036854775808", 2**63),
    "-2^63": (b"-9223372036854775808", -(2**63)),
    "a long number in a string": (b'"18446744073709551616"', "18446744073709551616"),
    "a long number as a key": (b'{"18446744073709551616":1}', {"18446744073709551616": 1}),
    "1e400 in a string": (b'"1e400"', "1e400"),
    "a large double": (b"1.7976931348623157e308", 1.7976931348623157e308),
    "an underflow": (b"1e-400", 0.0),
    "a surrogate pair": (b'"\\ud83d\\ude00"', "😀"),
    "a backslash before u0000": (b'"a\\\\u0000b"', "a\\u0000b"),
    "keys that differ in normal form": ('{"é":1,"e\u0301":2}'.encode(), {"é": 1, "e\u0301": 2}),
    "keys that are special elsewhere": (
        b'{"__proto__":{"a":1},"constructor":2}',
        {"__proto__": {"a": 1}, "constructor": 2},
    ),
    "the same key in two objects": (b'[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
    "white space around": (b" {} \r\n\t", {}),
    "a line separator": ('"\u2028"'.encode(), "\u2028"),
    "right to left, zero width, escapes": ('"\u202e\u200b\\u001b[31m"'.encode(), "\u202e\u200b\x1b[31m"),
    "a bare scalar": (b"null", None),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    raw, code = REFUSED[what]
    with pytest.raises(WireError) as refused:
        strict_json.loads(raw)
    assert refused.value.code == code
    assert len(refused.value.detail) < 300


@pytest.mark.parametrize("what", ACCEPTED)
def test_accepted(what: str) -> None:
    raw, value = ACCEPTED[what]
    loaded = strict_json.loads(raw)
    if what != "as deep as allowed":
        assert loaded == value


def test_exactly_one_mebibyte() -> None:
    assert len(strict_json.loads(b'"' + b"a" * (MAX_BYTES - 2) + b'"')) == MAX_BYTES - 2


def test_as_many_keys_as_fit() -> None:
    raw = b"{" + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}"
    assert len(raw) < MAX_BYTES and len(strict_json.loads(raw)) == 90_000


def test_the_limit_of_size_can_be_moved() -> None:
    assert strict_json.loads(b'"' + b"a" * MAX_BYTES + b'"', max_bytes=2 * MAX_BYTES)


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_is_accepted_is_read_the_same_when_it_is_trusted(what: str) -> None:
    raw, _ = ACCEPTED[what]
    assert strict_json.loads_trusted(raw) == strict_json.loads(raw)


@pytest.mark.parametrize("what", REFUSED)
def test_trusted_bytes_give_a_value_or_a_wire_error_too(what: str) -> None:
    try:
        strict_json.loads_trusted(REFUSED[what][0])
    except WireError as error:
        assert error.code == "not_json"


def test_numbers_keep_their_type() -> None:
    one, real, zero = strict_json.loads(b"[1, 1.0, -0.0]")
    assert (type(one), type(real)) == (int, float)
    assert math.copysign(1, zero) == -1
    assert strict_json.dumps(strict_json.loads(b"[1,1.0,-0.0]")) == b"[1,1.0,-0.0]"


@given(JSON)
@bounded
def test_any_value_survives_dumps_and_loads(value: Any) -> None:
    assert strict_json.loads(strict_json.dumps(value)) == value
    assert strict_json.loads(strict_json.compact(value)) == value


@given(JSON)
@bounded
def test_a_kept_value_is_written_the_same_way_again(value: Any) -> None:
    """What a worker sent is kept as JSON text; reading the journal and writing it again changes nothing."""
    text = strict_json.dumps(value)
    assert strict_json.dumps(orjson.loads(text)) == text


@given(st.dictionaries(st.text("abc", max_size=3), JSON, max_size=5))
@bounded
def test_the_canonical_form_does_not_know_the_order_of_keys(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert strict_json.canonical(value) == strict_json.canonical(turned)


@given(st.binary(max_size=200))
@example(b"\\u0000")
@example(b'{"a":0000000000000000000}')
@example(b"[1e999")
@bounded
def test_any_bytes_give_a_value_or_a_wire_error(raw: bytes) -> None:
    try:
        strict_json.loads(raw)
    except WireError as error:
        assert error.code


@given(JSON, st.integers(0, 60), st.binary(min_size=1, max_size=3))
@bounded
def test_json_with_a_few_wrong_bytes_gives_a_value_or_a_wire_error(value: Any, where: int, junk: bytes) -> None:
    raw = strict_json.dumps(value)
    try:
        strict_json.loads(raw[:where] + junk + raw[where:])
    except WireError as error:
        assert error.code


def test_json_text_is_spliced_in_and_times_are_written_as_the_contract_says() -> None:
    written = strict_json.dumps(
        {
            "dados": b'{"a": [1]}',
            "em": datetime(2025, 10, 14, 12, tzinfo=UTC),
            "em_fracao": datetime(2025, 10, 14, 12, 0, 0, 250_000, tzinfo=UTC),
            "prazo": timedelta(milliseconds=1500),
        }
    )
    assert written == (
        b'{"dados":{"a": [1]},"em":"2025-10-14T12:00:00Z","em_fracao":"2025-10-14T12:00:00.250000Z","prazo":1.5}'
    )


def test_what_is_not_json_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        strict_json.dumps({"a": object()})


def _many(text: str) -> bytes:
    return f"[{','.join([text] * ((strict_json.MAX_BYTES - 2) // (len(text) + 1)))}]".encode()


@pytest.mark.parametrize(
    "raw",
    [
        *map(_many, ("0", "[]", "{}", '""', "1234567890123456789", "1e100", '"\\u0000"', '"\\\\u0000"', '{"a":0}')),
        *map(_many, ("[" * 60 + "]" * 60, "null", "0.1", '"\\u00e9"', '"[[[[{{{{"', '"\\""')),
        ("{" + ",".join(f'"{n}":0' for n in range(110_000)) + "}").encode(),
        ("{" + ",".join(f'"{n}":0' for n in range(99_000)) + "}").encode(),
        b"[" * 500_000 + b"]" * 500_000,
        b'"' + b"[{:" * 300_000 + b'"',
    ],
    ids=lambda raw: raw[:24].decode(),
)
def test_no_shape_of_a_mebibyte_holds_up_others(raw: bytes) -> None:

    def read() -> None:
        with contextlib.suppress(WireError):
            strict_json.loads(raw)

    assert processor_time.seconds(read, 0.15) < 0.15


def test_brackets_inside_of_texts_are_text() -> None:
    text = '[{:\\"' * 60_000
    assert strict_json.loads(strict_json.dumps([text])) == [text]


PAGE = (Path(__file__).parent.parent.parent / "docs" / "workers.md").read_text()
FORMS = re.findall(
    r"^\| `(.+)` \| (refused: )?`(.+)` \|$", PAGE.partition("## The form of JSON")[2].partition("\n## ")[0], re.M
)


@pytest.mark.parametrize(("sent", "refused", "expected"), FORMS)
def test_the_documented_form_of_json(sent: str, refused: str, expected: str) -> None:
    """docs/workers.md says what becomes of values; this is what does."""
    if refused:
        with pytest.raises(WireError) as caught:
            strict_json.loads(sent.encode())
        assert caught.value.code == expected
    else:
        passed = strict_json.compact(strict_json.loads(sent.encode()))
        assert passed == expected.encode()
        assert strict_json.compact(strict_json.loads(passed)) == passed, "the form is its own form"


def test_the_page_has_its_table() -> None:
    assert len(FORMS) >= 14
