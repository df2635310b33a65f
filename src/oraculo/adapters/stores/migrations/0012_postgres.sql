-- Runs that try another one again: the run that is tried again, and the one that does it.
CREATE TABLE run_origins (
  origin bigint NOT NULL,
  run    bigint NOT NULL,
  PRIMARY KEY (origin, run)
);
CREATE INDEX run_origins_run ON run_origins (run);
