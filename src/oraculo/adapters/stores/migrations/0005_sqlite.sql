-- Keys of the API, and sessions of browsers that were begun with one. Digests are SHA-256 of the secrets, in hexadecimal.
CREATE TABLE api_keys (
  id         TEXT PRIMARY KEY,
  role       TEXT NOT NULL,
  tenant     TEXT NOT NULL,
  queues     TEXT NOT NULL, -- JSON list: those of a worker
  note       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  digest     TEXT NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at    INTEGER,
  old_digest TEXT, -- of the secret before the last rotation, good until old_until
  old_until  INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
  id         TEXT PRIMARY KEY,
  key_id     TEXT NOT NULL,
  digest     TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
