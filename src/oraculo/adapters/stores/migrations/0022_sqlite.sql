-- Runs of requests that exist once, their keys, and what was merged into them. The newest run of a key holds it.
CREATE TABLE unique_keys (
  run            INTEGER PRIMARY KEY,
  key            TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  since          INTEGER NOT NULL,
  until          INTEGER,
  merged         INTEGER NOT NULL,
  recent         TEXT NOT NULL,
  forgotten      INTEGER NOT NULL
) STRICT;
CREATE INDEX unique_keys_newest ON unique_keys (key, since, run);
CREATE INDEX unique_keys_forgotten ON unique_keys (until) WHERE forgotten = 1;
