"""TLS of a client, and the loading of PEM files that both ends share: what cannot be used is named in one line."""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oraculo.client.watched_files import WatchedFiles
from oraculo.errors import SettingsError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of a client: the authority that the server is known by, in place of those of the system, and the
    certificate with its private key that is shown to the server. Empty ones are not used."""

    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext | None:
        """The context of these files, or None when there are none. SettingsError names the one that cannot be used."""
        if self.key and not self.cert:
            raise SettingsError("ORACULO_URL_KEY", self.key, "with ORACULO_URL_CERT, the certificate of that key")
        if not self.ca and not self.cert:
            return None
        context = _RenewedContext(ssl.PROTOCOL_TLS_CLIENT)
        if not self.ca:
            context.load_default_certs()
        self._load(context)
        context.watch(self, WatchedFiles([self.ca, self.cert, self.key]))
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        if self.ca:
            load_authority(context, self.ca, "ORACULO_URL_CA")
        if self.cert:
            load_certificate(context, self.cert, self.key, ("ORACULO_URL_CERT", "ORACULO_URL_KEY"))


class _RenewedContext(ssl.SSLContext):
    """A client's context whose next connection has the files as they are then. Authorities are added, never taken
    away, until the program starts anew."""

    _files: TlsFiles
    _watched: WatchedFiles

    def watch(self, files: TlsFiles, watched: WatchedFiles) -> None:
        self._files, self._watched = files, watched

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        self._renew()
        return super().wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        self._renew()
        return super().wrap_socket(*arguments, **options)

    def _renew(self) -> None:
        with suppress(SettingsError):  # half written: those from before go on, and it is tried again
            self._watched.renew(self._again)

    def _again(self) -> None:
        self._files._load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))  # a fault there changes nothing here
        self._files._load(self)


def load_authority(context: ssl.SSLContext, path: str, name: str) -> None:
    """Trust the certificates of this file; SettingsError names the setting when there are none."""
    try:
        context.load_verify_locations(path)
    except ssl.SSLError:
        raise SettingsError(name, path, "a PEM file with certificates of authorities") from None
    except OSError as error:
        raise SettingsError(name, path, f"a file that can be read: {error.strerror}") from None


def load_certificate(context: ssl.SSLContext, cert: str, key: str, names: tuple[str, str]) -> None:
    """Show this certificate; without `key` its key is in the same file. SettingsError names the setting at fault."""
    for name, path in zip(names, (cert, key), strict=True):
        try:
            if path:
                Path(path).read_bytes()
        except OSError as error:
            raise SettingsError(name, path, f"a file that can be read: {error.strerror}") from None
    try:
        context.load_cert_chain(cert, key or None, password=_no_password)
    except ValueError:
        raise SettingsError(names[1], key or cert, "a private key without a password") from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SettingsError(names[1], key or cert, f"the private key of {names[0]}") from None
        if _has_certificate(cert):
            raise SettingsError(names[1], key or cert, "a PEM file with a private key") from None
        raise SettingsError(names[0], cert, "a PEM file with a certificate") from None


def _no_password() -> str:
    raise ValueError  # else OpenSSL would ask for one on the terminal


def _has_certificate(path: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        return False
    return True
