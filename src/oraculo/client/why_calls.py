"""The call plan of what explains a run; see calls.py."""

from __future__ import annotations

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, path_segment
from oraculo.client.why_results import Explanation


def why(correlation_id: str, ticket: str | None = None) -> CallPlan[Explanation]:
    """Ask why a run, or one of its tickets, is as it is; all pages of its decisions as one."""
    path = f"{API}/orchestrations/{path_segment(correlation_id)}/why"
    query = {} if ticket is None else {"ticket": ticket}
    got: HttpAnswer = yield HttpCall("GET", path, query=query)
    found: Explanation = got.body
    while found["next"] is not None:
        got = yield HttpCall("GET", path, query={**query, "after": found["next"]})
        found = {**found, "decisoes": [*found["decisoes"], *got.body["decisoes"]], "next": got.body["next"]}
    return found
