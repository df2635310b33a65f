-- People who log in at the dashboard with a password, of which a slow hash (Argon2id) is kept.
CREATE TABLE users (
  name          text COLLATE "C" PRIMARY KEY,
  tenant        text NOT NULL,
  roles         text NOT NULL,
  password_hash text NOT NULL,
  created_at    bigint NOT NULL,
  created_by    text NOT NULL,
  changed_at    bigint NOT NULL,
  disabled_at   bigint
);
