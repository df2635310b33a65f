"""JSON in and out: envelope, payloads, requests, records of the journal, names of queues."""
