"""The audit in MongoDB: what the journal says, in the collections that Fluxo C has for it, and the audit chain."""

from oraculo.adapters.sinks.mongo.audit import MongoAudit

__all__ = ["MongoAudit"]
