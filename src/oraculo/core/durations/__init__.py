"""How long tasks take: what was seen of each destination, and what that says of the next one. Pure."""
