"""The functions of the language. Each charges what it makes or scans before it makes or scans it."""

from oraculo.expressions.functions import conversions, lists, texts, times
from oraculo.expressions.functions.registry import GLOBAL, METHODS, Signature

__all__ = ["GLOBAL", "METHODS", "Signature", "conversions", "lists", "texts", "times"]
