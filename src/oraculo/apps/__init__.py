"""Applications: programs of other frameworks that run an Oráculo inside."""
