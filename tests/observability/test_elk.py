"""The files of deploy/elk, exercised on lines that Oráculo really logs: what Filebeat makes of a line, what the
pipeline of Logstash makes of that, and whether the index has a place for every field of the outcome.

Neither program runs here. The pipeline is read by a strict parser of Logstash's language and its filters are carried
out by it (logstash.py); the options of Filebeat are held against those that its reference names.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from observability.logstash import ConfigError, Parser, filtered

ELK = Path(__file__).parents[2] / "deploy" / "elk"
FILESTREAM = {"type", "id", "paths", "parsers", "prospector", "enabled", "fields", "fields_under_root", "exclude_files"}
NDJSON = {"target", "expand_keys", "overwrite_keys", "add_error_key", "message_key", "ignore_decoding_error"}
CONTAINER = {"stream", "format"}
PROCESSORS = {
    "timestamp": {"field", "target_field", "layouts", "timezone", "ignore_missing", "ignore_failure", "test"},
    "drop_fields": {"fields", "ignore_missing"},
    "drop_event": {"when"},
    "add_fields": {"target", "fields"},
    "decode_json_fields": {"fields", "target", "expand_keys", "overwrite_keys", "add_error_key", "max_depth"},
    "add_kubernetes_metadata": {"host", "matchers", "default_indexers", "default_matchers"},
}
# Go's layouts are an example instant: what each part of it stands for.
LAYOUT = {
    "2006": r"\d{4}", "01": r"\d\d", "02": r"\d\d", "15": r"\d\d", "04": r"\d\d", "05": r"\d\d",
    ".999999": r"(\.\d{1,6})?", "Z07:00": r"(Z|[+-]\d\d:\d\d)",
}  # fmt: skip


LOGGED = """
import structlog
from oraculo import logs
logs.configure("INFO", "json")
try:
    raise ValueError("não deu")
except ValueError:
    structlog.get_logger("oraculo.prova").exception("step failed", correlation_id="abc", ticket_id="t", tentativa=2)
"""


@pytest.fixture(scope="module")
def line() -> dict[str, Any]:
    """What is really logged: an event with an error, its ids and its numbers."""
    done = subprocess.run([sys.executable, "-c", LOGGED], capture_output=True, text=True, check=True)
    (text,) = done.stderr.splitlines()
    found: dict[str, Any] = json.loads(text)
    return found


def pipeline() -> Any:
    return Parser((ELK / "pipeline.conf").read_text(encoding="utf-8")).config()


def expanded(flat: dict[str, Any]) -> dict[str, Any]:
    """As Filebeat does with `expand_keys`: names with dots become objects."""
    found: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        place = found
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def leaves(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in document.items():
        found |= leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def mapped() -> dict[str, str]:
    template = json.loads((ELK / "index-template.json").read_text(encoding="utf-8"))["template"]["mappings"]

    def flat(properties: dict[str, Any], prefix: str = "") -> dict[str, str]:
        found: dict[str, str] = {}
        for name, one in properties.items():
            found |= (
                flat(one["properties"], f"{prefix}{name}.") if "properties" in one else {prefix + name: one["type"]}
            )
        return found

    return flat(template["properties"])


def accepts(kind: str, value: Any) -> bool:
    if kind == "date":
        return re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", value) is not None
    if kind in ("long", "integer"):
        return isinstance(value, int)
    return isinstance(value, int | float) if kind == "float" else isinstance(value, str | list)


class TestPipeline:
    @pytest.mark.parametrize("through_filebeat", [True, False])
    def test_a_line_becomes_a_document_that_the_index_has_a_place_for(
        self, line: dict[str, Any], through_filebeat: bool
    ) -> None:
        event = expanded(line) if through_filebeat else {"message": json.dumps(line)}
        event["event"] = {**event.get("event", {}), "original": "x"}
        found = filtered(pipeline(), event)
        assert found["correlation_id"] == "abc" and not found["tags"]
        assert found["data_stream"] == {"type": "logs", "dataset": "oraculo", "namespace": "default"}
        assert "original" not in found.get("event", {})
        told = leaves(found)
        assert told["error.stack_trace"].startswith("Traceback") and told["message"] == "step failed"
        places = mapped()
        wrong = {name: value for name, value in told.items() if name in places and not accepts(places[name], value)}
        assert wrong == {}
        assert {"@timestamp", "log.level", "service.name", "ticket_id", "tentativa"} <= set(told) & set(places)

    def test_a_line_that_is_no_json_is_marked(self) -> None:
        broken = {"message": "{nem json", "error": {"type": "json", "message": "Error decoding JSON"}}
        assert filtered(pipeline(), broken)["tags"] == ["not_json"]
        assert filtered(pipeline(), {})["tags"] == ["not_json"]
        assert filtered(pipeline(), {"message": "{nem json}"})["tags"] == []  # text of somebody else, kept as it is

    def test_it_ends_in_the_data_stream_of_the_template(self) -> None:
        (output,) = pipeline()["output"]
        options = output.options
        names = (options["data_stream_type"], options["data_stream_dataset"], options["data_stream_namespace"])
        template = json.loads((ELK / "index-template.json").read_text(encoding="utf-8"))
        assert any(re.fullmatch(one.replace("*", ".*"), "-".join(names)) for one in template["index_patterns"])

    @pytest.mark.parametrize(
        "text",
        [
            "filter { mutate { add_tag => ['a'] }",
            "filter { mutate { add_tag = ['a'] } }",
            "filter { mutate { ad_tag => ['a'] } }",
            "filter { mutated { } }",
            "filters { }",
            "filter { if [a] == { mutate { } } }",
            "filter { if { mutate { } } }",
            "filter { json { target => 'x' } }",
            "filter { mutate { add_tag => [a] [b] } }",
            "filter { ` }",
        ],
    )
    def test_what_is_not_in_the_language_is_refused(self, text: str) -> None:
        with pytest.raises(ConfigError):
            Parser(text).config()


class TestFilebeat:
    @pytest.fixture(params=["filebeat.yml", "filebeat-containers.yml"])
    def config(self, request: pytest.FixtureRequest) -> dict[str, Any]:
        document: dict[str, Any] = yaml.safe_load((ELK / request.param).read_text(encoding="utf-8"))
        return document

    def test_every_option_is_one_of_its_reference(self, config: dict[str, Any]) -> None:
        known = {"filebeat.inputs", "processors", "output.logstash", "output.elasticsearch", "filebeat.autodiscover"}
        assert set(config) <= known | {"setup.template.enabled", "setup.ilm.enabled", "logging.level"}
        for one in config["filebeat.inputs"]:
            assert one["type"] == "filestream" and one["id"] and set(one) <= FILESTREAM
            for parser in one["parsers"]:
                ((name, options),) = parser.items()
                assert set(options or {}) <= {"ndjson": NDJSON, "container": CONTAINER}[name]
                if name == "ndjson":  # names with dots become objects, as the index template has them
                    assert options["expand_keys"] is True and options["target"] == ""
        for processor in config.get("processors", []):
            ((name, options),) = processor.items()
            assert set(options) <= PROCESSORS[name]

    def test_the_layout_reads_the_time_of_a_line(self, config: dict[str, Any], line: dict[str, Any]) -> None:
        found = [one["timestamp"] for one in config.get("processors", []) if "timestamp" in one]
        for timestamp in found:
            patterns = [layout_pattern(layout) for layout in timestamp["layouts"]]
            for text in (*timestamp["test"], line[timestamp["field"]]):
                assert any(re.fullmatch(pattern, text) for pattern in patterns), text


def layout_pattern(layout: str) -> str:
    found = ""
    while layout:
        part = next((part for part in LAYOUT if layout.startswith(part)), layout[0])
        found += LAYOUT.get(part, re.escape(part))
        layout = layout[len(part) :]
    return found
