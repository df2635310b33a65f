"""Schedules: what users do with them (book.py), and the loop that starts their runs (firing.py)."""
