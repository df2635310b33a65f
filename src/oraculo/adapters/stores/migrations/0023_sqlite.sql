-- Keys that payloads of tenants are sealed with, wrapped by a master key that is not here. NULL: forgotten, and what it
-- sealed cannot be read any more.
CREATE TABLE data_keys (
  id           TEXT PRIMARY KEY,
  tenant       TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  wrapped      BLOB,
  master       TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  forgotten_at INTEGER,
  UNIQUE (tenant, generation)
) STRICT, WITHOUT ROWID;
