"""`--autoscale` as people expect it: the tasks of beat, which never end, do not count as work."""

from __future__ import annotations

from typing import Any

from celery.worker.autoscale import Autoscaler as CelerysOwn

ALWAYS_THERE = ("varrer", "anunciar_filas")


class Autoscaler(CelerysOwn):  # type: ignore[misc]
    def on_task_received(self, req: Any) -> None:
        if req.name not in ALWAYS_THERE:
            super().on_task_received(req)
