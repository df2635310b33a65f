-- Instants are microseconds since 1970-01-01 UTC. `run` grows with time, so its order is the order of creation.
-- Text that is a key compares by bytes (COLLATE "C"), so that its beginning can be looked up.
CREATE TABLE runs (
  run            bigint PRIMARY KEY,
  correlation_id text COLLATE "C" NOT NULL UNIQUE CHECK (length(correlation_id) BETWEEN 1 AND 128),
  fingerprint    text NOT NULL,
  tipo           text,
  status         text COLLATE "C" NOT NULL,
  version        integer NOT NULL,
  created_at     bigint NOT NULL,
  closed_at      bigint,
  wake_at        bigint,
  owes           integer NOT NULL,
  total          integer NOT NULL,
  open           integer NOT NULL,
  failed         integer NOT NULL,
  hands          smallint[] NOT NULL, -- slots of the members that may be sending what it owes
  deadline       bigint,
  owed_at        bigint -- since when it owes something without a break
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX runs_by_status ON runs (status, run);
CREATE INDEX runs_by_end ON runs (closed_at) WHERE closed_at IS NOT NULL;
-- One index for all that is asked about what is not finished with the world: every change of a run writes to each.
CREATE INDEX runs_live ON runs (wake_at) WHERE closed_at IS NULL OR owes > 0 OR wake_at IS NOT NULL;

CREATE TABLE run_destinos (
  destino text COLLATE "C" NOT NULL,
  run     bigint NOT NULL,
  failed  integer NOT NULL DEFAULT 0, -- tickets that failed or timed out, at the end
  PRIMARY KEY (destino, run)
);
CREATE INDEX run_failures ON run_destinos (run, destino, failed) WHERE failed > 0;
CREATE INDEX run_destinos_by_run ON run_destinos (run);

CREATE TABLE journal (
  position bigserial PRIMARY KEY, -- given out one transaction after the other: the order of commits
  run      bigint NOT NULL,
  first    integer NOT NULL,
  at       bigint NOT NULL,
  format   smallint NOT NULL DEFAULT 1,
  events   text NOT NULL
);
CREATE UNIQUE INDEX journal_by_run ON journal (run, first);

CREATE TABLE results (run bigint PRIMARY KEY, body text NOT NULL);

CREATE TABLE idempotency_keys (
  key         text COLLATE "C" PRIMARY KEY,
  fingerprint text NOT NULL,
  run         bigint NOT NULL,
  at          bigint NOT NULL
);
CREATE INDEX idempotency_keys_by_run ON idempotency_keys (run);

CREATE TABLE dead_letters (
  id             bigserial PRIMARY KEY,
  queue          text COLLATE "C" NOT NULL,
  reason         text COLLATE "C" NOT NULL,
  detail         text NOT NULL,
  correlation_id text,
  headers        text NOT NULL,
  body           bytea NOT NULL,
  at             bigint NOT NULL
);
CREATE INDEX dead_letters_by_cause ON dead_letters (queue, reason, id);

CREATE TABLE task_types (
  tipo text COLLATE "C" PRIMARY KEY,
  body text NOT NULL,
  at   bigint NOT NULL
);

-- What became of every message ever received, per queue: received = applied + duplicate + late + idle + quarantined.
-- `discarded` and `requeued` count what operators did with quarantined ones.
CREATE TABLE counters (
  queue   text COLLATE "C" NOT NULL,
  verdict text COLLATE "C" NOT NULL,
  count   bigint NOT NULL,
  PRIMARY KEY (queue, verdict)
) WITH (fillfactor = 50);

CREATE TABLE system_events (
  id   bigserial PRIMARY KEY,
  at   bigint NOT NULL,
  kind text COLLATE "C" NOT NULL,
  body text NOT NULL
);

-- The processes that work on this database. Slot 0 is nobody: a process that did not join.
CREATE TABLE members (
  slot        smallint PRIMARY KEY CHECK (slot BETWEEN 1 AND 1023),
  epoch       bigint NOT NULL,
  name        text NOT NULL,
  joined_at   bigint NOT NULL,
  lease_until bigint NOT NULL
) WITH (fillfactor = 50);
CREATE SEQUENCE epochs;

-- The one clock that all members go by.
CREATE FUNCTION oraculo_now() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- COMMIT is on its way together with the rest: whoever lost a race must stop it inside the database.
CREATE FUNCTION oraculo_exactly(written bigint, wanted bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF written <> wanted THEN
    RAISE EXCEPTION '% of % rows were written: another process changed an orchestration', written, wanted;
  END IF;
END $$;
