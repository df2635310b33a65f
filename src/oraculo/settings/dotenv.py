"""The file `.env`: lines of `NAME=value` beside the environment."""

from __future__ import annotations

from pathlib import Path

from oraculo.errors import SettingsError


def read_dotenv(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines; `#` begins a comment, quotes around a value are dropped, `export ` is tolerated."""
    if not path.is_file():
        return {}
    values = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip().replace("_", "").isalnum():
            raise SettingsError(f"{path}:{number}", f"<{len(line)} characters>", "NAME=value")  # it may hold a secret
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name.strip()] = value
    return values
