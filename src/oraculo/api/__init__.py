"""HTTP: the routes of contracts §4 and problem documents for every refusal."""
