-- Labels of an orchestration: a JSON list beside it (NULL: none), and a row for each to look them up by.
ALTER TABLE runs ADD COLUMN rotulos text;
CREATE TABLE run_rotulos (
  rotulo text COLLATE "C" NOT NULL,
  run    bigint NOT NULL,
  PRIMARY KEY (rotulo, run)
);
CREATE INDEX run_rotulos_by_run ON run_rotulos (run);
