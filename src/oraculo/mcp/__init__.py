"""Oráculo for programs that speak the Model Context Protocol: task types and runs as tools, over the HTTP API."""
