"""Engines choose where state lives, who calls and who waits. There is no rule about tickets in here."""
