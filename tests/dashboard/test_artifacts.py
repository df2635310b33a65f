"""Files of results are sent as they are read."""

from __future__ import annotations

from pathlib import Path

from oraculo.dashboard.artifacts import CHUNK_BYTES, Artifact, download


async def test_a_large_file_is_never_whole_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large"
    size = 3 * CHUNK_BYTES + 5
    path.write_bytes(bytes(size))
    answer = download(Artifact("large", 0, path, size))
    with path.open("ab") as file:
        file.write(b"more, while it is being sent")
    assert answer.headers["content-length"] == str(size)
    chunks = [len(chunk) async for chunk in answer.body_iterator]  # type: ignore[attr-defined]
    assert chunks == [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES, 5]
