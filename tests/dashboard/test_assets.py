"""What ships: pinned, hashed, small, inside the wheel, and without a line of inline script or style."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest

from api.conftest import app, client, oraculo  # noqa: F401
from oraculo.dashboard import assets

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/oraculo/dashboard"
SCRIPTS_MOST = 90_000  # bytes, compressed


@pytest.mark.parametrize("folder", [PACKAGE / "static/vendor", Path(__file__).parent / "vendor"], ids=["ours", "tests"])
def test_what_others_wrote_is_what_was_published(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {path.name for path in folder.iterdir()} - {"manifest.json"}
    for name, about in manifest.items():
        assert sha256((folder / name).read_bytes()).hexdigest() == about["sha256"], name
        licence = re.search(r"\((.*)\)", about["licence"])
        assert licence and licence[1] in files and about["version"]
        files -= {name, licence[1]}
    assert files == set()


def test_all_scripts_together_are_small() -> None:
    scripts = [body for name, (body, _) in assets.contents().items() if name.endswith(".js")]
    assert len(scripts) > 5
    assert sum(len(gzip.compress(body, 9)) for body in scripts) <= SCRIPTS_MOST


def test_nothing_is_inline() -> None:
    for path in (PACKAGE / "templates").iterdir():
        text = path.read_text()
        assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", text), path.name
        for tag in re.findall(r"<script[^>]*>", text):
            assert 'src="{{ asset(' in tag or 'type="application/json"' in tag, tag
        assert "|safe" not in text and "autoescape" not in text, path.name
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", text), path.name
    for name, (body, _) in assets.contents().items():
        if name.startswith("js/"):
            assert not re.search(
                rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", body
            ), name


async def test_they_are_kept_for_ever_under_their_digest(client: httpx2.AsyncClient) -> None:  # noqa: F811
    for name, (body, _) in assets.contents().items():
        response = await client.get(assets.address(name))
        assert response.status_code == 200 and response.content == body
        assert "immutable" in response.headers["cache-control"] and response.headers["content-encoding"] == "gzip"
    old = await client.get("/static/0000/oraculo.css", headers={"Accept-Encoding": "identity"})
    assert old.headers["cache-control"] == "no-store" and "content-encoding" not in old.headers
    for path in ("/static/x/nada.js", "/static/x/../frame.py", "/static/x/js/..%2f..%2fframe.py", "/static/x/"):
        assert (await client.get(path)).status_code == 404


def test_the_wheel_has_them(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    [wheel] = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = [path for folder in ("templates", "static", "texts") for path in (PACKAGE / folder).rglob("*")]
    files = {str(path.relative_to(ROOT / "src")) for path in wanted if path.is_file() and path.suffix != ".pyc"}
    assert len(files) > 30 and files <= inside
