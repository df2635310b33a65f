"""Dashboard and alerts as code; `python -m deploy.observability.generate` writes what Grafana and Prometheus read."""
