-- People who log in at the dashboard with a password, of which a slow hash (Argon2id) is kept.
CREATE TABLE users (
  name          TEXT PRIMARY KEY,
  tenant        TEXT NOT NULL,
  roles         TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  created_by    TEXT NOT NULL,
  changed_at    INTEGER NOT NULL,
  disabled_at   INTEGER
) STRICT, WITHOUT ROWID;
