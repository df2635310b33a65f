"""Oráculo: broker-native orchestration of independent collectors and executors."""

__version__ = "0.1.0"
