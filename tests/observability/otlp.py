"""A receiver of OTLP, over gRPC and over HTTP, with the real protocol buffers; and the trees of what it received."""

from __future__ import annotations

import gzip
import http.server
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service_grpc

from waiting import eventually


@dataclass(frozen=True)
class Seen:
    trace: str
    id: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    events: dict[str, int]
    links: list[str]
    error: bool
    message: str


@dataclass
class Receiver:
    """`protocol` is grpc or http; `raw` are the bytes of all that came."""

    protocol: str
    spans: list[Seen] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    status: int = 200  # that it answers over HTTP

    def take(self, request: service.ExportTraceServiceRequest, headers: dict[str, str]) -> None:
        self.raw.append(request.SerializeToString())
        self.headers.append(headers)
        for resource in request.resource_spans:
            shared = {one.key: _value(one.value) for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    own = {one.key: _value(one.value) for one in span.attributes}
                    self.spans.append(
                        Seen(
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.name,
                            span.kind,
                            span.start_time_unix_nano,
                            span.end_time_unix_nano,
                            {**shared, **own},
                            {event.name: event.time_unix_nano for event in span.events},
                            [link.span_id.hex() for link in span.links],
                            span.status.code == 2,
                            span.status.message,
                        )
                    )

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans if span.name == name]

    def until(self, condition: Callable[[Self], bool]) -> None:
        try:
            eventually(lambda: condition(self))
        except AssertionError as error:
            error.add_note(f"spans: {[(span.name, span.attributes) for span in self.spans]}")
            raise

    def __enter__(self) -> Self:
        if self.protocol == "grpc":
            self._server = grpc.server(ThreadPoolExecutor(2))
            service_grpc.add_TraceServiceServicer_to_server(_Servicer(self), self._server)
            self.url = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
            self._server.start()
        else:
            self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
            self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1/traces"
            threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.protocol == "grpc":
            self._server.stop(None).wait()
        else:
            self._http.shutdown()
            self._http.server_close()


class _Servicer(service_grpc.TraceServiceServicer):
    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def Export(self, request: Any, context: Any) -> Any:
        self.receiver.take(request, {one.key: one.value for one in context.invocation_metadata()})
        return service.ExportTraceServiceResponse()


def _handler(receiver: Receiver) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.take(service.ExportTraceServiceRequest.FromString(body), dict(self.headers))
            self.send_response(receiver.status)
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
