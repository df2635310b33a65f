"""What every broker adapter is made of: the grammar of its URL, TLS, waiting for messages, connecting again.

Nothing here knows a server. Adapters of third parties may use it; docs/brokers/writing-one.md shows how.
"""
