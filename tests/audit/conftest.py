"""A client of MongoDB that is closed while it connects leaves the socket to the garbage collector (PyMongo 4.19)."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def sockets_left_behind() -> Iterator[None]:
    """They go here, and not in the middle of another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
