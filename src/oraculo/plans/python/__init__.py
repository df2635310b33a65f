"""Plans in Python: `from oraculo import Plan`.

builder.py        Plan: methods that add tasks, and the data that comes of them
expressions.py    what stands for values that are known only when the plan runs
writer.py         document → Python source that builds it
"""
