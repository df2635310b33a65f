"""Service levels: deadlines that are near or missed, objectives, budgets. Pure."""
