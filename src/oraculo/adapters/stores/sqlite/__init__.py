"""The SQLite store: one file, one engine."""
