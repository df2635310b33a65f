"""The files of deploy/elk, exercised on lines that Oráculo really logs: what Filebeat makes of a line, what the
pipeline of Logstash makes of that, and whether the index has a place for every field of the outcome.

Filebeat itself reads lines with the shipped files, only its paths and its output are others. Logstash, which comes as
a JVM distribution of its vendor only, does not run here: the pipeline is read by a strict parser of its language and
its filters are carried out by it (logstash.py), on what Filebeat has written.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.servers.filebeat import filebeat

import servers
from observability.logstash import ConfigError, Parser, filtered
from waiting import eventually

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


class TestRealFilebeat:
    """The program, with the shipped files; what it writes goes through the pipeline to the index."""

    def test_lines_of_files_arrive_as_documents(self, line: dict[str, Any], tmp_path: Path) -> None:
        log = tmp_path / "oraculo.log"
        log.write_text(json.dumps(line) + "\nnem json\n", encoding="utf-8")
        first, second = shipped("filebeat.yml", log, tmp_path, 2)
        read = datetime.fromisoformat(line["@timestamp"])
        assert datetime.fromisoformat(first["@timestamp"]) == read.replace(microsecond=read.microsecond // 1000 * 1000)
        assert first["log"]["level"] == line["log.level"]
        assert first["error"]["stack_trace"] == line["error.stack_trace"]
        found = filtered(pipeline(), first)
        assert found["correlation_id"] == "abc" and not found["tags"]
        places = mapped()
        told = {name: value for name, value in leaves(found).items() if not name.startswith("@metadata")}
        assert {
            name: value for name, value in told.items() if name in places and not accepts(places[name], value)
        } == {}
        assert {"agent", "input"} & set(found) == set()
        assert filtered(pipeline(), second)["tags"] == ["not_json"]

    def test_of_containers_only_lines_of_ours_arrive(self, line: dict[str, Any], tmp_path: Path) -> None:
        """Docker's own files: ours on standard error, somebody else's, and ours on standard output, which is no log."""
        ours = json.dumps(line) + "\n"
        log = tmp_path / "container.log"
        with log.open("w", encoding="utf-8") as file:
            for text, stream in ((ours, "stdout"), ("GET / 200\n", "stderr"), (ours, "stderr")):
                file.write(json.dumps({"log": text, "stream": stream, "time": "2026-01-01T00:00:00.5Z"}) + "\n")
        (only,) = shipped("filebeat-containers.yml", log, tmp_path, 1)
        assert (only["stream"], only["service"]["name"], only["correlation_id"]) == ("stderr", "oraculo", "abc")
        assert filtered(pipeline(), only)["tags"] == []


def shipped(config: str, log: Path, folder: Path, events: int) -> list[dict[str, Any]]:
    """What Filebeat writes of a file, with a shipped configuration: so many events and no more. The last line
    of the file has to be one of them, because they come in order."""
    servers.use("filebeat")
    instead = {
        "output.logstash.enabled": "false",
        "output.file.path": str(folder / "out"),
        "output.file.filename": "events",
        "filebeat.inputs.0.paths.0": str(log),
    }
    options = [option for name, value in instead.items() for option in ("-E", f"{name}={value}")]
    command = [str(filebeat().path), "-c", str(ELK / config), "--path.home", str(folder / "home"), *options]
    environment = {**os.environ, "ORACULO_LOGS": str(log)}
    with subprocess.Popen([*command, "--strict.perms=false"], env=environment) as process:
        try:
            eventually(lambda: len(written(folder)) >= events, "it has written what it read", within=60)
        finally:
            process.terminate()
    found = written(folder)
    assert len(found) == events
    return found


def written(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "out").glob("events*"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]


def layout_pattern(layout: str) -> str:
    found = ""
    while layout:
        part = next((part for part in LAYOUT if layout.startswith(part)), layout[0])
        found += LAYOUT.get(part, re.escape(part))
        layout = layout[len(part) :]
    return found
