"""The pure core: what an orchestration is and what each command makes of it.

Standard library only; no clock, no randomness, no input or output. `step` is the only way in.
"""
