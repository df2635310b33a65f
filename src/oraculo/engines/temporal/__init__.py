"""The engine `temporal`: every orchestration is a Temporal workflow that drives the core; its history is the truth.

messages.py            what travels between an engine and its workflows, as JSON
workflow.py            the workflow: commands in, `core.step`, a report of the steps out
by_hand.py             answers that a person gives with Temporal's own tools
activities.py          the activities that workflows call
journal_activities.py  what they do: steps → journal, owed messages → brokers, journal → a workflow that goes on
decider.py             steps that a workflow made → the journal's transaction
effects.py             what is owed → brokers, each message once
journal_pages.py       the journal, page by page
connection.py          the connection to Temporal, and the worker on it
calls.py               the requests over it
workflows.py           begin a workflow, signal it, ask it, begin it again when it is gone
router.py              work → workflows, or the local commit loop when the workflow has ended
codec.py               large payloads, compressed
sandbox.py             the sandbox that workflows run in
tracing.py             the spans that Temporal's SDK makes, when traces are on
engine.py              the assembly of these parts
"""
