"""Plans as text: the line and column of every fault, what YAML words mean, limits, and agreement with the API."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml

from oraculo.errors import WireError
from oraculo.plans import limits
from oraculo.plans.source.events import SourceText
from oraculo.plans.source.source_reader import SourceFormat, SourceReading, read_data, read_text
from oraculo.plans.source.tree import TreeBuilder
from oraculo.plans.source.yaml_events import yaml_events
from oraculo.wire import strict_json
from plans.generated import PlanMaker


def read_yaml(text: str) -> SourceReading:
    return read_text(text.encode(), SourceFormat.YAML)


def found(text: str, format: SourceFormat = SourceFormat.YAML) -> list[str]:
    return [str(one) for one in read_text(text.encode(), format).faults]


def value_of(text: str) -> Any:
    source, builder = read_data(text.encode(), SourceFormat.YAML)
    assert builder.complete and not source.faults.count, source.placed
    return builder.value


BROKEN = """\
# a plan with a fault in every task
entrada: {canal: x}
tarefas:
  videos:
    fonte: you tube
    parametros: {canal: "é ${{ entrada.canal + }}"}
  top:
    executador: ranking
    paramz: {}
    depende: [videos, nada]
  resumos:
    para_cada: ${{ top.dados }}
  texto:
    executador: x
    parametros:
      t: |
        primeira linha
          ${{ nada.dados }}
saida: '${{ it''s }}'
"""


def test_every_fault_of_a_yaml_file_has_its_line_and_column() -> None:
    places = [(one.line, one.column, one.fault.where) for one in read_yaml(BROKEN).faults]
    assert places == [
        (5, 12, "tarefas.videos.fonte"),
        (6, 47, "tarefas.videos.parametros.canal"),
        (9, 5, "tarefas.top.paramz"),
        (10, 23, "tarefas.top.depende.1"),
        (11, 3, "tarefas.resumos"),
        (18, 15, "tarefas.texto.parametros.t"),
        (19, 15, "saida"),
    ]


def test_the_same_faults_stand_in_a_json_file() -> None:
    text = json.dumps(yaml.safe_load(BROKEN), indent=1, ensure_ascii=True)
    reading = read_text(text.encode(), SourceFormat.JSON)
    lines = text.splitlines()
    marked = [(one.fault.where, lines[one.line - 1][one.column - 1 :][:5]) for one in reading.faults]
    assert marked == [
        ("tarefas.videos.fonte", '"you '),
        ("tarefas.videos.parametros.canal", ' }}"'),
        ("tarefas.top.paramz", '"para'),
        ("tarefas.top.depende.1", '"nada'),
        ("tarefas.resumos", '"resu'),
        ("tarefas.texto.parametros.t", "nada."),
        ("saida", "'s }}"),
    ]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("12", 12), ("-1", -1), ("+3", 3),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("18446744073709551615", 2**64 - 1), ("'no'", "no"), ('"12"', "12"),
        ("2026-12-24T18:00:00-03:00", "2026-12-24T18:00:00-03:00"), ("2026-12-24", "2026-12-24"), ("y", "y"),
        ("nO", "nO"), ("=", "="), ("1.2.3", "1.2.3"), ("a b", "a b"), ("'0x1F'", "0x1F"), ("|-\n  a\n  b", "a\nb"),
        (">-\n  a\n  b", "a b"), ("[1, 'a', {b: null}]", [1, "a", {"b": None}]),
    ],
)  # fmt: skip
def test_words_of_yaml_mean_what_both_versions_say(written: str, value: Any) -> None:
    read = value_of(f"x: {written}\n")["x"]
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    "word", ["no", "No", "NO", "yes", "on", "OFF", "010", "0x1F", "0o7", "1_000", "12:30", ".inf", ".NaN"]
)
def test_what_yaml_tools_read_differently_is_refused_with_the_way_to_write_it(word: str) -> None:
    (fault,) = found(f"tarefas: {{t: {{fonte: a, parametros: {{x: {word}}}}}}}")
    assert fault.startswith("1:41: tarefas.t.parametros.x: ") and ("quotes" in fault or f"'{word}'" in fault)


def test_keys_are_texts_whatever_they_look_like() -> None:
    assert value_of("no: 1\n12: 2\nnull: 3\n2026-01-01: 4\n") == {"no": 1, "12": 2, "null": 3, "2026-01-01": 4}


@pytest.mark.parametrize("format", SourceFormat)
def test_a_key_that_stands_twice_is_a_fault_and_reading_goes_on(format: SourceFormat) -> None:
    text = '{"tarefas": {"a": {"fonte": "x"},\n "a": {"fonte": "y", "fonte": "z"}}, "nada": 1}'
    assert [one.split(";")[0] for one in found(text, format)] == [
        "2:2: tarefas.a: the key 'a' stands here twice",
        "2:22: tarefas.a.fonte: the key 'fonte' stands here twice",
        "2:38: nada: a request has no field 'nada'",
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tarefas:\n\tt: {fonte: a}", "2:1: not YAML: lines begin with spaces"),
        ("tarefas: [", "not YAML: "),
        ("a: &x 1\nb: *x\n", "1:4: anchors and aliases"),
        ("a: !!python/object:os.system x", "1:4: tags are not allowed"),
        ("{tarefas: {t: {fonte: a}}}\n---\nb: 1\n", "2:1: a file holds one plan"),
        ("a: {<<: {b: 1}}", "1:5: a.<<: << does not merge here"),
        ("a: \x01", "1:4: not YAML: the character U+0001"),
        ("? [a]\n: 1\n", "1:3: a key is a text"),
        ("", "1:1: the file is empty"),
        ("# nothing\n", "1:1: the file is empty"),
        ("a: %x", "1:4: not YAML: a value cannot begin with %"),
        ("- a", "1:1: a request is an object, not a list"),
        ("[" * 70, "1:65: nested more than 64 levels deep"),
    ],
)  # fmt: skip
def test_what_is_no_plan_in_yaml_is_one_clear_fault(text: str, wanted: str) -> None:
    assert any(wanted in one for one in found(text)), found(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"a": 1,}', "1:9: not JSON: a key in double quotes is expected, not '}'"),
        ('{"a" 1}', "1:6: not JSON: : is expected, not '1'"),
        ('{\n "a": [1 2]}', "2:10: not JSON: , or ] is expected, not '2'"),
        ("{'a': 1}", "1:2: not JSON: \"'\" cannot stand here"),
        ('{"a": 01}', "1:7: not JSON: '0' cannot stand here"),
        ('{"a": NaN}', "1:7: not JSON: 'N' cannot stand here"),
        ('{"a": 1} x', "1:10: not JSON: 'x' cannot stand here"),
        ('{"a": 1', "1:8: not JSON: the text ends where , or } is expected"),
        ('{"a": "\n"}', "1:7: not JSON: '\"' cannot stand here"),
        ('{"a": 1e999}', "1:7: a: the number is too large"),
        ('{"a": 18446744073709551616}', "1:7: a: the number does not fit into 64 bits"),
        ('{"a": "\\u0000"}', "1:7: a: the text holds a character that JSON cannot carry"),
        ('{"\\ud800": 1}', "1:2: the text holds a character that JSON cannot carry"),
        ("", "1:1: not JSON: the text ends where a value is expected"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_one_clear_fault(text: str, wanted: str) -> None:
    assert any(one.startswith(wanted) for one in found(text, SourceFormat.JSON)), found(text, SourceFormat.JSON)


def test_bytes_that_are_no_text_and_files_that_are_too_large() -> None:
    assert [str(one) for one in read_text(b"a: 1\nb: \xff", SourceFormat.YAML).faults] == [
        "2:4: the file is not UTF-8 from here on"
    ]
    large = read_text(b" " * (limits.SOURCE_MAX_BYTES + 1), SourceFormat.JSON)
    assert "at most 1048576" in str(large.faults[0])


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    reading = read_yaml(bomb)
    assert reading.request is None and any("aliases" in str(one) for one in reading.faults)


def test_the_limits_of_files_are_those_of_requests() -> None:
    assert (limits.SOURCE_MAX_BYTES, limits.SOURCE_MAX_DEPTH) == (strict_json.MAX_BYTES, strict_json.MAX_DEPTH)
    assert (limits.SOURCE_MAX_CONTAINERS, limits.SOURCE_MAX_MEMBERS) == (
        strict_json.MAX_CONTAINERS,
        strict_json.MAX_MEMBERS,
    )


def _mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(0, 3)):
        at = chance.randrange(len(text))
        junk = chance.choice(
            ['"', "}", "{", "[", "]", ",", ":", "0", "-", "e", "\\", " ", "\n", "\t", "a", "\u00e9", "\\u0000"]
        )
        text = text[:at] + junk + text[at + chance.randint(0, 1) :]
    return text


def test_json_files_are_accepted_exactly_where_the_api_accepts_them() -> None:
    chance = random.Random(7)
    accepted = 0
    for seed in range(300):
        text = _mutated(json.dumps(PlanMaker(seed).plan(), ensure_ascii=seed % 2 == 0), chance)
        source, builder = read_data(text.encode(), SourceFormat.JSON)
        try:
            wanted = strict_json.loads(text.encode())
        except WireError as error:
            assert source.faults.count, (text, error)
        else:
            accepted += 1
            assert not source.faults.count and builder.value == wanted, (text, source.placed)
    assert 60 < accepted < 290


def test_yaml_is_read_alike_with_libyaml_and_without() -> None:
    for seed in range(60):
        text = yaml.safe_dump(PlanMaker(seed).plan(), allow_unicode=seed % 2 == 0, sort_keys=False)
        read = []
        for in_c in (True, False):
            source = SourceText(text)
            builder = TreeBuilder(source)
            builder.build(yaml_events(source, in_c=in_c))
            assert builder.complete
            read.append((builder.value, builder.root, source.placed))
        assert read[0] == read[1], seed
