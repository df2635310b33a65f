-- Keys of the API, and sessions of browsers that were begun with one. Digests are SHA-256 of the secrets, in hexadecimal.
CREATE TABLE api_keys (
  id         text COLLATE "C" PRIMARY KEY,
  role       text NOT NULL,
  tenant     text COLLATE "C" NOT NULL,
  queues     text NOT NULL, -- JSON list: those of a worker
  note       text NOT NULL,
  created_at bigint NOT NULL,
  created_by text NOT NULL,
  digest     text NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  used_at    bigint,
  old_digest text, -- of the secret before the last rotation, good until old_until
  old_until  bigint
);
CREATE TABLE sessions (
  id         text COLLATE "C" PRIMARY KEY,
  key_id     text NOT NULL,
  digest     text NOT NULL,
  expires_at bigint NOT NULL
);
