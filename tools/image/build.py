"""Builds the image of this tree with buildah on the base of Debian packages.

    python -m tools.image.build [--target worker]     says the name of the image

A pip.conf and a file of certificates that this machine has are passed to the build as secrets: they are in no layer.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tools.image import debian_base
from tools.image.storage import ROOT, ImageError, run

PIP_CONF = Path("/etc/pip.conf")
NAMES = {"oraculo": "localhost/oraculo:test", "worker": "localhost/oraculo-worker:test"}


def build(target: str, *, context: Path = ROOT, pip_conf: Path = PIP_CONF, **arguments: str) -> str:
    """The name of the image. `arguments` are build arguments, like VERSION. Layers are not kept for the next build:
    buildah 1.28 takes one whose LABEL had other arguments for the same."""
    name = NAMES[target]
    command = ["buildah", "bud", "--isolation", "chroot", "--format", "docker", "--target", target]
    for key, value in {"BASE": debian_base.base(), **arguments}.items():
        command += ["--build-arg", f"{key}={value}"]
    for secret, path in (("pip", pip_conf), ("ca", Path(os.environ.get("PIP_CERT", "")))):
        if path.is_file():
            command += ["--secret", f"id={secret},src={path}"]
    run(["buildah", "rmi", "--force", name], ok=(0, 1, 2, 125))  # else it stays, without a name
    run([*command, "--tag", name, "."], cwd=context)
    return name


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.image.build")
    parser.add_argument("--target", choices=sorted(NAMES), default="oraculo")
    why = debian_base.missing()
    try:
        sys.exit(why) if why else print(build(parser.parse_args().target))  # noqa: T201
    except ImageError as error:
        sys.exit(str(error))
