"""Payload encryption at rest (AES-256-GCM), one key for each tenant."""
