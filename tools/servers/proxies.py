"""nginx and Caddy with the examples of deploy/, changed in nothing but ports, certificates and where Oráculo is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tools.servers.server import Server, free_port

EXAMPLES = Path(__file__).parents[2] / "deploy"


class Proxy(Server):
    """Set `upstream` (a port on this machine), `certificate` and `key` before `start`."""

    upstream = 8000
    certificate = Path("certificate.pem")
    key = Path("key.pem")
    program = ""
    package = ""

    @classmethod
    def missing(cls) -> str | None:
        found = shutil.which(cls.program, path="/usr/sbin:/usr/bin:/usr/local/bin")
        return None if found else f"{cls.program} (Debian: apt-get install {cls.package})"

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


class Nginx(Proxy):
    name = "nginx"
    program, package = "nginx", "nginx-light"

    @classmethod
    def version(cls) -> str:
        said = subprocess.run(["/usr/sbin/nginx", "-v"], check=True, capture_output=True, text=True).stderr
        return said.rpartition("/")[2].strip()

    def command(self) -> list[str]:
        text = (EXAMPLES / "nginx/oraculo.conf").read_text()
        text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.M)
        text = text.replace("listen 80;", f"listen 127.0.0.1:{free_port()};")
        text = text.replace("listen 443 ", f"listen 127.0.0.1:{self.port} ").replace("oraculo.example.com", "localhost")
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.upstream}")
        text = text.replace("/etc/ssl/oraculo/fullchain.pem", str(self.certificate))
        text = text.replace("/etc/ssl/oraculo/privkey.pem", str(self.key))
        folders = "".join(
            f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        head = f"user root;\npid {self.folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        (self.folder / "nginx.conf").write_text(f"{head}http {{\naccess_log off;\n{folders}{text}}}\n")
        return ["/usr/sbin/nginx", "-c", str(self.folder / "nginx.conf"), "-g", "daemon off;"]


class Caddy(Proxy):
    name = "caddy"
    program, package = "caddy", "caddy"

    @classmethod
    def version(cls) -> str:
        return subprocess.run(["caddy", "version"], check=True, capture_output=True, text=True).stdout.split()[0]

    def command(self) -> list[str]:
        text = (EXAMPLES / "caddy/Caddyfile").read_text()
        inside = f"https://localhost:{self.port} {{\n\ttls {self.certificate} {self.key}\n"
        text = text.replace("oraculo.example.com {\n", inside).replace("127.0.0.1:8000", f"127.0.0.1:{self.upstream}")
        options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
        (self.folder / "Caddyfile").write_text(options + text)
        return ["caddy", "run", "--adapter", "caddyfile", "--config", str(self.folder / "Caddyfile")]

    def environment(self) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "HOME": str(self.folder)}
