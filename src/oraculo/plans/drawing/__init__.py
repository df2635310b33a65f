"""Plans as pictures: what a person sees of a plan before it runs.

outline.py    document → tasks in an order in which they can run, each with a line that says what it does
rails.py      outline → lines for a terminal
mermaid.py    outline → a Mermaid flowchart
"""
