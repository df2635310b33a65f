"""Policies: who evaluates them, which they are, and what they refused lately in this process."""

from __future__ import annotations

from fastapi import APIRouter, Response

from oraculo.api import paths, policy_documents, problems
from oraculo.api.access import GuardedRoute, needs
from oraculo.api.openapi import answer
from oraculo.api.serving import Running, answered
from oraculo.core.access import Scope

router = APIRouter(route_class=GuardedRoute, prefix=paths.API, tags=["operation"], responses=problems.COMMON_RESPONSES)


@router.get(
    "/policies",
    summary="Policies",
    description="Who evaluates policies, the version of those, which packages are asked when, and the latest refusals "
    "and counts of the process that answers. What was decided about one run is under `politicas` of that run.",
    response_class=Response,
    responses={200: answer(policy_documents.PoliciesAnswer, "How policies stand")},
)
@needs(Scope.INSTALLATION_READ)
async def policies(oraculo: Running) -> Response:
    found = oraculo.policies
    counts, status = found.statistics, found.status()
    document = {
        "motor": None if found.engine is None else found.engine.name,
        "politicas": found.version or None,
        "pontos": {point.value: list(found.options.packages[point]) for point in found.points},
        "circuito": status.circuit,
        "erro": status.error or None,
        "reinicios": status.restarts,
        "perguntas": counts.questions,
        "da_memoria": counts.cache_hits,
        "erros": dict(counts.errors),
        "recusas": [
            {"politica": policy, "regra": rule, "gravidade": severity, "vezes": count}
            for (policy, rule, severity), count in counts.rejections.most_common()
        ],
        "ultimas": [
            {
                "ponto": one["point"],
                "ticket_id": one["ticket_id"],
                "correlation_id": one["correlation_id"],
                "mensagem": one["said"],
                "decisao": one["decision_id"],
            }
            for one in reversed(counts.latest)
        ],
    }
    return answered(document)
