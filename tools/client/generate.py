"""Write src/oraculo/client/async_client.py from client.py:

    python -m tools.client.generate

Both clients have every method with its own signature and docstring, so that editors and checkers see them; only the
blocking one is written by hand. A test compares.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "src/oraculo/client"
SOURCE, TARGET = CLIENT / "client.py", CLIENT / "async_client.py"
DOCSTRING = '''"""The client for asyncio. Made from client.py by tools/client/generate.py: change it there."""'''
RULES = (
    (r'\A""".*?"""', DOCSTRING),
    (r"^import time$", "import asyncio"),
    (r"import Iterable, Iterator, Mapping, Sequence$", "import AsyncIterator, Iterable, Mapping, Sequence"),
    (r"-> Iterator\[", "-> AsyncIterator["),
    (r"^class Client:", "class AsyncClient:"),
    (r"The blocking client\.", "The client for asyncio."),
    (r"by several threads", "by several tasks"),
    (r"httpx2\.Client\(", "httpx2.AsyncClient("),
    (r"^    def __(enter|exit)__", r"    async def __a\1__"),
    (r"^    def (?!__init__|url\b)(\w+)\(", r"    async def \1("),
    (r"\b(with self\._http|for one in httpx2)", r"async \1"),
    (r"time\.sleep\(", "asyncio.sleep("),
    (r"self\._http\.close\(", "self._http.aclose("),
    (r"response\.read\(", "response.aread("),
    (
        r"(?<!def )(self\.(?:_run|_do|call|close|_http\.request|_http\.aclose)|asyncio\.sleep|response\.aread)\(",
        r"await \1(",
    ),
)


def generated() -> str:
    """The module as it should be."""
    text = SOURCE.read_text(encoding="utf-8")
    for pattern, replacement in RULES:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE | re.DOTALL)
        if not count:
            raise ValueError(f"nothing in {SOURCE.name} is like {pattern}")
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TARGET.write_text(generated(), encoding="utf-8")
