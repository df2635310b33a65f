"""Fluxo C in the runtime: plans that arrive as decisions, and what is counted over all of them."""
