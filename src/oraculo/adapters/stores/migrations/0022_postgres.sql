-- Keys that payloads of tenants are sealed with, wrapped by a master key that is not here. NULL: forgotten, and what it
-- sealed cannot be read any more.
CREATE TABLE data_keys (
  id           text COLLATE "C" PRIMARY KEY,
  tenant       text COLLATE "C" NOT NULL,
  generation   bigint NOT NULL,
  wrapped      bytea,
  master       text NOT NULL,
  created_at   bigint NOT NULL,
  forgotten_at bigint,
  UNIQUE (tenant, generation)
);
