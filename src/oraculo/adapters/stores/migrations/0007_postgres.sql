-- Keys that sign the tokens of orders. The secret is the private half of an Ed25519 key; the newest key whose time has
-- come signs, and all that are not over are good for checking.
CREATE TABLE token_keys (
  kid        text COLLATE "C" PRIMARY KEY,
  secret     bytea NOT NULL,
  created_at bigint NOT NULL,
  signs_from bigint NOT NULL,
  good_until bigint -- NULL: it has no successor yet
);
