"""The wiring: settings → adapters → engine. Only this package knows them all."""
