"""Tokens that say who a workload is (JWT-SVIDs), from the agent of SPIFFE on this machine, over its workload API."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc import RpcError, insecure_channel

METHOD = "/SpiffeWorkloadAPI/FetchJWTSVID"
HEADERS = (("workload.spiffe.io", "true"),)  # without it the agent answers nobody
_TEXT, _MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_ONE, _MANY = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL, descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
_FIELDS = {  # what is needed of workload.proto: message → fields with their numbers
    "JWTSVIDRequest": (("audience", 1, _TEXT, _MANY, ""), ("spiffe_id", 2, _TEXT, _ONE, "")),
    "JWTSVID": (("spiffe_id", 1, _TEXT, _ONE, ""), ("svid", 2, _TEXT, _ONE, "")),
    "JWTSVIDResponse": (("svids", 1, _MESSAGE, _MANY, ".JWTSVID"),),
}


@cache
def message(name: str) -> Any:
    """The class of a message of the workload API."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="oraculo/workload.proto", syntax="proto3")
    for name, fields in _FIELDS.items():
        kind = file.message_type.add(name=name)
        for field, number, of, label, type_name in fields:
            kind.field.add(name=field, number=number, type=of, label=label, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def jwt_svid(socket: str, audience: str, timeout_s: float) -> str:
    """The token of this workload for an audience. ValueError: the agent gives none; it says why, and no secret."""
    with insecure_channel(socket) as channel:
        call = channel.unary_unary(
            METHOD, message("JWTSVIDRequest").SerializeToString, message("JWTSVIDResponse").FromString
        )
        try:
            answer = call(message("JWTSVIDRequest")(audience=[audience]), timeout=timeout_s, metadata=HEADERS)
        except RpcError as error:
            said = error.details() if hasattr(error, "details") else str(error)
            raise ValueError(f"the SPIFFE agent at {socket} gives no token for {audience}: {said}") from None
    if not answer.svids or not answer.svids[0].svid:
        raise ValueError(f"the SPIFFE agent at {socket} gives no token for {audience}")
    return str(answer.svids[0].svid)
