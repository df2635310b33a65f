"""The dashboard: pages written on the server, kept alive by Server-Sent Events, with no build step.

Pages read and act through the functions that the JSON routes use. Whatever came from a message is text: Jinja2 escapes
it, scripts put it into text nodes, and the policy of every page forbids inline script and style (docs/adr/0017).
"""
