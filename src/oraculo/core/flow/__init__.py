"""Fluxo C: what a cognitive plan is beyond an ordinary plan. General modules of the core do not know this folder."""
