"""`oraculo demo`: the main job, from nothing to a report, on feeds that the demo serves itself."""

from oraculo.demo.command import command

__all__ = ["command"]
