"""What a plan may hold at most, and what its names look like."""

from __future__ import annotations

import re

from oraculo.expressions.lexer import RESERVED, WORDS
from oraculo.expressions.parser import NAMESPACES
from oraculo.patterns import NAME_PATTERN, QUEUE_PATTERN

MAX_TASKS = 50_000
MAX_DEPENDENCIES = 100_000
MAX_CHILD_LEVELS = 8
MAX_LOOP_ROUNDS = 10_000
MAX_MAP_ITEMS = 50_000
MAX_ATTEMPTS = 100
MAX_LABELS = 16
MAX_ROLES = 16
MAX_CODES = 100
ATTEMPT_MAX_SECONDS = 30 * 24 * 3600.0  # one attempt of a collect or an execute
WAIT_MAX_SECONDS = 366 * 24 * 3600.0  # anything else
CORRELATION_ID_MAX_CHARS = 128
GENERATED_ID_CHARS = 36

# Names that mean something else inside an expression.
RESERVED_NAMES = frozenset({"entrada", "input", "indice", "index", "feito", "done", *RESERVED, *WORDS, *NAMESPACES})
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
IDENTIFIER_RULE = "a name of letters, digits and _ that begins with no digit, at most 64 of them"
DESTINATION = re.compile(NAME_PATTERN.removesuffix("$"))
DESTINATION_RULE = "a name of letters, digits, _ . and - that begins with a letter or digit, at most 100 of them"
QUEUE = re.compile(QUEUE_PATTERN.removesuffix("$"))
QUEUE_RULE = "the name of a queue: letters, digits, _ . and -"
SHORT_TEXT = re.compile(r"[^\0\ud800-\udfff]{1,100}", re.DOTALL)
SHORT_TEXT_RULE = "a text of 1 to 100 characters"
CORRELATION_ID = re.compile(rf"[^\0\ud800-\udfff]{{1,{CORRELATION_ID_MAX_CHARS}}}", re.DOTALL)
CORRELATION_ID_RULE = f"a text of 1 to {CORRELATION_ID_MAX_CHARS} characters"
WEBHOOK = re.compile(r"[^\0\ud800-\udfff]{1,2048}", re.DOTALL)
WEBHOOK_RULE = "an address of at most 2048 characters"

# Of a request as text: those of wire/strict_json.py, which reads the bodies of requests.
SOURCE_MAX_BYTES = 1024 * 1024
SOURCE_MAX_DEPTH = 64
SOURCE_MAX_CONTAINERS = 100_000
SOURCE_MAX_MEMBERS = 100_000
