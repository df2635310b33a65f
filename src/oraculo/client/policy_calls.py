"""The call plan of how policies stand; see calls.py."""

from __future__ import annotations

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall
from oraculo.client.policy_results import PoliciesStatus


def policies() -> CallPlan[PoliciesStatus]:
    """Ask how policies stand."""
    got: HttpAnswer = yield HttpCall("GET", f"{API}/policies")
    found: PoliciesStatus = got.body
    return found
