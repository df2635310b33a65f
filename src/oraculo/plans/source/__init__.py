"""Plans as text: JSON and YAML → data, with the line and column of every fault.

reading = read_text(raw, SourceFormat.YAML)
reading.request     the typed document, None when there are faults
reading.faults      every fault at once, each with its line and column

json_events.py · yaml_events.py    text → events, without recursion and without building anything
tree.py                            events → data and where each part of it stands; limits, keys that stand twice
placing.py                         path of a fault → line and column
yaml_scalars.py                    what a word without quotes means in YAML
"""
