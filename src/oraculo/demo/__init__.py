"""`oraculo demo`: the main job, from nothing to a report, on feeds that the demo serves itself."""
