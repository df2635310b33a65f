"""The TLS options that every broker URL has: `tls_ca`, `tls_cert` and `tls_key`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Files: `ca` with the authorities to trust (None: those of the system), `cert` and `key` to show to the server."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """The context of a client that checks the server's certificate and its name."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return context
