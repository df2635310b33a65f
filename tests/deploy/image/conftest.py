"""Both images, built once from a copy of this tree in which secrets were planted."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.image import debian_base
from tools.image.build import PIP_CONF, build

from servers import REQUIRE

ROOT = Path(__file__).parents[3]
PLANTED = "plantado-7c1e0b94d2"
FILES = ("pyproject.toml", "requirements.lock", "README.md", "LICENSE", "Dockerfile", ".dockerignore")
LABELS = {"VERSION": "9.8.7", "REVISION": "0123abc", "CREATED": "2026-01-02T03:04:05Z"}


@dataclass(frozen=True, slots=True)
class Images:
    oraculo: str
    worker: str


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    reason = debian_base.missing()
    if reason:
        say = pytest.fail if os.environ.get(REQUIRE) else pytest.skip
        say(f"images cannot be built here: {reason}; make services-image")
    context = tmp_path_factory.mktemp("context")
    for name in FILES:
        shutil.copy(ROOT / name, context / name)
    for name in ("src", "deploy"):
        shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
    for place in (".env", "src/.env", "src/oraculo/.env", "src/oraculo/local.db", "deploy/key.pem", "id_rsa"):
        (context / place).write_text(f"SECRET={PLANTED}\n")
    conf = tmp_path_factory.mktemp("pip") / "pip.conf"
    conf.write_text((PIP_CONF.read_text() if PIP_CONF.is_file() else "") + f"\n# token {PLANTED}\n")
    made = [build(target, context=context, pip_conf=conf, **LABELS) for target in ("oraculo", "worker")]
    return Images(*made)
