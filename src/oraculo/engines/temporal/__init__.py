"""The engine `temporal`: every orchestration is a Temporal workflow that drives the core; its history is the truth.

parcels.py     what travels between the two, as JSON
workflow.py    the workflow: commands in, `core.step`, what became true out
activities.py  what the workflow asks of the world
handler.py     steps that a workflow made → journal
perform.py     what is owed → brokers, each thing once
recall.py      the journal, for a workflow that goes on where another left off
link.py        the connection to Temporal, and its worker
calls.py       what is said over it
codec.py       large payloads, compressed
sandbox.py     where workflows run
tracing.py     the spans that Temporal's SDK makes, when traces are on
engine.py      the engine: requests → workflows, answers → signals
"""
