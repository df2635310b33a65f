-- Workers that registered. `body` is what one said when it did, `beat` what it said last; the rest is what was seen of it.
CREATE TABLE workers (
  nome          TEXT PRIMARY KEY,
  tenant        TEXT NOT NULL,
  body          BLOB NOT NULL,
  beat          BLOB NOT NULL,
  answered      INTEGER NOT NULL,
  failed        INTEGER NOT NULL,
  last_error    BLOB,
  drain         BLOB,
  lease         INTEGER NOT NULL,
  registered_at INTEGER NOT NULL,
  last_seen     INTEGER NOT NULL,
  lease_until   INTEGER NOT NULL,
  lost_at       INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX workers_lease ON workers (lease_until) WHERE lost_at IS NULL;
CREATE INDEX workers_drained ON workers (nome) WHERE drain IS NOT NULL;
