"""Dashboard and alerts as code; `python -m tools.observability.generate` writes what Grafana and Prometheus read."""
