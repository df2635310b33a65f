"""Compile the .proto files of the gRPC services to the descriptors that are shipped:

python -m tools.protos
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from grpc_tools import protoc

FOLDER = Path(__file__).parents[1] / "src/oraculo/apps/grpc_api/protos"
DESCRIPTORS = FOLDER / "services.binpb"


def compiled() -> bytes:
    """The descriptors of all files, as protoc makes them."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "services.binpb"
        files = sorted(one.name for one in FOLDER.glob("*.proto"))
        if protoc.main(["protoc", f"-I{FOLDER}", f"--descriptor_set_out={made}", *files]):
            raise SystemExit("protoc refused the files")
        return made.read_bytes()


if __name__ == "__main__":
    DESCRIPTORS.write_bytes(compiled())
