"""Policies in the runtime: what they are asked, what was said before, and who hears of it."""
