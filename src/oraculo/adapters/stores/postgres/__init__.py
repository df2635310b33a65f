"""PostgreSQL store: several processes work on one database (docs/adr/0014, docs/postgres.md)."""
