-- Instants are microseconds since 1970-01-01 UTC. `run` grows with time, so its order is the order of creation.
CREATE TABLE runs (
  run            INTEGER PRIMARY KEY,
  correlation_id TEXT NOT NULL UNIQUE CHECK (length(correlation_id) BETWEEN 1 AND 128),
  fingerprint    TEXT NOT NULL,
  tipo           TEXT,
  status         TEXT NOT NULL,
  version        INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  closed_at      INTEGER,
  wake_at        INTEGER,
  owes           INTEGER NOT NULL,
  total          INTEGER NOT NULL,
  open           INTEGER NOT NULL,
  failed         INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_by_status ON runs (status, run);
CREATE INDEX runs_by_end ON runs (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX runs_live ON runs (run) WHERE closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL;

CREATE TABLE run_destinos (
  destino TEXT NOT NULL,
  run     INTEGER NOT NULL,
  PRIMARY KEY (destino, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_destinos_by_run ON run_destinos (run);

CREATE TABLE journal (
  position INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so a tail misses nothing after a prune
  run      INTEGER NOT NULL,
  first    INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  format   INTEGER NOT NULL DEFAULT 1,
  events   TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX journal_by_run ON journal (run, first);

CREATE TABLE results (run INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;

CREATE TABLE idempotency_keys (
  key         TEXT PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  run         INTEGER NOT NULL,
  at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (at);

CREATE TABLE dead_letters (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  queue          TEXT NOT NULL,
  reason         TEXT NOT NULL,
  detail         TEXT NOT NULL,
  correlation_id TEXT,
  headers        TEXT NOT NULL,
  body           BLOB NOT NULL,
  at             INTEGER NOT NULL
) STRICT;
CREATE INDEX dead_letters_by_cause ON dead_letters (queue, reason);

CREATE TABLE task_types (
  tipo TEXT PRIMARY KEY,
  body TEXT NOT NULL,
  at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What became of every message ever received, per queue: received = applied + duplicate + late + idle + quarantined.
-- `discarded` and `requeued` count what operators did with quarantined ones.
CREATE TABLE counters (
  queue   TEXT NOT NULL,
  verdict TEXT NOT NULL,
  count   INTEGER NOT NULL,
  PRIMARY KEY (queue, verdict)
) STRICT, WITHOUT ROWID;
