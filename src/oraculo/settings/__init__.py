"""The settings: environment variables and `.env`, read and checked."""

from oraculo.settings.settings import Settings, load

__all__ = ["Settings", "load"]
