"""HTTP: the routes of contracts §4, problem documents for every refusal, and a page to begin with."""
