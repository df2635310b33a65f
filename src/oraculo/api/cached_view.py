"""An orchestration as JSON, from the cache where there is one.

What it looks like at one version and in one language is the same everywhere: one process makes it, others find it.
While a destination is paused or its breaker open, why orders wait is said as it is now.
"""

from __future__ import annotations

from oraculo.core.sentences import DEFAULT_LANGUAGE, Language
from oraculo.service import Oraculo
from oraculo.wire import strict_json, views

CACHED_S = 600.0


async def json_view(oraculo: Oraculo, correlation_id: str, language: Language = DEFAULT_LANGUAGE) -> bytes:
    """Return an orchestration with its tickets as JSON text; sentences are in `language`."""
    shared = oraculo.store.sharing
    if oraculo.cache is None or shared is None or oraculo.holds_any:
        return strict_json.dumps(await oraculo.show(correlation_id, language))
    run = await oraculo.run_of(correlation_id)
    progress = (await shared.progress([run])).get(run)
    if progress is None:
        return strict_json.dumps(await oraculo.show(correlation_id, language))
    key = f"orchestration:{run}:{progress.version}:{language}"
    found = await oraculo.cache.get(key)
    if found is None:
        state = await oraculo.state(correlation_id)
        found = strict_json.dumps(views.orchestration(state, language))
        if state.version == progress.version:
            await oraculo.cache.put(key, found, CACHED_S)
    return found
