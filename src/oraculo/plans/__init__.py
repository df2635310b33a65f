"""Plans as documents: what users write in JSON, YAML or Python, in Portuguese or English words.

    reading = read({"tarefas": {"videos": {"fonte": "youtube"}}})
    reading.request     the typed document, None when there are faults
    reading.faults      every fault at once, each with its path in the words that were sent
    write(reading.request, "en")

    words.py    the one table of words              model.py    frozen dataclasses
    reader.py   JSON → model, structure             plan_check.py    names, expressions, graph
    writer.py   model → JSON                        graph.py    what depends on what

Nothing here decides or runs: `oraculo.core` does that with what is made of these documents.
"""
