"""Keys of the API: made, listed, replaced and revoked by administrators; and who a caller is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from oraculo.api import bodies, body, key_documents, paths, problems
from oraculo.api.access import GuardedRoute, actor_of, needs
from oraculo.api.openapi import answer
from oraculo.api.problems import invalid
from oraculo.api.serving import Running, answered
from oraculo.core.access import Limits, Scope
from oraculo.core.tenants import DEFAULT_TENANT, EVERY_TENANT
from oraculo.ports.api_keys import ApiKey

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["keys"], responses=problems.COMMON_RESPONSES)

KeyId = Annotated[str, Path(max_length=64, examples=["k7qmz2c4tb5x"])]


class KeysQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tenant: Annotated[str, Field(max_length=100)] | None = Field(
        None,
        description="of which tenant: the caller's unless it is given; those of `default` may give any, or `*`",
    )


def shown(key: ApiKey, now: datetime) -> dict[str, Any]:
    """A key as the outside sees it: never its secret, nor a digest of it."""
    return {
        "id": key.id,
        "role": key.role,
        "tenant": key.tenant,
        "queues": list(key.queues),
        "nota": key.note,
        "public_key": key.public_key,
        "limites": {"abertas": key.limits.open, "por_segundo": key.limits.per_second},
        "criada_em": key.created_at,
        "criada_por": key.created_by,
        "expira_em": key.expires_at,
        "revogada_em": key.revoked_at,
        "usada_em": key.used_at,
        "situacao": "ativa" if key.is_live(now) else "revogada" if key.revoked_at is not None else "expirada",
    }


@router.post(
    "/keys",
    status_code=201,
    summary="Make a key",
    description="`key` is shown this once: only a digest of it is stored. `trabalhador` leases and answers for its "
    "`queues` only. With `public_key` (Ed25519) its owner may sign messages.",
    response_class=Response,
    responses={201: answer(key_documents.MadeKey, "Made"), **problems.documented(408, 413, 415, 422)},
    openapi_extra=body.documented(bodies.KeyRequest),
)
@needs(Scope.KEY_ADMIN)
async def create(request: Request, oraculo: Running) -> Response:
    wanted = await body.required(request, bodies.KeyRequest)
    key, text = await oraculo.keys.create(
        wanted.role,
        by=actor_of(request),
        tenant=oraculo.tenant if wanted.tenant is None else wanted.tenant,
        queues=wanted.queues,
        life=_length(wanted.expires_s),
        note=wanted.nota,
        limits=Limits(wanted.limites.abertas, wanted.limites.por_segundo),
        public_key=wanted.public_key,
    )
    return answered({**shown(key, oraculo.now()), "key": text}, 201)


@router.get(
    "/keys",
    summary="List keys",
    description="Newest first, revoked and expired ones too; none with its secret.",
    response_class=Response,
    responses={200: answer(key_documents.ShownKeys, "Every key")},
)
@needs(Scope.KEY_ADMIN)
async def find(request: Request, oraculo: Running, query: Annotated[KeysQuery, Query()]) -> Response:
    now, tenant = oraculo.now(), query.tenant or oraculo.tenant
    if tenant != oraculo.tenant and actor_of(request).home not in (DEFAULT_TENANT, EVERY_TENANT):
        raise invalid("query.tenant", f"allowed: {oraculo.tenant}")
    found = await oraculo.keys.all(None if tenant == EVERY_TENANT else tenant)
    return answered({"keys": [shown(key, now) for key in found]})


@router.delete(
    "/keys/{key_id:segment}",
    summary="Revoke a key",
    description="It is refused from now on, by other processes within five seconds; its sessions end.",
    response_class=Response,
    responses={200: answer(key_documents.ShownKey, "Revoked"), **problems.documented(404, 422)},
)
@needs(Scope.KEY_ADMIN)
async def revoke(request: Request, oraculo: Running, key_id: KeyId) -> Response:
    key = await oraculo.keys.revoke(key_id, by=actor_of(request))
    return answered(shown(key, oraculo.now()))


@router.post(
    "/keys/{key_id:segment}/rotate",
    status_code=201,
    summary="Give a key a new secret",
    description="`key` is shown this once. The secret before stays good for `overlap_s` (a day when it is not given), "
    "so that whoever uses it has time to change.",
    response_class=Response,
    responses={201: answer(key_documents.MadeKey, "Made"), **problems.documented(404, 408, 413, 415, 422)},
    openapi_extra=body.documented(bodies.RotateRequest, required=False),
)
@needs(Scope.KEY_ADMIN)
async def rotate(request: Request, oraculo: Running, key_id: KeyId) -> Response:
    wanted = await body.optional(request, bodies.RotateRequest)
    key, text = await oraculo.keys.rotate(
        key_id,
        by=actor_of(request),
        overlap=timedelta(seconds=wanted.overlap_s),
        life=_length(wanted.expires_s),
    )
    return answered({**shown(key, oraculo.now()), "key": text}, 201)


@router.get(
    "/whoami",
    summary="Who the caller is",
    description="What the credential of this request may do.",
    response_class=Response,
    responses={200: answer(key_documents.WhoAmI, "The caller")},
)
@needs(Scope.DOCS_READ)
async def whoami(request: Request) -> Response:
    actor = actor_of(request)
    return answered(
        {
            "ator": actor.id,
            "tipo": actor.kind,
            "tenant": actor.tenant,
            "scopes": sorted(actor.scopes),
            "queues": None if actor.queues is None else sorted(actor.queues),
        }
    )


def _length(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
