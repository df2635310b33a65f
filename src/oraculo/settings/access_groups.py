"""The settings of who is let in, and by which means."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import setting
from oraculo.settings.vault import AUTH_METHODS


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
    spiffe: str = setting(
        "ORACULO_SPIFFE_IDENTITIES",
        "",
        read.file,
        "TOML file with SPIFFE IDs and what each may do, without a key; with ORACULO_TLS_CLIENT_CA, the bundle of the "
        "trust domain",
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
class SignatureSettings:
    """Signatures of messages: of answers, of requests and approvals, of orders."""

    results: str = setting(
        "ORACULO_RESULT_SIGNATURES",
        "off",
        read.one_of("off", "accept", "require"),
        "Signatures of workers under their answers ([security](security.md#signed-messages)): `off`: not looked at; "
        "`accept`: an answer with a wrong one is refused; `require`: one without, too",
    )
    requests: str = setting(
        "ORACULO_REQUEST_SIGNATURES",
        "off",
        read.one_of("off", "accept", "require"),
        "The same for requests, plans and approvals that come from a broker",
    )
    orders: str = setting(
        "ORACULO_ORDER_SIGNATURES",
        "off",
        read.one_of("off", "require"),
        "`require`: the orchestrator signs orders, and a worker on a broker takes none without its signature",
    )
    key: str = setting(
        "ORACULO_SIGNING_KEY",
        "",
        read.signing_key,
        "The private key (`orcw_…`) that this worker signs its answers with",
        secret=True,
    )


@dataclass(frozen=True, slots=True)
class SealingSettings:
    """Payload encryption at rest."""

    key: str = setting(
        "ORACULO_DATA_KEY",
        "",
        read.master_key,
        "Master key: payloads are sealed (AES-256-GCM) with a key of their tenant, which it wraps; empty: none is",
        secret=True,
    )
    old_keys: tuple[str, ...] = setting(
        "ORACULO_DATA_KEY_OLD",
        "",
        read.master_keys,
        "Master keys from before, which may have wrapped keys of tenants; several with commas between",
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


@dataclass(frozen=True, slots=True)
class S3Settings:
    """How a bucket of `ORACULO_ORDER_DATA` is reached; credentials have the names that tools of AWS know."""

    endpoint: str = setting(
        "ORACULO_S3_ENDPOINT",
        "",
        read.optional(read.url("https", "http", several=False)),
        "Address of a server that speaks S3 (MinIO, Ceph, R2, …); empty: that of AWS in the region",
    )
    region: str = setting("AWS_REGION", "us-east-1", read.text, "Region of the bucket")
    access_key: str = setting("AWS_ACCESS_KEY_ID", "", read.text, "Id of the access key")
    secret_key: str = setting("AWS_SECRET_ACCESS_KEY", "", read.text, "Its secret", secret=True)
    session: str = setting("AWS_SESSION_TOKEN", "", read.text, "Token of credentials that end", secret=True)


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """Where references `vault:` lead. They are read from the environment only, never from `.env`."""

    address: str = setting(
        "VAULT_ADDRESS", "", read.optional(read.url("https", "http", several=False)), "Vault, or OpenBao"
    )
    namespace: str = setting("VAULT_NAMESPACE", "", read.text, "Namespace of Vault Enterprise; empty: none")
    ca_bundle: str = setting(
        "VAULT_CA_BUNDLE", "", read.file, "Authorities that Vault is known by; empty: those of the system"
    )
    auth_method: str = setting(
        "VAULT_AUTH_METHOD", "token", read.one_of(*AUTH_METHODS), "How to log in: token, approle, kubernetes or jwt"
    )
    token: str = setting("VAULT_TOKEN", "", read.text, "With `token`: the token", secret=True)
    role_id: str = setting("VAULT_ROLE_ID", "", read.text, "With `approle`: the id of the role")
    secret_id: str = setting("VAULT_SECRET_ID", "", read.text, "With `approle`: its secret", secret=True)
    role: str = setting(
        "VAULT_KUBERNETES_ROLE", "orchestrator-dynamic", read.text, "With `kubernetes` and `jwt`: the role at Vault"
    )
    jwt_path: str = setting(
        "VAULT_JWT_PATH",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        read.text,
        "With `kubernetes` and `jwt`: the file with the token of the service account",
    )
    timeout_s: float = setting("VAULT_TIMEOUT_SECONDS", "5", read.number(0.1, 300), "How long Vault may take to answer")
    max_retries: int = setting("VAULT_MAX_RETRIES", "3", read.whole(0, 20), "Tries after the first, while it is away")


@dataclass(frozen=True, slots=True)
class SpiffeSettings:
    """The agent of SPIFFE that gives this workload its tokens. They are read from the environment only, never from
    `.env`."""

    enabled: bool = setting(
        "SPIFFE_ENABLED",
        "false",
        read.flag,
        "`true`: with VAULT_AUTH_METHOD `jwt`, and at SERVICE_REGISTRY_HOST, Oráculo shows a JWT-SVID (extra `grpc`)",
    )
    socket: str = setting(
        "SPIFFE_SOCKET_PATH", "unix:///run/spire/sockets/agent.sock", read.word, "The socket of the workload API"
    )
    audience: str = setting(
        "SPIFFE_JWT_AUDIENCE", "vault.neural-hive.local", read.word, "The audience of the token for Vault"
    )
    fallback: bool = setting(
        "SPIFFE_FALLBACK_ALLOWED",
        "false",
        read.flag,
        "`true`: where the agent gives no token, Vault is shown that of VAULT_JWT_PATH, and the registry none; "
        "`false`: neither is asked",
    )
