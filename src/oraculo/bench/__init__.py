"""`oraculo bench`: how fast this machine orchestrates, durably, with nothing else installed or on a real broker.

The workloads are those of `benchmarks/`, so that the figures can stand beside those of other systems:

W1        N orchestrations of 3 collects → 1 execute, all at once
W2        one orchestration of N collects → 1 execute that gets all their results
SEQ       N orchestrations of 3 collects → 1 execute, one after another
WIDTH     what one result costs 10 wide and N wide
AGE       listing, showing and submitting in an empty database and in one with N finished orchestrations
INFLIGHT  memory with N orchestrations in flight
RATES     latency percentiles at 10, 50 and 80 % of the highest rate
STEPS     time to first step, and from step to step, of plans of ten tasks
COST      processor time, transactions, bytes and memory of one orchestration, part by part
"""

from oraculo.bench.command import command

__all__ = ["command"]
