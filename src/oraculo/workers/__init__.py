"""The workers that ship with Oráculo: collectors of public feeds and an executor that writes a report.

`oraculo worker oraculo.workers.all:worker` runs them. They need the extra `workers`.
"""
