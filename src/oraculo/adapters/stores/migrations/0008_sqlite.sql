-- Keys that sign the tokens of orders. The secret is the private half of an Ed25519 key; the newest key whose time has
-- come signs, and all that are not over are good for checking.
CREATE TABLE token_keys (
  kid        TEXT PRIMARY KEY,
  secret     BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  signs_from INTEGER NOT NULL,
  good_until INTEGER -- NULL: it has no successor yet
) STRICT, WITHOUT ROWID;
