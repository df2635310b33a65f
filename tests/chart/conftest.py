"""Tests of the chart need Helm, kubeconform and schemas (make services)."""

from __future__ import annotations

import pytest

import servers


@pytest.fixture(autouse=True)
def _helm() -> None:
    servers.use("helm")
