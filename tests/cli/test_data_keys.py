"""`oraculo data-keys`: what was in clear is sealed, keys change, and a forgotten one erases."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli.processes import Cli
from contracts.writing import begin, write
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.stores.sqlite.store import SqliteStore

FIRST, SECOND = {"ORACULO_DATA_KEY": "6d" * 32}, {"ORACULO_DATA_KEY": "6e" * 32}


async def written(path: Path, name: str, *masters: bytes, open: bool = False) -> None:
    async with SqliteStore(str(path), sealing=Sealing(masters)) as store:
        story = begin(name)
        await write(store, story.started)
        if not open:
            await write(store, story.ok(0, when=1), when=1)


def test_data_keys(alone: Cli) -> None:
    path = alone.folder / "oraculo.db"
    asyncio.run(written(path, "um"))
    assert alone.json("data-keys", "ls") == {"keys": []}
    assert "nothing is sealed" in alone("data-keys", "ls").stderr
    without = alone("data-keys", "seal")
    assert without.returncode == 2 and "ORACULO_DATA_KEY" in without.stderr
    assert alone.json("data-keys", "seal", **FIRST) == {"sealed": {"default": 3}}
    refused = alone("replay", "um")
    assert refused.returncode != 0 and "set ORACULO_DATA_KEY" in refused.stderr
    assert "concluida" in alone("replay", "um", **FIRST).stdout
    made = alone.json("data-keys", "rotate", "default", **FIRST)
    assert [one["id"] for one in alone.json("data-keys", "ls")["keys"]][-1] == made["id"]
    assert alone.json("data-keys", "seal", "default", **FIRST) == {"sealed": {"default": 3}}
    both = {**SECOND, "ORACULO_DATA_KEY_OLD": FIRST["ORACULO_DATA_KEY"]}
    assert alone.json("data-keys", "rewrap", **both) == {"rewrapped": 2}
    wrong = alone("replay", "um", **FIRST)
    assert wrong.returncode != 0 and "another master key" in wrong.stderr and "Traceback" not in wrong.stderr
    assert alone.json("audit", "verify", **SECOND)["ok"]
    asyncio.run(written(path, "aberta", bytes.fromhex("6e" * 32), open=True))
    for arguments, status, says in (
        (["default"], 2, "--yes"),
        (["default", "--yes"], 1, "1 orchestrations"),
        (["nenhum", "--yes"], 3, "nenhum"),
    ):
        done = alone("data-keys", "forget", *arguments, **SECOND)
        assert done.returncode == status and says in done.stderr and "Traceback" not in done.stderr


def test_a_key_that_was_forgotten(alone: Cli) -> None:
    path = alone.folder / "oraculo.db"
    asyncio.run(written(path, "um", bytes.fromhex("6d" * 32)))
    anchor = ["audit", "anchor", "--to", "anchor.jsonl"]
    signing = alone.json("keys", "create", "--role", "auditor", "--sign")
    assert alone(*anchor, ORACULO_SIGNING_KEY=signing["signing_key"], **FIRST).returncode == 0
    assert alone.json("data-keys", "forget", "default", "--yes", **FIRST)["forgotten"] == 1
    assert alone("data-keys", "forget", "default", "--yes", **FIRST).returncode == 3
    gone = alone("replay", "um", **FIRST)
    assert gone.returncode != 0 and "erased" in gone.stderr and "Traceback" not in gone.stderr
    verify = ["audit", "verify", "--anchor", "anchor.jsonl", "--public-key", signing["public_key"]]
    found = alone.json(*verify, **FIRST)
    assert (found["ok"], found["erased"]) == (True, 1)
