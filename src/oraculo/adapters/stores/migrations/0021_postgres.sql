-- Runs of requests that exist once, their keys, and what was merged into them. The newest run of a key holds it.
CREATE TABLE unique_keys (
  run            bigint PRIMARY KEY,
  key            text COLLATE "C" NOT NULL,
  correlation_id text COLLATE "C" NOT NULL,
  since          bigint NOT NULL,
  until          bigint,
  merged         bigint NOT NULL,
  recent         text NOT NULL,
  forgotten      smallint NOT NULL
);
CREATE INDEX unique_keys_newest ON unique_keys (key, since, run);
CREATE INDEX unique_keys_forgotten ON unique_keys (until) WHERE forgotten = 1;
