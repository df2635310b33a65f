"""The services of the original over gRPC (extra `grpc`): registry of agents, tickets, strategic commands.

Views and commands are those of the HTTP API. `grpc` and `google.protobuf` are imported here only.
"""
