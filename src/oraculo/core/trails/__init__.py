"""Trails: what success, failure and duration of workers leave behind, and how it fades."""
