-- Labels of an orchestration: a JSON list beside it (NULL: none), and a row for each to look them up by.
ALTER TABLE runs ADD COLUMN rotulos TEXT;
CREATE TABLE run_rotulos (
  rotulo TEXT NOT NULL,
  run    INTEGER NOT NULL,
  PRIMARY KEY (rotulo, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_rotulos_by_run ON run_rotulos (run);
