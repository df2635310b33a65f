"""Workers that lease are chosen for tickets: who is there, what waits, who gets it, and what is recorded of it."""
