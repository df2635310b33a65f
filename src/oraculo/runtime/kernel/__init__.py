"""The kernel: small loops that every engine needs. An engine (oraculo/engines) is the list of parts it is made of."""
