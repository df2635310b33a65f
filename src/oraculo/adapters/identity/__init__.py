"""Identity providers: who a user is, as told by a server that we trust."""
