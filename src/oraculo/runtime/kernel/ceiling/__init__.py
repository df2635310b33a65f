"""How many tickets of Fluxo C may be with workers at once: the counting, and its two feeds (commits, the journal)."""
