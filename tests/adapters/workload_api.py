"""An agent of SPIFFE for tests: the part of its workload API that is used, over a socket, by the published contract."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from oraculo.adapters.identity.workload_api import message

SERVICE, METHOD = "SpiffeWorkloadAPI", "FetchJWTSVID"


@dataclass
class Agent:
    """Gives a token that names its audience; none to a workload that it does not know."""

    socket: str
    asked: list[list[str]] = field(default_factory=list)
    knows: bool = True

    def answer(self, request: Any, context: Any) -> Any:
        if dict(context.invocation_metadata()).get("workload.spiffe.io") != "true":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "security header missing from request")
        if not self.knows:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "no identity issued")
        self.asked.append(list(request.audience))
        svid = message("JWTSVID")(spiffe_id="spiffe://casa.example/ns/a/sa/b", svid=f"svid.{request.audience[0]}.sig")
        return message("JWTSVIDResponse")(svids=[svid])


@contextmanager
def agent(folder: Path) -> Iterator[Agent]:
    found = Agent(f"unix://{folder / 'agent.sock'}")
    server = grpc.server(ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(
        found.answer, message("JWTSVIDRequest").FromString, message("JWTSVIDResponse").SerializeToString
    )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})])
    server.add_insecure_port(found.socket)
    server.start()
    try:
        yield found
    finally:
        server.stop(0).wait()
