"""Carrying out effects: orders to the queues of workers, notices to webhooks and queues."""
