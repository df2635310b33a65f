"""A release: the files that are published, what they are made of, and proof that they install on every Python."""
