"""Logstash's configuration language, as far as anybody writes it, and the filters that deploy/elk uses.

Written from the reference of the language (sections, plugins, values, conditions) and of the plugins. It is strict:
what it does not know is an error, so that a pipeline that passes here uses nothing but what stands there. It is not
Logstash: that it starts and reaches Elasticsearch is not shown here.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

TOKEN = re.compile(
    r"""\s+|\#[^\n]*
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<regex>(?<=[~]\s)/(?:[^/\\]|\\.)+/)
    |(?P<field>(?:\[[^\[\],"'\s]+\])+)
    |(?P<mark>=>|==|!=|<=|>=|=~|!~|[{}\[\](),!<>])
    |(?P<number>-?\d+(?:\.\d+)?\b)
    |(?P<word>[A-Za-z_][A-Za-z0-9_-]*)""",
    re.VERBOSE,
)
SECTIONS = ("input", "filter", "output")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=", "=~", "!~")
COMMON = {"id", "enable_metric"}
FILTER_COMMON = COMMON | {"add_field", "add_tag", "remove_field", "remove_tag", "periodic_flush"}
OPTIONS = {
    ("input", "beats"): COMMON | {"port", "host", "codec", "tags", "type", "ssl_enabled", "client_inactivity_timeout"},
    ("filter", "mutate"): FILTER_COMMON | {"rename", "replace", "convert", "gsub", "lowercase", "copy", "update"},
    ("filter", "json"): FILTER_COMMON
    | {"source", "target", "skip_on_invalid_json", "tag_on_failure", "ecs_compatibility"},
    ("filter", "date"): FILTER_COMMON | {"match", "target", "timezone", "locale", "tag_on_failure"},
    ("output", "elasticsearch"): COMMON
    | {"hosts", "user", "password", "api_key", "data_stream", "data_stream_type", "data_stream_dataset"}
    | {"data_stream_namespace", "data_stream_auto_routing", "data_stream_sync_fields", "ssl_enabled"},
}
REQUIRED = {("input", "beats"): {"port"}, ("filter", "json"): {"source"}}


class ConfigError(Exception):
    """It is not in the language, or not an option of the plugin."""


@dataclass
class Plugin:
    name: str
    options: dict[str, Any]


@dataclass
class Branch:
    """The first of these whose condition holds; None is `else`."""

    arms: list[tuple[Any, list[Plugin | Branch]]] = field(default_factory=list)


class Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                raise ConfigError(f"line {text.count(chr(10), 0, at) + 1}: {text[at : at + 20]!r}")
            if found.lastgroup:
                self.tokens.append((found.lastgroup, found[0], text.count("\n", 0, at) + 1))
            at = found.end()
        self.at = 0

    def peek(self) -> tuple[str, str, int]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "", -1)

    def take(self, *wanted: str) -> str:
        kind, text, line = self.peek()
        if text not in wanted and kind not in wanted:
            raise ConfigError(f"line {line}: {text or 'the end'!r}, expected {' or '.join(wanted)}")
        self.at += 1
        return text

    def config(self) -> dict[str, list[Plugin | Branch]]:
        found: dict[str, list[Plugin | Branch]] = {}
        while self.peek()[0] != "end":
            name = self.take("word")
            if name not in SECTIONS:
                raise ConfigError(f"{name} is no section")
            found.setdefault(name, []).extend(self.block(name))
        return found

    def block(self, section: str) -> list[Plugin | Branch]:
        self.take("{")
        found: list[Plugin | Branch] = []
        while self.peek()[1] != "}":
            found.append(self.branch(section) if self.peek()[1] == "if" else self.plugin(section))
        self.take("}")
        return found

    def plugin(self, section: str) -> Plugin:
        name, options = self.take("word"), {}
        known = OPTIONS.get((section, name))
        if known is None:
            raise ConfigError(f"{section} has no plugin {name}")
        self.take("{")
        while self.peek()[1] != "}":
            key = self.take("word", "text")
            if key not in known:
                raise ConfigError(f"{name} has no option {key}")
            self.take("=>")
            options[key] = self.value()
        self.take("}")
        lacking = REQUIRED.get((section, name), set()) - set(options)
        if lacking:
            raise ConfigError(f"{name} needs {sorted(lacking)}")
        return Plugin(name, options)

    def value(self) -> Any:
        kind, text, _ = self.peek()
        if text == "{":
            self.take("{")
            found = {}
            while self.peek()[1] != "}":
                key = self.scalar()
                self.take("=>")
                found[key] = self.value()
            self.take("}")
            return found
        if text == "[":
            self.take("[")
            items = []
            while self.peek()[1] != "]":
                items.append(self.value())
                if self.peek()[1] != "]":
                    self.take(",")
            self.take("]")
            return items
        if kind == "field":
            raise ConfigError(f"{text} is a field, not a value")
        return self.scalar()

    def scalar(self) -> Any:
        kind, _, _ = self.peek()
        text = self.take("text", "number", "word")
        if kind == "text":
            return text[1:-1]
        return float(text) if kind == "number" and "." in text else int(text) if kind == "number" else text

    def branch(self, section: str) -> Branch:
        found = Branch()
        self.take("if")
        found.arms.append((self.condition(), self.block(section)))
        while self.peek()[1] == "else":
            self.take("else")
            if self.peek()[1] == "if":
                self.take("if")
                found.arms.append((self.condition(), self.block(section)))
            else:
                found.arms.append((None, self.block(section)))
                break
        return found

    def condition(self) -> Any:
        left = self.expression()
        while self.peek()[1] in ("and", "or"):
            left = (self.take("and", "or"), left, self.expression())
        return left

    def expression(self) -> Any:
        _, text, _ = self.peek()
        if text == "!":
            self.take("!")
            return ("not", self.expression())
        if text == "(":
            self.take("(")
            inner = self.condition()
            self.take(")")
            return inner
        left = self.operand()
        if self.peek()[1] in COMPARISONS:
            return (self.take(*COMPARISONS), left, self.operand())
        return left

    def operand(self) -> Any:
        kind, _, _ = self.peek()
        text = self.take("field", "text", "number", "regex")
        if kind == "field":
            return ("field", path_of(text))
        return text[1:-1] if kind in ("text", "regex") else float(text)


def path_of(name: str) -> list[str]:
    return re.findall(r"\[([^\]]+)\]", name) or [name]


def read(event: dict[str, Any], path: list[str]) -> Any:
    for part in path:
        event = event.get(part, {}) if isinstance(event, dict) else {}
    return event if event != {} else None


def holds(condition: Any, event: dict[str, Any]) -> bool:
    if condition is None:
        return True
    match condition:
        case ("field", path):
            return bool(read(event, path))
        case ("not", inner):
            return not holds(inner, event)
        case ("and", left, right):
            return holds(left, event) and holds(right, event)
        case ("or", left, right):
            return holds(left, event) or holds(right, event)
        case (comparison, ("field", path), right):
            left = read(event, path)
            if comparison in ("=~", "!~"):
                found = isinstance(left, str) and re.search(right, left, re.DOTALL) is not None
                return found is (comparison == "=~")
            return {"==": left == right, "!=": left != right}[comparison]
    raise ConfigError(f"{condition} is not understood")


def filtered(config: dict[str, list[Plugin | Branch]], event: dict[str, Any]) -> dict[str, Any]:
    """The event after the filters."""
    found = copy.deepcopy(event)
    _run(config["filter"], found)
    return found


def _run(steps: list[Plugin | Branch], event: dict[str, Any]) -> None:
    for step in steps:
        if isinstance(step, Branch):
            chosen = next((block for condition, block in step.arms if holds(condition, event)), [])
            _run(chosen, event)
        else:
            _apply(step, event)


def _apply(plugin: Plugin, event: dict[str, Any]) -> None:
    options = plugin.options
    if plugin.name == "json":
        try:
            parsed = json.loads(read(event, path_of(options["source"])))
        except ValueError:
            if options.get("skip_on_invalid_json") != "true":
                event.setdefault("tags", []).append("_jsonparsefailure")
            return
        _merge(event, parsed)
    elif plugin.name == "date":
        source, *formats = options["match"]
        if (text := read(event, path_of(source))) is not None:
            if formats != ["ISO8601"]:
                raise ConfigError(f"{formats} is not understood")
            event["@timestamp"] = datetime.fromisoformat(text).isoformat()
    event.setdefault("tags", []).extend(options.get("add_tag", []))
    for name, value in options.get("add_field", {}).items():
        *parents, last = path_of(name)
        place = event
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = value
    for name in options.get("remove_field", []):
        *parents, last = path_of(name)
        place = read(event, parents) if parents else event
        if isinstance(place, dict):
            place.pop(last, None)


def _merge(event: dict[str, Any], parsed: dict[str, Any]) -> None:
    """As the json filter does: whole top-level fields are replaced; a dotted name stays one field."""
    event.update(parsed)
