"""The settings of who is let in, and by which means."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import setting


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS of `oraculo up`, and of those who talk to a server over HTTP. All files are PEM."""

    cert: str = setting(
        "ORACULO_TLS_CERT",
        "",
        read.file,
        "Certificate of the server, with those between it and its authority: it speaks TLS",
    )
    key: str = setting("ORACULO_TLS_KEY", "", read.file, "Its private key, without a password; empty: in the same file")
    client_ca: str = setting(
        "ORACULO_TLS_CLIENT_CA", "", read.file, "Authorities whose certificates clients of the server have to show"
    )
    client: str = setting(
        "ORACULO_TLS_CLIENT",
        "required",
        read.one_of("required", "optional"),
        "With ORACULO_TLS_CLIENT_CA: `required`, no connection without a certificate; `optional`, one that is shown "
        "has to be good",
    )
    url_ca: str = setting(
        "ORACULO_URL_CA",
        "",
        read.file,
        "Authorities that the server at ORACULO_URL is known by; empty: those of the system",
    )
    url_cert: str = setting("ORACULO_URL_CERT", "", read.file, "Certificate that is shown to the server at ORACULO_URL")
    url_key: str = setting(
        "ORACULO_URL_KEY", "", read.file, "Its private key, without a password; empty: in the same file"
    )


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """The identity provider whose users may come in."""

    issuer: str = setting(
        "ORACULO_OIDC_ISSUER",
        "",
        read.optional(read.url("https", "http", several=False)),
        "OpenID Connect provider whose users are let in, as it names itself; over https unless it is on this machine",
    )
    client_id: str = setting("ORACULO_OIDC_CLIENT_ID", "", read.text, "What the provider calls this installation")
    client_secret: str = setting(
        "ORACULO_OIDC_CLIENT_SECRET", "", read.text, "Its secret there; empty: a public client, with PKCE", secret=True
    )
    audience: str = setting(
        "ORACULO_OIDC_AUDIENCE", "", read.text, "`aud` of bearer tokens for the API; empty: as ORACULO_OIDC_CLIENT_ID"
    )
    role_claim: str = setting(
        "ORACULO_OIDC_ROLE_CLAIM",
        "roles",
        read.required,
        "Claim with the roles of a user, a text or a list; dots lead into objects (`realm_access.roles`)",
    )
    tenant_claim: str = setting(
        "ORACULO_OIDC_TENANT_CLAIM",
        "",
        read.text,
        "Claim with the tenant of a user, a text; dots lead into objects. A user without it is refused; empty: all are "
        "of the tenant `default`",
    )
    roles: tuple[str, ...] = setting(
        "ORACULO_OIDC_ROLES",
        "",
        read.role_names,
        "What values of that claim mean here, `value=role`, several with commas between; empty: the roles' own names",
    )
