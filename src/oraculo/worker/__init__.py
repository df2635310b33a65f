"""The worker: functions that collect and execute, run by hand, over HTTP leases or over a broker."""

from oraculo.worker.worker import BrokerTransport, Job, Transport, Worker

__all__ = ["BrokerTransport", "Job", "Transport", "Worker"]
