"""The workers that ship with Oráculo: collectors of public feeds and an executor that writes a report.

`oraculo worker oraculo.collectors.all:worker` runs them. They need the extra `workers`.
"""
