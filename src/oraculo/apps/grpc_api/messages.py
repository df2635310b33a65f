"""Messages and methods of the services, from the descriptors of `protos/*.proto`.

`make protos` compiles them to `protos/services.binpb`, which any release of protobuf reads: there is no generated code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DESCRIPTORS = "protos/services.binpb"


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """One method of a service: its messages, and whether it answers with many."""

    name: str
    request: type[Any]
    answer: type[Any]
    streams: bool


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """A pool of its own: the default one of the process may have the same names from elsewhere."""
    pool = descriptor_pool.DescriptorPool()
    known = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath(DESCRIPTORS).read_bytes())
    for one in known.file:
        pool.Add(one)
    return pool


@cache
def message(name: str) -> Any:
    """The class of a message by its full name."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


def methods(service: str) -> list[RpcMethod]:
    """The methods of a service by its full name."""
    return [
        RpcMethod(one.name, message(one.input_type.full_name), message(one.output_type.full_name), one.server_streaming)
        for one in _pool().FindServiceByName(service).methods
    ]
