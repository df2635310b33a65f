"""Two scrapes of a server's /metrics → rates, quantiles and what stands: the document that `oraculo top` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Labels = Mapping[str, str]
METRIC_PREFIX = "orchestration_"
QUANTILES = (0.5, 0.95, 0.99)
END_STATUSES = ("concluida", "parcial", "erro", "timeout", "cancelada")


class Scrape:
    """The samples of one look, and when it was made (seconds of any clock)."""

    def __init__(self, text: str, at: float) -> None:
        self.at = at
        self._samples: dict[str, list[tuple[Labels, float]]] = {}
        from prometheus_client.parser import text_string_to_metric_families  # with the extra `server`

        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def total(self, name: str, **labels: str) -> float:
        return sum(value for known, value in self._samples.get(name, ()) if labels.items() <= known.items())

    def one(self, name: str, **labels: str) -> float | None:
        found = [value for known, value in self._samples.get(name, ()) if labels.items() <= known.items()]
        return found[0] if found else None

    def by(self, name: str, label: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for known, value in self._samples.get(name, ()):
            found[known[label]] = found.get(known[label], 0.0) + value
        return found


def document(before: Scrape, now: Scrape) -> dict[str, Any]:
    """Rates are per second between the two looks."""
    seconds = max(now.at - before.at, 1e-9)

    def rate(name: str, **labels: str) -> float:
        """A server that began anew meanwhile counts from zero."""
        return round(max(0.0, now.total(name, **labels) - before.total(name, **labels)) / seconds, 2)

    return {
        "segundos": round(seconds, 3),
        "por_segundo": {
            "iniciadas": rate(f"{METRIC_PREFIX}workflows_started_total"),
            **{status: rate(f"{METRIC_PREFIX}workflows_completed_total", status=status) for status in END_STATUSES},
            "tickets": rate(f"{METRIC_PREFIX}tickets_completed_total"),
            "mensagens": rate(f"{METRIC_PREFIX}messages_total"),
            "novas_tentativas": rate(f"{METRIC_PREFIX}retries_total"),
            "tardias": rate(f"{METRIC_PREFIX}late_answers_total"),
            "conflitantes": rate(f"{METRIC_PREFIX}conflicting_answers_total"),
            "duplicadas": rate("orchestrator_duplicates_detected_total"),
            "mortas": rate(f"{METRIC_PREFIX}dead_letters_total"),
            "prazos_estourados": rate(f"{METRIC_PREFIX}sla_violations_total"),
        },
        "terminadas": {s: int(now.total(f"{METRIC_PREFIX}workflows_completed_total", status=s)) for s in END_STATUSES},
        "abertas": int(now.total(f"{METRIC_PREFIX}workflows_active")),
        "menor_prazo_s": now.one(f"{METRIC_PREFIX}sla_remaining_seconds"),
        "devidas": int(now.total(f"{METRIC_PREFIX}outbox_messages")),
        "mais_antiga_devida_s": now.one(f"{METRIC_PREFIX}outbox_oldest_seconds"),
        "mortas_esperando": int(now.total(f"{METRIC_PREFIX}dead_letters_waiting")),
        "duracao_s": dict(_quantiles(before, now, f"{METRIC_PREFIX}workflow_duration_seconds")),
        "atraso_do_laco_s": dict(_quantiles(before, now, f"{METRIC_PREFIX}event_loop_lag_seconds")),
        "filas": [
            {
                "fila": queue,
                "esperando": int(waiting),
                "mais_antiga_s": now.one(f"{METRIC_PREFIX}queue_oldest_seconds", fila=queue),
            }
            for queue, waiting in sorted(now.by(f"{METRIC_PREFIX}queue_depth", "fila").items())
        ],
        "brokers": [
            {
                "broker": name,
                "ok": up == 1,
                "publica": now.one(f"{METRIC_PREFIX}broker_active", broker=name) == 1,
                "sonda_s": now.one(f"{METRIC_PREFIX}broker_probe_seconds", broker=name),
            }
            for name, up in now.by(f"{METRIC_PREFIX}broker_up", "broker").items()
        ],
        "banco_ok": now.one(f"{METRIC_PREFIX}store_up") == 1,
        "workers_http": int(now.total(f"{METRIC_PREFIX}http_workers")),
        "cpu": rate("process_cpu_seconds_total"),
        "memoria_mib": round(now.total("process_resident_memory_bytes") / 2**20, 1),
    }


def _quantiles(before: Scrape, now: Scrape, name: str) -> Iterator[tuple[str, float | None]]:
    """Of what was observed between the two looks; the upper bound of the bucket. None when nothing was."""
    earlier = before.by(f"{name}_bucket", "le")
    counts = {
        float(bound): max(0.0, count - earlier.get(bound, 0.0))
        for bound, count in now.by(f"{name}_bucket", "le").items()
    }
    whole = max(counts.values(), default=0.0)
    for share in QUANTILES:
        reached = [bound for bound, count in sorted(counts.items()) if count >= share * whole]
        yield f"p{share * 100:.0f}", reached[0] if whole and reached[0] != float("inf") else None
