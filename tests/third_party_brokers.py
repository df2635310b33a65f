"""The distributions under tests/third_party, as if they were installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oraculo.adapters.brokers import registry

FOLDER = Path(__file__).parent / "third_party"


@contextmanager
def installed() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    registry._registered.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(FOLDER))
        registry._registered.cache_clear()
