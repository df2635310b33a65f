"""Addresses of pages."""

from __future__ import annotations

from oraculo.api.paths import segment


def run_path(correlation_id: str) -> str:
    return f"/runs/{segment(correlation_id)}"
