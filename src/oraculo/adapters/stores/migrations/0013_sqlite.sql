-- Runs that try another one again: the run that is tried again, and the one that does it.
CREATE TABLE run_origins (
  origin INTEGER NOT NULL,
  run    INTEGER NOT NULL,
  PRIMARY KEY (origin, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_origins_run ON run_origins (run);
