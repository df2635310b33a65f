-- Workers that registered. `body` is what one said when it did, `beat` what it said last; the rest is what was seen of it.
CREATE TABLE workers (
  nome          text COLLATE "C" PRIMARY KEY,
  tenant        text COLLATE "C" NOT NULL,
  body          bytea NOT NULL,
  beat          bytea NOT NULL,
  answered      bigint NOT NULL,
  failed        bigint NOT NULL,
  last_error    bytea,
  drain         bytea,
  lease         bigint NOT NULL,
  registered_at bigint NOT NULL,
  last_seen     bigint NOT NULL,
  lease_until   bigint NOT NULL,
  lost_at       bigint
);
CREATE INDEX workers_lease ON workers (lease_until) WHERE lost_at IS NULL;
CREATE INDEX workers_drained ON workers (nome) WHERE drain IS NOT NULL;
