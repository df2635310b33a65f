"""Settings of what is told: logs, traces; and those of the shipped collectors."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import setting

OTEL_SAMPLERS = ("parentbased_traceidratio", "traceidratio")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True)
class LogsSettings:
    """What is logged, and in which form."""

    level: str = setting("LOG_LEVEL", "INFO", read.one_of_any_case(*LOG_LEVELS), "How much is logged")
    format: str = setting(
        "ORACULO_LOG_FORMAT",
        "auto",
        read.one_of("auto", "json", "text"),
        "`json`, `text`, or `auto`: text on a terminal",
    )


@dataclass(frozen=True, slots=True)
class TracesSettings:
    """Where traces are sent, and which."""

    endpoint: str = setting(
        "OTEL_EXPORTER_ENDPOINT",
        "",
        read.optional(read.url("http", "https")),
        "Where traces are sent (OTLP), like `http://otel-collector:4317`; empty: no traces",
    )
    protocol: str = setting(
        "OTEL_EXPORTER_PROTOCOL",
        "auto",
        read.one_of("auto", "grpc", "http"),
        "`grpc`, `http`, or `auto`: http for port 4318 or an address with a path",
    )
    headers: tuple[str, ...] = setting(
        "OTEL_EXPORTER_HEADERS", "", read.pairs, "`name=value` that is sent along, several with commas between"
    )
    sampler: str = setting(
        "OTEL_TRACES_SAMPLER",
        "parentbased_traceidratio",
        read.one_of(*OTEL_SAMPLERS),
        "Whether a caller's decision to sample is followed; `traceidratio`: it is not",
    )
    ratio: float = setting(
        "OTEL_TRACES_SAMPLER_ARG", "1", read.number(0, 1), "Share of the traces that begin here which are sampled"
    )
    service_name: str = setting(
        "OTEL_SERVICE_NAME", "oraculo", read.text, "The name of this service in logs and traces"
    )
    service_version: str = setting(
        "SERVICE_VERSION", "", read.text, "The version of this service in logs and traces; empty: that of the code"
    )

    @property
    def service(self) -> tuple[str, str]:
        """The name and the version of this service."""
        return self.service_name, self.service_version


@dataclass(frozen=True, slots=True)
class CollectorsSettings:
    """The shipped collectors. They read these when they run, so a change of environment needs no restart."""

    youtube_base: str = setting(
        "ORACULO_YOUTUBE_BASE", "https://www.youtube.com", read.text, "Where the feeds of channels are"
    )
    blog_base: str = setting(
        "ORACULO_BLOG_BASE", "", read.text, "What relative feed addresses (`/feed.xml`) are joined to"
    )
    feed_timeout_s: float = setting("ORACULO_FEEDS_TIMEOUT", "20", read.number(0.001, 300), "Seconds per feed")
    allow: tuple[str, ...] = setting(
        "ORACULO_FEEDS_ALLOW",
        "",
        read.several,
        "`host:port` that feeds may be read from although the address is private",
    )
    reports: str = setting("ORACULO_RELATORIOS", "relatorios", read.text, "Directory below which reports are written")
