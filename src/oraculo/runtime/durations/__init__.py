"""Predicted durations: learnt from the journal, asked by scheduler, API and pages."""
